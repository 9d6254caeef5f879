//! Speaks with an agent program that must be spoken with: a process of its own, between supervisor and program.
//!
//! Some programs take their prompt as a message of a protocol, ask questions and wait for the answers. For those the
//! exec stage becomes `tokenrail converse <protocol> <run folder> -- <program> <args…>`. It starts the program, copies
//! what that prints to its own standard output, which is the spool, and says to it what the protocol asks for. So an
//! open question outlives the server as well as the agent does.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`conversation`] | the turns in one protocol, without I/O: lines in, messages out |
//! | [`acp`], [`claude`], [`codex`] | the protocols, chosen by [`protocols`] |
//! | [`questions`] | the questions that are open, who may answer them how, and until when |
//! | [`answers`] | what the server tells a conversation while it runs |
//! | [`rest`] | between two turns: which one follows, and until when the program waits for that |
//! | [`spool`] | writes what the program prints, and lines of this process's own between them |
//! | [`program`] | the program, and its standard streams |
//! | [`force`] | the end of a program that does not end by itself |
//! | [`exchange`] | the process, from start to end |
//!
//! What it is told on standard input, and the lines that it adds, are in [`run_folder`](crate::run_folder): others read and
//! write them too.

mod acp;
mod answers;
mod claude;
mod codex;
mod conversation;
mod exchange;
mod force;
mod program;
mod protocols;
mod questions;
mod rest;
mod rpc;
mod spool;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::run_folder::Protocol;

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
                format_args!("lost the connection to the agent: {error}\n"),
            );
            ExitCode::FAILURE
        }
    }
}
