//! The exec stage between the `converse` process and the program that it speaks with.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::become_program::{become_program, not_started};
use crate::run_folder::RunFolder;

/// Becomes the program that the `converse` process `parent` speaks with. The kernel kills it if `parent` ends. Returns
/// only if it cannot be started, with the reason in the run folder.
///
/// The body of the internal command `converse --exec-for <parent> - <run folder> -- <program> <args…>`.
pub fn exec_for(parent: i32, run_folder: &Path, program: &[OsString]) -> ExitCode {
    let start = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before the line above, the kernel sends no signal.
        if getppid().map(rustix::process::Pid::as_raw_pid) != Some(parent) {
            return Err(io::Error::other("the helper process that started this one has ended"));
        }
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, "no program was given");
        let name = program.first().ok_or_else(missing)?;
        become_program(name.clone(), program.to_vec(), std::env::vars_os().collect())
    };
    let failure = match start() {
        Err(error) => error,
        Ok(never) => match never {},
    };
    not_started(&RunFolder::at(run_folder), &failure)
}
