//! What Tokenrail needs from outside: one trait, one error and one promise per seam.
//!
//! | seam | what is behind it |
//! | --- | --- |
//! | [`IAgentRunner`], [`IAgentRun`] | a way to run an agent: a supervised process, a model's API, an HTTP proxy, a recording |
//! | [`IRuns`] | the runs that are left in the data folder, whichever runner started them |
//! | [`IMessageParser`] | one agent's own output format |
//! | [`IJournal`], [`IAgentRepository`], [`IArchive`] | the store |
//! | [`INodes`], [`IInbox`] | the servers that use the store, and what they send each other |
//! | [`IBus`] | hints between them |
//! | [`ICredentials`] | tickets and login codes that all of them accept |
//! | [`IWorkspace`] | the folders in which agents may work |
//! | [`IGitRepository`] | the git repositories of those folders |
//! | [`IClock`], [`IRandom`] | time and randomness |
//!
//! [`rules`] holds the decisions that every store must make in the same way, above all about appends.
//!
//! `I` marks a seam of the hexagon: a trait that an adapter implements. `server/src/compose.rs` chooses the adapter,
//! and `store.rs` there the store. No other trait has this prefix. Contract suites in `testing` (feature `testing`)
//! check the promises of the store, of the bus and of the runner. The fakes there pass them, and so do the real
//! adapters. The other ports have fakes or mocks.

mod added_line;
mod append;
mod archive;
mod bus;
mod clock;
mod credentials;
mod figures;
mod git_repository;
mod idempotency;
mod inbox;
mod new_turn;
mod nodes;
mod parser;
pub mod planted;
pub mod rules;
mod runner;
mod runs;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod workspace;

pub use added_line::{
    AddedLine, Choosable, FailureLine, OptionKind, PermissionRequestLine, Resolution, ResolvedBy,
};
pub use append::{Append, Epoch, TurnStep};
pub use archive::IArchive;
pub use bus::{Heard, Hint, IBus};
pub use clock::{IClock, IRandom};
pub use credentials::{
    Credential, CredentialDigest, CredentialKind, CredentialRoom, CredentialScope, ICredentials,
    ValidCredential, WhenFull,
};
pub use figures::{BusFigures, StoreAge, StoreFigures};
pub use git_repository::{
    ChangedFile, Changes, ChangesError, Extent, FileChoice, FileStatus, IGitRepository, Patch,
};
pub use idempotency::{Idempotency, KeyLife, Recalled};
pub use inbox::{IInbox, LETTER_LIFE_MS, Letter, LetterContent, LetterId, LetterReply};
pub use new_turn::NewTurn;
pub use nodes::{Errands, Failovers, INodes, LaunchClaim, LaunchCount, Node, NodeState, OpenErrand, Pulse};
pub use parser::{Abilities, Activity, IMessageParser};
pub use runner::{
    Adoption, ExitStatus, IAgentRun, IAgentRunner, Line, OutputLine, PastTurn, PermissionAnswer, Probe,
    RunEnd, RunOutput, RunnerError, SpaceWait, SpoolRoom, TurnOrder, is_disk_full,
};
pub use runs::IRuns;
pub use store::{
    AgentFilter, ArchivedFilter, Created, Deletion, Edited, Enqueued, IAgentRepository, IJournal, ListBounds,
    ListPage, MessagePage, PageLimit, STOP_REASON_EVENTS, Standing, StoreError, StoreResult, TouchMark,
    Touched, TurnFilter, TurnLimit, TurnList, TurnRange,
};
pub use workspace::{CwdNotAllowed, FolderError, IWorkspace};
#[cfg(any(test, feature = "testing"))]
pub use {
    archive::MockIArchive,
    bus::MockIBus,
    credentials::MockICredentials,
    git_repository::MockIGitRepository,
    inbox::MockIInbox,
    nodes::MockINodes,
    parser::MockIMessageParser,
    runner::{MockIAgentRun, MockIAgentRunner},
    store::{MockIAgentRepository, MockIJournal},
    workspace::MockIWorkspace,
};
