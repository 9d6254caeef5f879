//! Every JSON name that clients see, in and out.

mod agent;
mod ai_sdk;
pub(crate) mod archive;
mod client;
mod deltas;
mod event_block;
mod fields;
mod frames;
pub(crate) mod kelpie;
pub(crate) mod letta;
mod message;
mod message_frames;
mod permission;
mod question;
mod readable;
mod requests;
mod stream_frames;
mod text;
mod turn;
#[cfg(test)]
mod typescript;

use tokenrail_domain::{AgentId, Event};

pub(crate) use agent::{
    AcceptedDto, AgentDto, AgentErrorDto, AgentRefDto, AgentStatusDto, AgentTypeDto, ServiceStatusDto,
    TicketDto,
};
pub(crate) use ai_sdk::{
    AbandonedDto, ChatFrame, ChatReply, ChatRequest, Chunk, FinishDto, FinishReason, ForeignJson, NoticeDto,
    ParentDto, PartId, Saying, StartDto, StrayResultDto, SubAgentDto, ToolMetadataDto, UsageDto, Yes,
    chat_frame, chat_request, text_of,
};
pub(crate) use client::{AskedStatus, ClientFrame, Subscribe, client_frame, unknown_message};
pub use deltas::packed_items;
pub(crate) use deltas::{DeltasDto, PageItemDto};
pub(crate) use event_block::EventBlock;
pub(crate) use frames::{
    AgentCreated, AgentDeleted, AgentUpdated, Envelope, ErrorFrame, Heads, PermissionFrame, ResultDto,
    StreamComplete, StreamError, StreamMessage, StreamStatus, Subscribed, Unsubscribed,
};
pub(crate) use message::{AgentMessageDto, MetadataDto};
pub(crate) use message_frames::{MessageChunk, MessageEnd, MessageNew, MessageStart, MessageStatusFrame};
pub(crate) use permission::{PermissionBody, PermissionStateDto, permission};
pub(crate) use question::{Question, QuestionNotice, Settling};
pub(crate) use requests::{
    ChatBody, ImportBody, LaunchBody, ReplayBody, SendBody, TicketBody, launch, replay_speed, send,
    ticket_path,
};
pub(crate) use stream_frames::{
    StopDto, StreamAbandoned, StreamCancelled, StreamFault, StreamResult, StreamText, StreamToolResult,
    StreamToolUse, ToolResultDto, ToolUseDto,
};
pub(crate) use text::{IdText, IsoTime, Json, plain_text};
pub(crate) use turn::{RawLineDto, TurnDto, TurnRecordDto, TurnRecordSchema, next_turns};

/// One event as clients see it, without its raw lines.
pub fn event_json(agent: AgentId, event: &Event) -> String {
    serde_json::to_string(&AgentMessageDto::new(agent, event, false)).unwrap_or_default()
}
