//! Ways to run an agent: a supervised process, a model's API, an HTTP proxy, a recorded transcript.
//!
//! | runner | the agent is | its output comes from |
//! | --- | --- | --- |
//! | [`ProcessRunner`] | a program on this machine, with its supervisor | the spool file, which outlives the server |
//! | [`ModelRunner`] | a model behind an HTTP API | the spool file: [`ask_model`] is a program like any other |
//! | [`ProxyRunner`] | behind an HTTP service | a stream of server-sent events |
//! | [`ReplayRunner`] | a recording | the recording, with its timing |
//!
//! A token comes through `converse/exchange.rs` if the program speaks a protocol, then through `supervisor/output.rs`,
//! `process/watch/task.rs` and `process/run.rs`, in this order.
//!
//! [`Repositories`] reads the git repositories of the folders in which agents work.
//!
//! [`RunFolders`] manages what is left of all runs of processes, whichever runner started them.
//!
//! **Runners**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `process` | the side of the server: starts a run, reads its spool, stops it, keeps idle processes |
//! | `model`, `proxy`, `replay` | the other runners |
//! | `leftover_runs` | [`RunFolders`] |
//!
//! **The other processes of a run**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `run_folder` | the base of all: the files by which the processes of a run communicate |
//! | `supervisor` | the process that starts the agent, copies its output into the spool, and ends it; the exec stage |
//! | `converse` | the process that speaks a protocol with the agent program |
//! | `become_program` | the last step of both exec stages |
//!
//! **Folders and bytes**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `workspace`, `allowed_folders` | the folders in which agents work; those that the machine's user has allowed |
//! | `repository` | the git repositories of these folders |
//! | `framer`, `sse` | bytes in, lines or server-sent events out |
//! | `error_status`, `causes` | what an HTTP status says about an error; an error with its causes as one line |
//! | `deadline`, `time_slice` | waits for a deadline that may be absent; how soon a thread gets the processor |
//! | `out_of_memory` | which processes the kernel ends first without memory |
//!
//! Beside an agent that is a program runs one more process: its supervisor. The supervisor's child sets itself up and
//! then becomes the agent. If the agent speaks a protocol, this child becomes [`converse()`] instead, which starts the
//! agent as a third process, by an exec stage of its own ([`exec_for`]). [`supervisor_command`] is the entry point of
//! the supervisor and of its child. They run either a separate small program beside the server's ([`supervisor_main`])
//! or the server's own program; [`SupervisorProgram`] decides which. `converse` always runs from the server's program:
//! `cli.rs` of the server crate calls it.
//! [`LineFramer`] and [`SseDecoder`] are pure: bytes in, lines and events out.

#[cfg(not(target_os = "linux"))]
compile_error!("agents are supervised by means of Linux: child subreapers, pidfds, inotify and /proc");

mod allowed_folders;
mod become_program;
mod causes;
mod converse;
mod deadline;
mod error_status;
mod framer;
mod leftover_runs;
mod model;
mod out_of_memory;
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
pub use converse::{converse, exec_for};
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
pub use supervisor::{supervisor_command, supervisor_main};
pub use time_slice::{set_time_slice, work_in_background};
pub use workspace::Workspaces;
