//! Ways to run an agent: a supervised process, a model's API, an HTTP proxy, a recorded transcript.
//!
//! | runner | the agent is | its output comes from |
//! | --- | --- | --- |
//! | [`ProcessRunner`] | a program on this machine, with its supervisor | the spool file, which outlives the server |
//! | [`ModelRunner`] | a model behind an HTTP API | the spool file: [`ask_model`] is a program like any other |
//! | [`ProxyRunner`] | behind an HTTP service | a stream of server-sent events |
//! | [`ReplayRunner`] | a recording | the recording, with its timing |
//!
//! [`Repositories`] reads the git repositories of the folders in which agents work.
//!
//! [`RunFolders`] manages what is left of all runs of processes, whichever runner started them.
//!
//! A process agent needs two more processes: a supervisor, and the stage that becomes the agent.
//! [`supervisor_command`] is the entry point of both. They run either a separate small program beside the server's
//! ([`supervisor_main`]) or the server's own program; [`SupervisorProgram`] decides which. If the agent speaks a
//! protocol, [`converse`] runs as a third process, between supervisor and agent, and always from the server's program.
//! [`LineFramer`] and [`SseDecoder`] are pure: bytes in, lines and events out.

#[cfg(not(target_os = "linux"))]
compile_error!("agents are supervised by means of Linux: child subreapers, pidfds, inotify and /proc");

mod allowed_folders;
mod causes;
mod converse;
mod deadline;
mod error_status;
mod framer;
mod leftover_runs;
mod model;
mod process;
mod proxy;
mod replay;
mod repository;
mod run_folder;
mod sse;
mod supervisor;
mod time_slice;
mod workspace;

pub use allowed_folders::AllowedFolders;
pub use converse::converse;
pub use framer::{FramerLimits, LineFramer};
pub use leftover_runs::RunFolders;
pub use model::{ModelApi, ModelConfig, ModelLimits, ModelProcess, ModelRunner, ModelSettings, ask_model};
pub use process::{
    ConverseConfig, OwnBecause, PollsBecause, ProcessConfig, ProcessLimits, ProcessRunner, RunWatcher,
    SupervisorProgram, WatchLimits,
};
pub use proxy::{ProxyConfig, ProxyLimits, ProxyRunner};
pub use replay::{ReplayRunner, Transcript};
pub use repository::{Repositories, RepositoryLimits};
pub use run_folder::{ANSWER_TEXT_BYTES, Protocol, Unanswered};
pub use sse::{SseDecoder, SseEvent, SseOverflow};
pub use supervisor::{exec_for, supervisor_command, supervisor_main};
pub use time_slice::set_time_slice;
pub use workspace::Workspaces;
