//! The exec stage between supervisor and agent: sets up the process, then becomes the agent.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::iter;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{
    Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit, setsid,
};

use crate::become_program::{become_program, not_started};
use crate::out_of_memory;
use crate::run_folder::{ExecOrder, RunFolder, SupervisorRecord, THIS_PROGRAM};

/// Which program runs `converse` for an agent that speaks a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConverseProgram {
    ThisProgram,
    /// The server's program, which the order names, because `tokenrail-supervisor` cannot run `converse`.
    OfTheOrder,
}

/// Becomes the agent that the run folder orders. Returns only if that fails, with the reason in the run folder.
///
/// The body of the internal command `supervise --exec <run folder>`. The agent inherits its standard streams.
pub(super) fn exec_stage(run_folder: &Path, which: ConverseProgram) -> ExitCode {
    let folder = RunFolder::at(run_folder);
    let failure = match prepare(&folder).and_then(|order| become_agent(&folder, order, which)) {
        Err(error) => error,
        Ok(never) => match never {},
    };
    not_started(&folder, &failure)
}

/// Takes the order from the run folder, and sets up this process for the agent.
fn prepare(folder: &RunFolder) -> io::Result<ExecOrder> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the supervisor died before the line above, the kernel sends no signal.
    let supervisor: Option<SupervisorRecord> = folder.read(RunFolder::SUPERVISOR)?;
    let parent = getppid().map(rustix::process::Pid::as_raw_pid);
    if supervisor.map(|supervisor| supervisor.pid) != parent {
        return Err(io::Error::other("the supervisor died"));
    }
    // The agent leads a session and a process group of its own: a signal to its group does not reach the supervisor.
    setsid()?;
    let order = take_order(folder)?;
    // A core file would put the agent's keys on the disk.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    out_of_memory::end_first("self");
    give_way(order.agent_nice);
    enter(Path::new(&order.cwd))?;
    Ok(order)
}

/// Reads the order and removes it, because it contains the agent's environment.
fn take_order(folder: &RunFolder) -> io::Result<ExecOrder> {
    let order = folder.order()?;
    folder.forget_order()?;
    Ok(order)
}

/// Lowers the agent's priority: if the processor is busy, the server goes before the work of agents. The agent's child
/// processes inherit the niceness. By default Linux shares the processor between sessions first, and then between the
/// processes of each session, so both get the value: <https://man7.org/linux/man-pages/man7/sched.7.html>, "The
/// autogroup feature".
fn give_way(nice: u64) {
    let nice = i32::try_from(nice).unwrap_or(i32::MAX);
    // If this fails, the agent has the same priority as other processes.
    let _ = rustix::process::nice(nice);
    session_gives_way(nice);
}

/// Sets the niceness of this process's session as a whole.
pub(super) fn session_gives_way(nice: i32) {
    let _ = fs::write("/proc/self/autogroup", nice.to_string());
}

fn become_agent(folder: &RunFolder, order: ExecOrder, which: ConverseProgram) -> io::Result<Infallible> {
    let ExecOrder { program, args, env, converse, converse_program, .. } = order;
    let (program, args) = match converse {
        None => (program.clone(), command_line(program, args)),
        Some(protocol) => {
            let converse = match which {
                ConverseProgram::ThisProgram => THIS_PROGRAM.into(),
                ConverseProgram::OfTheOrder => converse_program.ok_or_else(no_converse_program)?,
            };
            (converse, converse_command_line(protocol, folder, program, args))
        }
    };
    become_program(program, args, env.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn no_converse_program() -> io::Error {
    io::Error::other("the run folder does not say which helper process talks to the agent")
}

fn command_line(program: OsString, args: Vec<String>) -> Vec<OsString> {
    iter::once(program).chain(args.into_iter().map(OsString::from)).collect()
}

/// The command line of the `converse` process. The next step is [`converse`](crate::converse()), which the server's
/// program calls for it (`cli.rs` in the server crate).
fn converse_command_line(
    protocol: String,
    folder: &RunFolder,
    program: OsString,
    args: Vec<String>,
) -> Vec<OsString> {
    let folder = folder.path().as_os_str().to_owned();
    let own = ["tokenrail".into(), "converse".into(), protocol.into(), folder, "--".into()];
    own.into_iter().chain(command_line(program, args)).collect()
}

/// Enters the allowed working directory. Since it was checked, a part of its path may have become a link to another
/// place. So the function compares where this process really is.
fn enter(cwd: &Path) -> io::Result<()> {
    std::env::set_current_dir(cwd)?;
    if std::env::current_dir()? == cwd {
        return Ok(());
    }
    Err(io::Error::other("the working directory's path changed after it was checked; try again"))
}
