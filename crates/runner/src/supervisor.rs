//! The supervisor of one run, a process of its own.
//!
//! `supervise <run folder>`, of `tokenrail-supervisor` or of `tokenrail` itself ([`SupervisorProgram`]), starts the agent
//! by way of `supervise --exec <run folder>`, copies what it prints into the spool, keeps what it says on standard error, passes on a cancel, ends a run that is over its limits,
//! and stays until every process that descends from the agent has ended. What it has to say it writes into the run folder; nobody needs to be there to read it.

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
