//! The domain types of Tokenrail and their rules: agents, turns, events, and how events become messages.
//!
//! This crate has no async code, no I/O, no clock and no randomness. Every function is deterministic. Read in this
//! order:
//!
//! 1. [`ids`](AgentId): agents, sequence numbers, and the ids that are computed from them;
//! 2. [`Agent`] and [`Turn`]: what runs, and its lifecycle states; [`SessionId`]: the id by which an agent resumes;
//! 3. [`Event`]: one numbered entry of an agent's journal;
//! 4. [`Said`]: what a parser reads from the agent's output, before it has a sequence number;
//! 5. [`Assembler`]: folds events into the messages that a user sees.
//!
//! ```
//! use tokenrail_domain::{Assembler, EventBody, MessageOrdinal, MessageOutcome, Part, Sequence};
//!
//! let first = MessageOrdinal(0);
//! let mut assembler = Assembler::default();
//! for (number, word) in ["Hel", "lo"].iter().enumerate() {
//!     let delta = EventBody::TextDelta { message: first, part: Part(0), text: (*word).to_owned() };
//!     assembler.record(Sequence(number as u64 + 1), &delta);
//! }
//! let complete = assembler.complete(first, MessageOutcome::Complete).expect("it is open");
//! assert_eq!(complete.text(), "Hello");
//! assert_eq!(complete.first_sequence, Some(Sequence(1)));
//! ```

mod agent;
mod agent_edit;
mod agent_error;
mod assembler;
mod commit_id;
mod event;
mod ids;
mod json;
mod listed;
mod node;
mod permission;
mod prompt_image;
mod said;
mod session;
mod turn;
mod unified_patch;

pub use agent::{Agent, AgentStatus, Copied, LaunchedBy, Replay, TransitionError};
pub use agent_edit::{AgentEdit, NewName};
pub use agent_error::{AgentError, ErrorClass};
pub use assembler::Assembler;
pub use commit_id::CommitId;
pub use event::{
    CompleteMessage, ContentBlock, Event, EventBody, MessageOutcome, Notice, Part, ToolCall, ToolResult,
    TurnResult, Usage, event_id,
};
pub use ids::{
    AgentId, MessageOrdinal, ParseIdError, Sequence, Timestamp, TurnId, TurnNumber, event_of, message_id,
    message_of,
};
pub use json::JsonText;
pub use listed::{ListedAgent, ListedTurn, LongField, cut};
pub use node::NodeId;
pub use permission::{Accepts, PermissionOption, PermissionReply, PermissionRequest, ReplyFault};
pub use prompt_image::{ImageFile, ImageType, PromptImage, TurnImage};
pub use said::{Said, TurnClose};
pub use session::{SessionId, SessionIdError};
pub use turn::{StopReason, Turn, TurnOutcome, TurnState};
pub use unified_patch::UnifiedPatch;
