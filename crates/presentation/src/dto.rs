//! Every JSON name that clients see, in and out.

mod agent;
mod client;
mod fields;
mod frames;
mod message;
mod readable;
mod requests;
mod text;

pub(crate) use agent::{
    AcceptedDto, AgentDto, AgentErrorDto, AgentRefDto, AgentStatusDto, AgentTypeDto, ServiceStatusDto,
    TicketDto,
};
pub(crate) use client::{ClientFrame, Subscribe, client_frame};
pub(crate) use frames::{
    AgentCreated, AgentDeleted, AgentUpdated, Envelope, ErrorFrame, Heads, ResultDto, StreamComplete,
    StreamError, StreamMessage, StreamStatus, Subscribed, Unsubscribed,
};
pub(crate) use message::{AgentMessageDto, MetadataDto};
pub(crate) use requests::{LaunchBody, SendBody, TicketBody, launch, send, ticket_path};
pub(crate) use text::{IdText, IsoTime, Json};
