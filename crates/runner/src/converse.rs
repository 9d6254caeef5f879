//! Speaks with an agent program that must be spoken with: a process of its own, between supervisor and program.
//!
//! Some programs take their prompt as a message of a protocol, ask questions and wait for the answers. For those the
//! exec stage becomes `tokenrail converse <protocol> <run folder> -- <program> <args…>`. It starts the program, copies
//! what that prints to its own standard output, which is the spool, and says to it what the protocol asks for. So an
//! open question outlives the server as well as the agent does.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`opening`] | what this process is told on standard input: the prompt, and how to ask |
//! | [`conversation`] | the turns in one protocol, without I/O: lines in, messages out |
//! | [`acp`], [`claude`], [`codex`] | the protocols |
//! | [`questions`] | the questions that are open, who may answer them how, and until when |
//! | [`rest`] | between two turns: which one follows, and until when the program waits for that |
//! | [`own_line`] | what this process itself adds to the spool, between the lines of the program |
//! | [`spool`] | writes both |
//! | [`program`] | the program, and its standard streams |
//! | [`exchange`] | the process, from start to end |

mod acp;
mod claude;
mod codex;
mod conversation;
mod exchange;
mod opening;
mod own_line;
mod program;
mod questions;
mod rest;
mod rpc;
mod spool;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use opening::{ConverseLimits, Opening};
pub use opening::{Protocol, Unanswered};
pub(crate) use own_line::{RESTS, further_line};
pub(crate) use questions::{ANSWER_BYTES, Answer};
pub(crate) use rest::{FurtherTurn, Told};

/// Runs the program and speaks with it until its turn has ended, and those that follow while it waits for them.
///
/// The body of the internal command `converse`. Its standard input is the opening, its standard output the spool. The
/// exit code is the program's; 128 and the signal's number where a signal has ended it.
pub fn converse(protocol: Protocol, run_folder: &Path, program: &[OsString]) -> ExitCode {
    match exchange::run(protocol, run_folder, program) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Standard error is where an agent says what is wrong with it.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("the conversation with the agent broke off: {error}\n"),
            );
            ExitCode::FAILURE
        }
    }
}
