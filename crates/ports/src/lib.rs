//! What Tokenrail needs from outside: one trait, one error and one promise per seam.
//!
//! | seam | what is behind it |
//! | --- | --- |
//! | [`IAgentRunner`], [`IAgentRun`] | a way to run an agent: a supervised process, an HTTP proxy, a recording |
//! | [`IMessageParser`] | one agent's own output format |
//! | [`IJournal`], [`IAgentRepository`], [`IArchive`] | the store |
//! | [`IWorkspace`] | the folders in which agents may work |
//! | [`IClock`], [`IRandom`] | time and chance |
//!
//! `I` marks a seam of the hexagon: a trait that an adapter implements and that `server/src/compose.rs` chooses.
//! No other trait is named so. Each promise below is checked by a contract suite in `testing` (feature
//! `testing`), which the fakes there and the real adapters both pass.

mod archive;
mod clock;
mod parser;
#[cfg(planted_bugs)]
pub mod planted;
mod runner;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod workspace;

pub use archive::IArchive;
pub use clock::{IClock, IRandom};
pub use parser::{Abilities, Activity, IMessageParser};
pub use runner::{
    Adoption, ExitStatus, IAgentRun, IAgentRunner, Line, OutputLine, PastTurn, PermissionAnswer, Probe,
    RunEnd, RunOutput, RunnerError, SpoolRoom, TurnOrder, is_disk_full,
};
pub use store::{
    AgentFilter, Append, Created, Enqueued, IAgentRepository, IJournal, Idempotency, KeyLife, ListBounds,
    ListPage, MessagePage, PageLimit, Recalled, STOP_REASON_EVENTS, StoreError, TurnFilter, TurnRange,
    TurnStep,
};
pub use workspace::{CwdNotAllowed, FolderError, IWorkspace};
#[cfg(any(test, feature = "testing"))]
pub use {
    archive::MockIArchive,
    parser::MockIMessageParser,
    runner::{MockIAgentRun, MockIAgentRunner},
    store::{MockIAgentRepository, MockIJournal},
    workspace::MockIWorkspace,
};
