//! The supervisor of one run: a separate process.
//!
//! Its command line is `supervise <run folder>`, of `tokenrail-supervisor` or of `tokenrail` itself
//! ([`SupervisorProgram`](crate::SupervisorProgram)). The supervisor starts the agent by way of
//! `supervise --exec <run folder>` and copies its output into the spool. It keeps the agent's standard error, carries
//! out a cancel, and ends a run that is over its limits. It stays until every descendant of the agent has ended.
//!
//! It writes its results into the run folder. No server needs to run to read them.

mod command;
mod control;
mod exec;
mod limits;
mod output;
mod stderr;
mod supervise;
mod sweep;
mod ticks;

pub use command::{supervisor_command, supervisor_main};
pub use exec::exec_for;
