//! Every JSON name that clients see, in and out.

mod agent;
mod client;
mod fields;
mod frames;
mod message;
mod message_frames;
mod requests;
mod stream_frames;
mod text;

pub(crate) use agent::{
    AcceptedDto, AgentDto, AgentErrorDto, AgentRefDto, AgentStatusDto, AgentTypeDto, ServiceStatusDto,
    TicketDto,
};
pub(crate) use client::{AskedStatus, ClientFrame, Subscribe, client_frame, unknown_message};
pub(crate) use frames::{
    AgentCreated, AgentDeleted, AgentUpdated, Envelope, ErrorFrame, Heads, ResultDto, StreamComplete,
    StreamError, StreamMessage, StreamStatus, Subscribed, Unsubscribed,
};
pub(crate) use message::{AgentMessageDto, MetadataDto};
pub(crate) use message_frames::{MessageChunk, MessageEnd, MessageNew, MessageStart, MessageStatusFrame};
pub(crate) use requests::{LaunchBody, SendBody, TicketBody, launch, send, ticket_path};
pub(crate) use stream_frames::{
    StopDto, StreamAbandoned, StreamCancelled, StreamFault, StreamResult, StreamText, StreamToolResult,
    StreamToolUse, ToolResultDto, ToolUseDto,
};
pub(crate) use text::{IdText, IsoTime, Json};
