//! Ways to run an agent: a supervised process, a model's API, an HTTP proxy, a recorded transcript.
//!
//! | runner | the agent is | its output comes from |
//! | --- | --- | --- |
//! | [`ProcessRunner`] | a program on this machine, under a supervisor of its own | the spool file, which outlives the server |
//! | [`ModelRunner`] | a model behind an HTTP API | the same: [`ask_model`] is a program like any other |
//! | [`ProxyRunner`] | behind an HTTP service | a stream of server-sent events |
//! | [`ReplayRunner`] | a recording | the recording, with its timing |
//!
//! [`RunFolders`] is what is left of all runs of processes, whichever runner started them.
//!
//! A process agent is run by two more processes, a supervisor and the stage that becomes the agent: [`supervisor_command`]
//! is what either does. Both are of a program of their own beside the server's ([`supervisor_main`]), or of the server's
//! ([`SupervisorProgram`] says which). Where the agent must be spoken with, [`converse`] is a third, between supervisor
//! and agent, and always of the server's program. [`LineFramer`] and [`SseDecoder`] are pure: bytes in, lines and events
//! out.

#[cfg(not(target_os = "linux"))]
compile_error!("agents are supervised by means of Linux: child subreapers, pidfds, inotify and /proc");

mod converse;
mod framer;
mod leftover_runs;
mod model;
mod process;
mod proxy;
mod replay;
mod run_folder;
mod sse;
mod supervisor;
mod workspace;

pub use converse::converse;
pub use framer::{FramerLimits, LineFramer};
pub use leftover_runs::RunFolders;
pub use model::{ModelApi, ModelConfig, ModelLimits, ModelProcess, ModelRunner, ask_model};
pub use process::{
    ConverseConfig, OwnBecause, PollsBecause, ProcessConfig, ProcessLimits, ProcessRunner, RunWatcher,
    SupervisorProgram, WatchLimits,
};
pub use proxy::{ProxyConfig, ProxyLimits, ProxyRunner};
pub use replay::{ReplayRunner, Transcript};
pub use run_folder::{Protocol, Unanswered};
pub use sse::{SseDecoder, SseEvent, SseOverflow};
pub use supervisor::{exec_for, supervisor_command, supervisor_main};
pub use workspace::Workspaces;
