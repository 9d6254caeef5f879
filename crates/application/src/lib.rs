//! What Tokenrail does: launch, pump, follow, cancel, recover. No HTTP, no SQL, no JSON.
//!
//! Read in this order, and you have followed one token from the agent to its readers:
//!
//! 1. `use_cases`: what [`AgentService`] can do, one file per use case;
//! 2. `agent_task`: one task for each agent that has something to run, turn after turn;
//! 3. `pump`: one turn: output in, commits out, and what is committed announced;
//! 4. `recorder`: gives what the parser says its number, and its place in a message;
//! 5. `tails`: the doorbell of each journal, and its newest events;
//! 6. [`Follower`]: a reader's cursor, the one delivery loop; `stretches`: what it reads that is not in memory.
//!
//! Save first, announce second: `announce` takes what `core::Core::save` returns, which is what the journal has just
//! saved.
//!
//! Nothing here is random: each `select!` is `biased`, so that a simulation with the same seed goes the same way
//! (`tests/simulation`).

mod agent_task;
mod announce;
mod audience;
mod batch;
mod compactor;
mod core;
mod error;
mod fetched;
mod fetches;
mod follow;
mod full_since;
mod limits;
mod lookout;
mod news;
mod outside;
mod planted;
mod pump;
mod questions;
mod recorder;
mod renderings;
mod service;
mod stats;
mod stretches;
mod tails;
mod timers;
mod token_bucket;
mod use_cases;
mod verdict;
mod waiting;

#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use error::Refusal;
pub use follow::{Follower, Next, Page, StreamEnd};
pub use limits::Limits;
pub use news::{Item as NewsItem, News, NewsMissed, NewsReader};
pub use outside::{AgentType, MakeParser, Outside};
pub use renderings::{Rendering, RenderingKey};
pub use service::AgentService;
pub use stats::Stats;
pub use token_bucket::TokenBucket;
pub use use_cases::{
    Accepted, AnswerOutcome, CommandKey, ConversationTurn, Finding, Import, ImportError, Imported, Launch,
    LaunchOutcome, MessageStatus, Reparsed, TypeInfo,
};

// What callers need of the ports, so that presentation need not see them.
pub use tokenrail_ports::planted as planted_bugs;
pub use tokenrail_ports::{
    Abilities, AgentFilter, ListPage, MessagePage, PermissionAnswer, Probe, STOP_REASON_EVENTS, StoreError,
    TurnFilter, TurnRange,
};
