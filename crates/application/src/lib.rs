//! The application of Tokenrail: launch, pump, follow, cancel, recover. No HTTP, no SQL, no JSON.
//!
//! Read the modules in this order to follow one token from the agent to its readers:
//!
//! 1. `use_cases`: what [`AgentService`] can do, one file per use case;
//! 2. `agent_task`: one task for each agent that has something to run, turn after turn;
//! 3. `pump`: one run: reads its output, commits it, and announces what is committed;
//! 4. `recorder`: gives each parsed event its number and its place in a message;
//! 5. `tails`: the wake-up signal of each journal, and its newest events;
//! 6. [`Follower`]: a reader's cursor and the one delivery loop; `stretches`: the events that are no longer in
//!    memory.
//!
//! From there the presentation crate takes over: [`AgentService::follow`] hands a follower to it. A WebSocket polls the
//! followers of all its subscriptions (`ws/subscriptions.rs`). An event stream has one (`sse.rs`), and so has a reader
//! of a single turn (`turn_events.rs`).
//!
//! Events are saved before they are announced: `announce` takes what `core::Core::save` returns, and that is saved
//! already.
//!
//! Nothing here depends on chance: randomness is a port, and each `select!` is `biased`. So a simulation with the
//! same seed always takes the same course (`tests/simulation`).

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
mod lifecycle;
mod limits;
mod lookout;
mod open_requests;
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
pub use error::{NoChanges, Refusal, ReplyText};
pub use follow::{Follower, Next, Page, StreamEnd};
pub use lifecycle::{
    KeptLifecycleEvent, LifecycleEvent, LifecycleEventsMissed, LifecycleReader, UpdateCause,
};
pub use limits::{
    AdmissionLimits, CommandLimits, Limits, ListingLimits, ReadingLimits, RunLimits, SavingLimits,
};
pub use open_requests::{Needs, OpenRequest, RequestPlace};
pub use outside::{AgentType, AgentTypes, MakeParser, Outside};
pub use renderings::{Rendering, RenderingKey};
pub use service::AgentService;
pub use stats::Stats;
pub use token_bucket::TokenBucket;
pub use use_cases::{
    Accepted, AgentChanges, AnswerOutcome, CommandKey, ConversationTurn, Finding, Import, ImportError,
    Imported, Launch, LaunchOutcome, MessageStatus, Reparsed, TypeInfo,
};

// The types of the ports that callers need, so that the presentation layer does not depend on the ports.
pub use tokenrail_ports::planted as planted_bugs;
pub use tokenrail_ports::{
    Abilities, AgentFilter, ArchivedFilter, ChangedFile, Changes, Extent, FileChoice, FileStatus, ListPage,
    MessagePage, Patch, PermissionAnswer, Probe, STOP_REASON_EVENTS, StoreError, TurnFilter, TurnRange,
};
