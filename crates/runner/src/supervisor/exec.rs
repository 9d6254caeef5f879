//! The stage between supervisor and agent: sets up the process, then becomes the agent.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{
    Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit, setsid,
};

use crate::process::{ExecFailure, ExecOrder, RunFolder, SupervisorRecord};

/// The exit code where there is no agent to have one.
const NOT_STARTED: u8 = 127;

/// Becomes the agent that the run folder orders. Returns only if that fails; why is in the run folder then.
///
/// The body of the internal command `supervise --exec <run folder>`. Its standard streams are the agent's.
pub fn exec_stage(run_folder: &Path) -> ExitCode {
    let folder = RunFolder::at(run_folder);
    let failure = match prepare(&folder) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    };
    // Where this cannot be written either, the exit code has to tell it all.
    let _ = folder.write(RunFolder::EXEC, &ExecFailure { text: failure.to_string() });
    ExitCode::from(NOT_STARTED)
}

fn prepare(folder: &RunFolder) -> io::Result<Command> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the supervisor has died before the line above, nobody will send the signal.
    let supervisor: Option<SupervisorRecord> = folder.read(RunFolder::SUPERVISOR)?;
    let parent = getppid().map(rustix::process::Pid::as_raw_pid);
    if supervisor.map(|supervisor| supervisor.pid) != parent {
        return Err(io::Error::other("the supervisor has died"));
    }
    setsid()?;
    let order: ExecOrder = folder
        .read(RunFolder::ORDER)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no order in the run folder"))?;
    folder.forget_order()?;
    // A core file would put the agent's keys on the disk.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    enter(Path::new(&order.cwd))?;
    let mut command = Command::new(order.program);
    command.args(order.args).env_clear().envs(order.env);
    Ok(command)
}

/// Enters the folder that was allowed. Between that and now, a part of its path may have become a link to elsewhere:
/// so what is compared is where this process really is.
fn enter(cwd: &Path) -> io::Result<()> {
    std::env::set_current_dir(cwd)?;
    if std::env::current_dir()? == cwd {
        return Ok(());
    }
    Err(io::Error::other("the working directory has become another one"))
}
