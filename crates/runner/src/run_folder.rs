//! The run folder: what the server, the supervisor, the exec stage and the `converse` process share.
//!
//! These are separate processes, and they communicate only through files in the run folder. So this module is the base
//! of the others: [`process`](crate::process), [`supervisor`](crate::supervisor) and [`converse`](crate::converse) use
//! it, and it uses none of them.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`folder`] | the folder of one process of an agent, and its files |
//! | [`images`] | the images of prompts, each in a file |
//! | [`records`] | the contents of the JSON files: the order, the supervisor, the end |
//! | [`control`] | commands to the supervisor |
//! | [`opening`], [`converse_messages`] | messages to the `converse` process: at its start, and later |
//! | [`runs`] | all run folders of a data folder |
//! | [`proc`], [`begun`] | the process table |
//! | [`programs`] | the programs that work for a run |
//! | [`blocking`] | file work on the threads that may block |

mod begun;
mod blocking;
mod control;
mod converse_messages;
mod folder;
mod images;
mod opening;
mod proc;
mod programs;
mod records;
mod runs;

pub(crate) use begun::{Begun, begun_since};
pub(crate) use blocking::blocking;
pub(crate) use control::{CancelLine, LOOK};
pub use converse_messages::ANSWER_TEXT_BYTES;
pub(crate) use converse_messages::{Answer, ConverseMessage, FurtherRun, MESSAGE_BYTES};
pub(crate) use folder::{MARKER, RunFolder};
pub(crate) use images::ImageRef;
pub(crate) use opening::{ConverseLimits, Opening};
pub use opening::{Protocol, Unanswered};
pub(crate) use proc::{Process, is_argument, kill_marked, own_descendants, own_family};
pub(crate) use programs::{BUILD, REFUSED, SUPERVISE, SUPERVISOR, THIS_PROGRAM};
pub(crate) use records::{ExecOrder, ExitRecord, OverLimit, RunFailure, RunLimit, SupervisorRecord, Unkept};
pub(crate) use runs::{RunName, all_runs, run_of};
