//! What Tokenrail does: launch, pump, follow, cancel, recover. No HTTP, no SQL, no JSON.
//!
//! Read in this order, and you have followed one token from the agent to its readers:
//!
//! 1. [`AgentService`]: the use cases, in `service`, `commands` and `conversation`;
//! 2. `agent_task`: one task for each agent that has something to run, turn after turn;
//! 3. `pump`: one turn: output in, commits out, and what is committed announced;
//! 4. `recorder`: gives what the parser says its number, and its place in a message;
//! 5. `tails`: the doorbell of each journal, and its newest events;
//! 6. [`Follower`]: a reader's cursor, the one delivery loop; `history`: what it reads that is not in memory.
//!
//! Save first, announce second: what `announce` takes comes from `core::Core::save`, which gives back what the
//! journal has just taken.
//!
//! Nothing here draws a chance: each `select!` is `biased`, so that a simulation with the same seed goes the same way
//! (`tests/simulation`).

mod agent_task;
mod announce;
mod commands;
mod compactor;
mod conversation;
mod copies;
mod core;
mod error;
mod follow;
mod history;
mod import;
mod limits;
mod lookout;
mod message_status;
mod news;
mod outside;
#[cfg(planted_bugs)]
mod planted;
mod pump;
mod questions;
mod recorder;
mod reparse;
mod service;
mod stats;
mod tails;
mod timers;
mod verdict;
mod waiting;

#[cfg(test)]
mod tests;

pub use commands::{Accepted, AnswerOutcome, CommandKey, Launch, LaunchOutcome};
pub use conversation::Said;
pub use error::Refusal;
pub use follow::{Follower, Next, Page, StreamEnd};
pub use import::{Import, ImportError, Imported};
pub use limits::Limits;
pub use message_status::MessageStatus;
pub use news::{Item as NewsItem, News, NewsMissed, NewsReader};
pub use outside::{AgentType, MakeParser, Outside};
pub use reparse::{Finding, Reparsed};
pub use service::{AgentService, TypeInfo};
pub use stats::Stats;
pub use tails::{Batch, Rendering, RenderingKey};

// What callers need of the ports, so that presentation need not see them.
#[cfg(planted_bugs)]
pub use tokenrail_ports::planted as planted_bugs;
pub use tokenrail_ports::{
    Abilities, AgentFilter, ListPage, MessagePage, PermissionAnswer, Probe, STOP_REASON_EVENTS, StoreError,
    TurnFilter, TurnRange,
};
