//! The application of Tokenrail: launch, pump, follow, cancel, recover. No HTTP, no SQL, no JSON.
//!
//! **What other crates see**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `service` | [`AgentService`], to which all use cases belong |
//! | `use_cases` | what the service can do: one file per use case |
//! | `outside` | the ports that the application needs, and the agent types |
//! | `limits` | the bounds that the configuration can set |
//! | `error`, `stats` | why a use case was refused; counters for `/metrics` |
//!
//! **One agent runs: from a launch to the journal**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `admission`, `tasks` | whether a launch is admitted; spawns the agent's task |
//! | `agent_task` | one task for each agent that has something to run, turn after turn |
//! | `pump` | one run: reads its output, saves it, announces what is saved, and stops it |
//! | `recorder` | gives each parsed event its number and its place in a message |
//! | `own_notices` | the notices that the server itself writes |
//! | `requests_of_run` | the permission requests of one run, and the answers to them |
//! | `timers`, `verdict` | which timeout of a turn expires next; how a turn ended |
//! | `full_since` | how long the disk has been full |
//! | `recent_savers` | whether other agents save, because batches are smaller then |
//!
//! **From the journal to the followers**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `announce` | tells followers and clients that events are saved |
//! | `tails`, `newest_batches` | the wake-up signal of each journal, and its newest events |
//! | `shown_lately` | how far readers came that have left, for the time after a failover |
//! | `follower_pace` | how fast the followers take batches, so that the pump can wait for them |
//! | `follow` | [`Follower`]: a cursor, and the one delivery loop |
//! | `reread` | [`Rereader`]: events that a reader has received, once more |
//! | `stretches`, `stretch_cache`, `fetch_lock` | events that are no longer in memory: how they are read, kept, and fetched only once |
//! | `batch`, `renderings` | events as readers receive them, and their bytes, made once for all readers |
//!
//! **State of all agents, and work in the background**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `core`, `task_handle` | the state behind the service, and the handle of each agent's task |
//! | `command_waits` | what the command of a client waits for, and for how long |
//! | `waiting`, `token_bucket` | how many agents may wait for a slot, and how often agents may be launched |
//! | `lifecycle`, `open_requests` | what clients that watch all agents see: created, updated, deleted; what agents need |
//! | `compactor` | packs the batches of ended turns |
//! | `node_state` | what is known of the other nodes of the store, on which `use_cases/nodes` acts |
//! | `after_failover` | whether a shared store may lack, after a failover, what was seen before it |
//! | `planted` | the places where the simulation plants bugs |
//!
//! "The path of one token" in `docs/explanation/architecture.md` lists the steps of a token through all crates. In this
//! crate they are `pump`, `recorder`, `core` (the save), `announce`, `tails`, `follow`. "The path of a token to another
//! node" is there too: `announce`, `core/hints`, then at the other node `use_cases/nodes/listening` and `gatherer`.
//! `launch.rs`, `cancel.rs` and `answer.rs` in `use_cases` list the steps of a launch, a cancel and an answer.
//!
//! From there the presentation crate takes over: [`AgentService::follow`] hands a follower to it. A WebSocket polls the
//! followers of all its subscriptions (`ws/subscriptions.rs`). An event stream has one (`sse.rs`), and so has a reader
//! of a single turn (`turn_events.rs`).
//!
//! Events are saved before they are announced: `announce` takes what `Core::save` and `Core::save_unless_full` return,
//! and that is saved already.
//!
//! Nothing here depends on chance: randomness is a port, and each `select!` is `biased`. So a simulation with the
//! same seed always takes the same course (`tests/simulation`).

mod admission;
mod after_failover;
mod agent_task;
mod announce;
mod batch;
mod command_waits;
mod compactor;
mod core;
mod error;
mod fetch_lock;
mod follow;
mod follower_pace;
mod full_since;
mod lifecycle;
mod limits;
mod newest_batches;
mod node_state;
mod open_requests;
mod outside;
mod own_notices;
mod planted;
mod pump;
mod recent_savers;
mod recorder;
mod renderings;
mod requests_of_run;
mod reread;
mod service;
mod shown_lately;
mod stats;
mod stretch_cache;
mod stretches;
mod tails;
mod task_handle;
mod tasks;
mod timers;
mod token_bucket;
mod use_cases;
mod verdict;
mod waiting;

#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use error::{NoChanges, Refusal, ReplyText};
pub use follow::{AfterLastTurn, Follower, Next, Page, StreamEnd};
pub use lifecycle::{
    KeptLifecycleEvent, LifecycleEvent, LifecycleEventsMissed, LifecycleReader, UpdateCause,
};
pub use limits::{
    AdmissionLimits, CommandLimits, Limits, ListingLimits, NodeLimits, ReadingLimits, RunLimits, SavingLimits,
};
pub use node_state::{Fence, NodeView};
pub use open_requests::{Needs, OpenRequest, RequestPlace};
pub use outside::{AgentType, AgentTypes, MakeParser, Outside};
pub use renderings::{Rendering, RenderingKey};
pub use reread::Rereader;
pub use service::{AgentService, Readiness};
pub use stats::{NodeStats, Stats};
pub use token_bucket::TokenBucket;
pub use use_cases::{
    Accepted, AgentChanges, AnswerOutcome, AtStop, CommandKey, ConversationTurn, Finding, Import,
    ImportError, Imported, Launch, LaunchOutcome, MessageStatus, Prompt, Prompts, Reparsed, TypeInfo,
};

// The types of the ports that callers need, so that the presentation layer does not depend on the ports.
pub use tokenrail_ports::planted as planted_bugs;
pub use tokenrail_ports::{
    Abilities, AgentFilter, ArchivedFilter, BusFigures, ChangedFile, Changes, Credential, CredentialDigest,
    CredentialKind, CredentialRoom, CredentialScope, Deletion, Extent, Failovers, FileChoice, FileStatus,
    ICredentials, ListPage, MessagePage, NewTurn, Node, NodeState, Patch, PermissionAnswer, Probe,
    STOP_REASON_EVENTS, StoreAge, StoreError, StoreFigures, TurnFilter, TurnRange, ValidCredential, WhenFull,
};
