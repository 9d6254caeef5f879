//! An agent that is a program on this machine.
//!
//! No pipe connects the runner with the agent. The runner writes what to run into a run folder and starts a
//! supervisor there. The supervisor copies the agent's output into a file of the folder, and the runner reads the file
//! as it grows. So the agent never waits for the server and outlives it, and a restarted server continues where the
//! last one stopped.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`runner`] | starts a turn, takes over a run, reports whether the program can be started |
//! | [`idle_processes`] | keeps a program between two turns |
//! | [`further_run`] | gives an idle program its next turn |
//! | [`start_supervisor`], [`supervisor_program`] | starts the supervisor of a run; which program that is |
//! | [`run`] | one run: reads its output, cancels it, answers it |
//! | [`run_end`] | how the run ended |
//! | [`watch`] | wakes the runs whose output has grown |
//! | [`config`], [`program`] | the settings; finds the agent's program |

mod config;
mod further_run;
mod idle_processes;
mod program;
mod run;
mod run_end;
mod runner;
mod start_supervisor;
mod supervisor_program;
mod watch;

pub use config::{ConverseConfig, ProcessConfig, ProcessLimits};
pub use runner::ProcessRunner;
pub use supervisor_program::{OwnBecause, SupervisorProgram};
pub use watch::{PollsBecause, RunWatcher, WatchLimits};
