//! Every JSON name of the native vocabulary, in and out.

mod agent;
pub(crate) mod archive;
mod client;
mod deltas;
mod frames;
mod message;
mod message_frames;
mod permission;
mod requests;
mod stream_frames;
mod turn;
#[cfg(test)]
mod typescript;

use tokenrail_domain::{AgentId, Event};

pub(crate) use agent::{AcceptedDto, AgentDto, AgentStatusDto, AgentTypeDto, ServiceStatusDto, TicketDto};
pub(crate) use client::{AskedStatus, ClientFrame, Subscribe, client_frame, unknown_message};
pub(crate) use deltas::{DeltasDto, PageItemDto};
pub(crate) use frames::{
    AgentCreated, AgentDeleted, AgentUpdated, Envelope, ErrorFrame, Heads, PermissionFrame, ResultDto,
    StreamComplete, StreamError, StreamMessage, StreamStatus, Subscribed, Unsubscribed,
};
pub(crate) use message::{AgentMessageDto, MetadataDto};
pub(crate) use message_frames::{MessageChunk, MessageEnd, MessageNew, MessageStart, MessageStatusFrame};
pub(crate) use permission::{PermissionBody, PermissionStateDto, permission};
pub(crate) use requests::{
    ImportBody, LaunchBody, ReplayBody, SendBody, TicketBody, launch, replay_speed, send, ticket_path,
};
pub(crate) use stream_frames::{
    StopDto, StreamAbandoned, StreamCancelled, StreamFault, StreamResult, StreamText, StreamToolResult,
    StreamToolUse, ToolResultDto, ToolUseDto,
};
pub(crate) use turn::{RawLineDto, TurnDto, TurnRecordDto, TurnRecordSchema, next_turns};

/// One event as clients see it, without its raw lines.
pub fn event_json(agent: AgentId, event: &Event) -> String {
    serde_json::to_string(&AgentMessageDto::new(agent, event, false)).unwrap_or_default()
}
