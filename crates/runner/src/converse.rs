//! Runs an interactive agent program: a process of its own, between supervisor and program.
//!
//! Some programs receive their prompt as a message of a protocol, request permissions and wait for the answers. For
//! these, the exec stage becomes `tokenrail converse <protocol> <run folder> -- <program> <args…>`. This process
//! starts the program, and sends the messages that the protocol requires. It copies the program's output to its own
//! standard output, a pipe that the supervisor copies into the spool (`supervisor/output.rs`). So an open permission
//! request survives a restart of the server, as the agent does.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`conversation`] | the turns in one protocol, without I/O: lines in, messages out |
//! | [`acp`], [`claude`], [`codex`] | the protocols, selected by [`protocols`] |
//! | [`rpc`] | reads the fields of JSON messages |
//! | [`raw_object`] | the messages of a program, of which only a few fields are used |
//! | [`pending_requests`] | the open permission requests, their options and deadlines |
//! | [`fifo`] | what the server sends to a running conversation |
//! | [`idle`] | between two turns: how long the program stays idle, and which turn follows |
//! | [`prompt`] | the prompt of a turn, with its images |
//! | [`printed`] | prints the program's output, and the added lines between its lines |
//! | [`program`] | the program, and its standard streams |
//! | [`force`] | ends a program that does not end by itself |
//! | [`exec`] | the stage between this process and the program: `converse --exec-for` |
//! | [`exchange`] | the process, from start to end |
//!
//! Other processes use the same formats: its standard input and what the server sends are defined in
//! [`run_folder`](crate::run_folder), and the lines that it adds in [`AddedLine`](tokenrail_ports::AddedLine).

mod acp;
mod claude;
mod codex;
mod conversation;
mod exchange;
mod exec;
mod fifo;
mod force;
mod idle;
mod pending_requests;
mod printed;
mod program;
mod prompt;
mod protocols;
mod raw_object;
mod rpc;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use tokenrail_ports::IClock;

pub use self::exec::exec_for;
use self::pending_requests::PendingRequests;
use crate::run_folder::{Opening, Protocol, RunFolder};

/// Runs the program through its turn, and through the further turns that it receives while it is idle.
///
/// The body of the internal command `converse`. Its standard input is the opening. The supervisor copies its standard
/// output into the spool.
/// The exit code is the program's, or 128 plus the signal's number if a signal ended the program. `clock` tells when a
/// permission was requested.
pub fn converse(protocol: Protocol, run_folder: &Path, program: &[OsString], clock: &dyn IClock) -> ExitCode {
    match run(protocol, run_folder, program, clock) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // An agent reports its problems on standard error.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("lost the connection to the agent: {error}\n"),
            );
            ExitCode::FAILURE
        }
    }
}

fn run(protocol: Protocol, run_folder: &Path, program: &[OsString], clock: &dyn IClock) -> io::Result<u8> {
    let mut opening = Vec::new();
    io::stdin().lock().read_to_end(&mut opening)?;
    let opening: Opening = serde_json::from_slice(&opening)?;
    let requests = PendingRequests::new(&opening, clock);
    exchange::run((protocol, opening), requests, &RunFolder::at(run_folder), program)
}
