//! The last step of both exec stages: this process becomes another program.

use std::convert::Infallible;
use std::ffi::{CString, NulError, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use nix::unistd::execve;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::run_folder::{RunFailure, RunFolder};

/// The exit code if the program could not be started.
const NOT_STARTED: u8 = 127;

/// Becomes the program. Returns only if that fails.
///
/// Does not use the standard library, which would pass a file of an unknown format to a shell.
pub(crate) fn become_program(
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
) -> io::Result<Infallible> {
    // A Rust program ignores SIGPIPE, and an agent would inherit that. A caught signal is reset by execve.
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let _caught = signal(SignalKind::pipe())?;
    let program = CString::new(program.into_vec())?;
    let args: Vec<_> =
        args.into_iter().map(|arg| CString::new(arg.into_vec())).collect::<Result<_, NulError>>()?;
    let variable = |(name, value): (OsString, OsString)| {
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    let env: Vec<_> = env.into_iter().map(variable).collect::<Result<_, _>>()?;
    Ok(execve(&program, &args, &env)?)
}

/// Records in the run folder why the program could not be started. Returns the exit code.
pub(crate) fn not_started(folder: &RunFolder, failure: &io::Error) -> ExitCode {
    // If this cannot be written either, only the exit code reports the failure.
    let _ = folder.write(RunFolder::EXEC_FAILURE, &RunFailure::from(failure));
    ExitCode::from(NOT_STARTED)
}
