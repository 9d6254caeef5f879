//! The command lines of a supervisor and of its second stage.
//!
//! There are two of them for each turn, and they are started by the server alone: the parser of other command lines would
//! be most of the time and of the memory that they take. So they are read by hand, before anything else is done.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::exec::{Speaker, exec_stage};
use super::supervise::supervise;
use crate::run_folder::{BUILD, REFUSED, SUPERVISOR};

/// The first descriptor behind standard input, output and error.
const FIRST_INHERITED: i32 = 3;

/// Supervises a run, or begins one, where the command line of this process says so: `supervise <run folder>`, and
/// `supervise --exec <run folder>`. None where it says something else. To be called first thing in `main`.
pub fn supervisor_command() -> Option<ExitCode> {
    match &arguments()[..] {
        [command, folder] if command == "supervise" && !folder.as_encoded_bytes().starts_with(b"-") => {
            Some(alone(|| supervise(Path::new(folder))))
        }
        [command, exec, folder] if command == "supervise" && exec == "--exec" => {
            Some(alone(|| exec_stage(Path::new(folder), Speaker::ThisProgram)))
        }
        _ => None,
    }
}

/// All that the program `tokenrail-supervisor` does: the same, for a server that was built of the same sources. It is
/// told that at each start, for an upgrade may have put it beside another server's program.
///
/// Whatever else it will be able to do: `--version`, and the refusal of what it does not know, must stay as they are.
pub fn supervisor_main() -> ExitCode {
    match &arguments()[..] {
        [command, folder, wanted, build] if command == "supervise" && wanted == "--for" && build == BUILD => {
            alone(|| supervise(Path::new(folder)))
        }
        [command, exec, folder] if command == "supervise" && exec == "--exec" => {
            alone(|| exec_stage(Path::new(folder), Speaker::OfTheOrder))
        }
        [command] if command == "--version" => {
            let told = writeln!(std::io::stdout(), "{SUPERVISOR} {BUILD}");
            if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => ExitCode::from(REFUSED),
    }
}

fn arguments() -> Vec<OsString> {
    std::env::args_os().skip(1).take(5).collect()
}

/// Does it without what belongs to others: files and sockets of whoever has started the server.
fn alone(stage: impl FnOnce() -> ExitCode) -> ExitCode {
    close_fds::set_fds_cloexec(FIRST_INHERITED, &[]);
    // Agents are not to read this process's memory. Where it cannot be hidden, nobody is here to be told.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    stage()
}
