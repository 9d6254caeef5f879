//! The command lines of a supervisor and of the exec stage.
//!
//! Each run needs both, and only Tokenrail itself starts them. The parser of other command lines would take most of
//! their time and memory. So they are parsed by hand, before anything else.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::exec::{ConverseProgram, exec_stage};
use super::supervise::supervise;
use crate::run_folder::{BUILD, REFUSED, SUPERVISE, SUPERVISOR};
use crate::time_slice::set_time_slice;

/// The first descriptor after standard input, output and error.
const FIRST_INHERITED: i32 = 3;

/// Supervises a run, or becomes its agent, if the command line of this process is `supervise <run folder>` or
/// `supervise --exec <run folder>`. `None` for any other command line. Must be called first in `main`.
pub fn supervisor_command() -> Option<ExitCode> {
    match &arguments()[..] {
        [command, folder] if command == SUPERVISE && !folder.as_encoded_bytes().starts_with(b"-") => {
            Some(set_up_and_run(|| supervise(Path::new(folder))))
        }
        [command, exec, folder] if command == SUPERVISE && exec == "--exec" => {
            Some(set_up_and_run(|| exec_stage(Path::new(folder), ConverseProgram::ThisProgram)))
        }
        _ => None,
    }
}

/// The `main` of the program `tokenrail-supervisor`: the same commands, for a server that was built from the same
/// sources. Each start of a supervisor names the server's build (`--for`), because an upgrade may have replaced one of
/// the programs.
///
/// Servers of other versions rely on `--version`, and on the refusal of unknown command lines. Both must not change.
pub fn supervisor_main() -> ExitCode {
    match &arguments()[..] {
        [command, folder, wanted, build] if command == SUPERVISE && wanted == "--for" && build == BUILD => {
            set_up_and_run(|| supervise(Path::new(folder)))
        }
        [command, exec, folder] if command == SUPERVISE && exec == "--exec" => {
            set_up_and_run(|| exec_stage(Path::new(folder), ConverseProgram::OfTheOrder))
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

/// Sets up this process, and runs the stage. The programs that the stage starts inherit no files or sockets of the
/// process that started the server. The process has no short time slice, and its memory is hidden.
fn set_up_and_run(stage: impl FnOnce() -> ExitCode) -> ExitCode {
    close_fds::set_fds_cloexec(FIRST_INHERITED, &[]);
    // The short slice is for the server. If it cannot be restored, the agent works with it.
    let _ = set_time_slice(None);
    // Agents must not read this process's memory. If it cannot be hidden, there is nowhere to report that.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    stage()
}
