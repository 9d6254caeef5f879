//! The requests of clients and of the server itself. Each file is one use case: a few methods of
//! [`AgentService`](crate::AgentService), and the types that only they need.
//!
//! | subject | files |
//! | --- | --- |
//! | a new agent | `launch`, `create`, `converse`, `replay`, `import` |
//! | an agent that exists | `send`, `answer`, `cancel`, `edit`, `delete` |
//! | reading | `read`, `turns`, `message_status`, `open_requests`, `follow`, `images`, `types`, `changes` |
//! | start, shutdown, maintenance | `recover`, `shutdown`, `reparse` |
//! | several nodes on one store | `nodes` |
//!
//! Others share `idempotency` and `children`: a repeated command is done once, and the agents that agents launch are
//! bounded.

mod answer;
mod cancel;
mod changes;
mod children;
mod converse;
mod create;
mod delete;
mod edit;
mod follow;
mod idempotency;
mod images;
mod import;
mod launch;
mod message_status;
mod nodes;
mod open_requests;
mod read;
mod recover;
mod reparse;
mod replay;
mod send;
mod shutdown;
mod turns;
mod types;

pub use answer::AnswerOutcome;
pub use changes::AgentChanges;
pub use converse::ConversationTurn;
pub use idempotency::CommandKey;
pub use import::{Import, ImportError, Imported};
pub use launch::{Launch, LaunchOutcome};
pub use message_status::MessageStatus;
pub use reparse::{Finding, Reparsed};
pub use send::{Accepted, Prompt};
pub use shutdown::AtStop;
pub use turns::Prompts;
pub use types::TypeInfo;
