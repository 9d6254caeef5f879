//! Every JSON name that clients see, in and out.

mod agent;
pub(crate) mod archive;
mod client;
mod fields;
mod frames;
mod message;
mod requests;
mod text;
mod turn;

use tokenrail_domain::{AgentId, Event};

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
pub(crate) use requests::{
    LaunchBody, ReplayBody, SendBody, TicketBody, launch, replay_speed, send, ticket_path,
};
pub(crate) use text::{IdText, IsoTime, Json};
pub(crate) use turn::{RawLineDto, TurnDto, TurnRecordDto, TurnRecordSchema, next_turns};

/// One event as clients see it, without its raw lines.
pub fn event_json(agent: AgentId, event: &Event) -> String {
    serde_json::to_string(&AgentMessageDto::new(agent, event, false)).unwrap_or_default()
}
