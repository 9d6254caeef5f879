//! The exec stage between supervisor and agent: sets up the process, then becomes the agent.

use std::convert::Infallible;
use std::ffi::{CString, NulError, OsString};
use std::fs;
use std::io;
use std::iter;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

use nix::unistd::execve;
use rustix::process::{
    Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit, setsid,
};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::run_folder::{ExecFailure, ExecOrder, RunFolder, SupervisorRecord, THIS_PROGRAM};

/// Which program runs `converse` for an agent that speaks a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    ThisProgram,
    /// The server's program, which the order names. This program cannot run `converse`.
    OfTheOrder,
}

/// The `oom_score_adj` of an agent, at most 1000. The higher it is, the sooner the kernel kills the process if memory
/// runs out.
const OOM_SCORE: i32 = 500;

/// The exit code if the agent could not be started.
const NOT_STARTED: u8 = 127;

/// Becomes the agent that the run folder orders. Returns only if that fails, with the reason in the run folder.
///
/// The body of the internal command `supervise --exec <run folder>`. The agent inherits its standard streams.
pub(super) fn exec_stage(run_folder: &Path, speaker: Speaker) -> ExitCode {
    let folder = RunFolder::at(run_folder);
    let failure = match prepare(&folder).and_then(|order| become_agent(&folder, order, speaker)) {
        Err(error) => error,
        Ok(never) => match never {},
    };
    // If this cannot be written either, only the exit code reports the failure.
    let _ = folder.write(RunFolder::EXEC, &ExecFailure::from(&failure));
    ExitCode::from(NOT_STARTED)
}

/// Becomes the program that the `converse` process `parent` speaks with. The kernel kills it if `parent` ends. Returns
/// only if it cannot be started, with the reason in the run folder.
///
/// The body of the internal command `converse --exec-for <parent> - <run folder> -- <program> <args…>`.
pub fn exec_for(parent: i32, run_folder: &Path, program: &[OsString]) -> ExitCode {
    let become_program = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before the line above, the kernel sends no signal.
        if getppid().map(rustix::process::Pid::as_raw_pid) != Some(parent) {
            return Err(io::Error::other("the helper process that started this one has ended"));
        }
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, "no program was given");
        let name = program.first().ok_or_else(missing)?;
        become_program(name.clone(), program.to_vec(), std::env::vars_os().collect())
    };
    let failure = match become_program() {
        Err(error) => error,
        Ok(never) => match never {},
    };
    let _ = RunFolder::at(run_folder).write(RunFolder::EXEC, &ExecFailure::from(&failure));
    ExitCode::from(NOT_STARTED)
}

fn prepare(folder: &RunFolder) -> io::Result<ExecOrder> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the supervisor died before the line above, the kernel sends no signal.
    let supervisor: Option<SupervisorRecord> = folder.read(RunFolder::SUPERVISOR)?;
    let parent = getppid().map(rustix::process::Pid::as_raw_pid);
    if supervisor.map(|supervisor| supervisor.pid) != parent {
        return Err(io::Error::other("the supervisor died"));
    }
    setsid()?;
    let order: ExecOrder = folder.read(RunFolder::ORDER)?.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "the file that says what to run is missing from the run folder",
        )
    })?;
    folder.forget_order()?;
    // A core file would put the agent's keys on the disk.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    end_first_without_memory();
    give_way(order.agent_nice);
    enter(Path::new(&order.cwd))?;
    Ok(order)
}

/// If the machine runs out of memory, the kernel should kill an agent rather than its server or any other process. The
/// agent's child processes inherit the score.
fn end_first_without_memory() {
    let score = "/proc/self/oom_score_adj";
    let inherited = fs::read_to_string(score).ok().and_then(|score| score.trim().parse::<i32>().ok());
    if inherited.is_some_and(|inherited| inherited < OOM_SCORE) {
        // If this fails, the kernel chooses as usual.
        let _ = fs::write(score, OOM_SCORE.to_string());
    }
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

fn become_agent(folder: &RunFolder, order: ExecOrder, speaker: Speaker) -> io::Result<Infallible> {
    let ExecOrder { program, args, env, converse, speaker: named, .. } = order;
    let (program, args) = match converse {
        None => (program.clone(), command_line(program, args)),
        Some(protocol) => {
            let speaker = match speaker {
                Speaker::ThisProgram => THIS_PROGRAM.into(),
                Speaker::OfTheOrder => named.ok_or_else(nobody_speaks)?,
            };
            (speaker, conversation(protocol, folder, program, args))
        }
    };
    become_program(program, args, env.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// Does not use the standard library, which would pass a file of an unknown format to a shell.
fn become_program(
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

fn nobody_speaks() -> io::Error {
    io::Error::other("the run folder does not say which helper process talks to the agent")
}

fn command_line(program: OsString, args: Vec<String>) -> Vec<OsString> {
    iter::once(program).chain(args.into_iter().map(OsString::from)).collect()
}

/// The command line of the `converse` process.
fn conversation(protocol: String, folder: &RunFolder, program: OsString, args: Vec<String>) -> Vec<OsString> {
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
    Err(io::Error::other("the working directory changed between its check and the start"))
}
