//! The supervisor of one run: a separate process.
//!
//! Its command line is `supervise <run folder> --for <build>` of `tokenrail-supervisor`, or `supervise <run folder>` of
//! `tokenrail` itself ([`SupervisorProgram`](crate::SupervisorProgram)). The supervisor starts the agent by way of
//! `supervise --exec <run folder>` and copies its output into the spool. It keeps the agent's standard error, carries
//! out a cancel, and ends a run that is over its limits. It stays until every descendant of the agent has ended.
//!
//! If the agent speaks a protocol, what the supervisor starts is the `converse` process (`converse.rs`). That process
//! starts the agent, and passes the agent's output on to the supervisor.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`command`] | the command lines of the supervisor and of the exec stage |
//! | [`supervise`] | the life of a supervisor: starts the agent, waits, stops it politely, records the end |
//! | [`exec`] | the stage that becomes the agent, or the `converse` process |
//! | [`output`], [`stderr`] | copies the output into the spool; keeps a part of standard error |
//! | [`control`] | reads the commands of the server |
//! | [`limit_watch`], [`ticks`] | whether the run is over its limits; when to check that |
//! | [`sweep`] | ends all processes that are left |
//!
//! It writes its results into the run folder. No server needs to run to read them.

mod command;
mod control;
mod exec;
mod limit_watch;
mod output;
mod stderr;
mod supervise;
mod sweep;
mod ticks;

pub use command::{supervisor_command, supervisor_main};
