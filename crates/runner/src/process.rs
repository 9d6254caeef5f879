//! An agent that is a program on this machine.
//!
//! The runner does not hold the agent on a pipe of its own. It writes what is to be run into a run folder and starts a
//! supervisor there; that copies what the agent prints into a file of the folder, and the runner reads the file as it
//! grows. So the agent never waits for the server, outlives it, and the next server goes on where this one was.

mod config;
mod end;
mod further_turn;
mod launch;
mod program;
mod resting;
mod run;
mod runner;
mod supervisor_program;
mod watch;

pub use config::{ConverseConfig, ProcessConfig, ProcessLimits};
pub use runner::ProcessRunner;
pub use supervisor_program::{OwnBecause, SupervisorProgram};
pub use watch::{PollsBecause, RunWatcher, WatchLimits};
