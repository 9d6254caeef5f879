//! The stage between supervisor and agent: sets up the process, then becomes the agent.

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

/// Whose program speaks with an agent that must be spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    ThisProgram,
    /// The server's, which the order names: this one cannot.
    OfTheOrder,
}

/// How much sooner than others an agent is ended for want of memory; the most is 1000.
const OOM_SCORE: i32 = 500;

/// The exit code where there is no agent to have one.
const NOT_STARTED: u8 = 127;

/// Becomes the agent that the run folder orders. Returns only if that fails; why is in the run folder then.
///
/// The body of the internal command `supervise --exec <run folder>`. Its standard streams are the agent's.
pub(super) fn exec_stage(run_folder: &Path, speaker: Speaker) -> ExitCode {
    let folder = RunFolder::at(run_folder);
    let failure = match prepare(&folder).and_then(|order| become_agent(&folder, order, speaker)) {
        Err(error) => error,
        Ok(never) => match never {},
    };
    // Where this cannot be written either, the exit code has to tell it all.
    let _ = folder.write(RunFolder::EXEC, &ExecFailure::from(&failure));
    ExitCode::from(NOT_STARTED)
}

/// Becomes the program with which process `parent` speaks, and ends with that. Returns only if that fails; why is in
/// the run folder then.
///
/// The body of the internal command `converse --exec-for <parent> - <run folder> -- <program> <args…>`.
pub fn exec_for(parent: i32, run_folder: &Path, program: &[OsString]) -> ExitCode {
    let become_program = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If it has died before the line above, nobody will send the signal.
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
    // If the supervisor died before the line above, nobody will send the signal.
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

/// Where the machine runs out of memory, the kernel is to end an agent rather than its server, or anybody else. What the
/// agent starts inherits that.
fn end_first_without_memory() {
    let score = "/proc/self/oom_score_adj";
    let inherited = fs::read_to_string(score).ok().and_then(|score| score.trim().parse::<i32>().ok());
    if inherited.is_some_and(|inherited| inherited < OOM_SCORE) {
        // Where it may not be written, the kernel chooses as it always did.
        let _ = fs::write(score, OOM_SCORE.to_string());
    }
}

/// Where the processor is short, those who follow agents come before what agents compute. What the agent starts inherits
/// that. By default Linux shares the processor between sessions first, and between the processes of each then, so it is
/// told of both: <https://man7.org/linux/man-pages/man7/sched.7.html>, "The autogroup feature".
fn give_way(nice: u64) {
    let nice = i32::try_from(nice).unwrap_or(i32::MAX);
    // Where it may not be, the agent has its share as everybody else.
    let _ = rustix::process::nice(nice);
    session_gives_way(nice);
}

/// The same for a session as a whole.
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

/// Not by way of the standard library: what the kernel does not know as a program, that would hand to a shell.
fn become_program(
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
) -> io::Result<Infallible> {
    // A Rust program ignores SIGPIPE, and an agent would inherit that. What is caught is not inherited.
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

/// The command line of whoever speaks with the program.
fn conversation(protocol: String, folder: &RunFolder, program: OsString, args: Vec<String>) -> Vec<OsString> {
    let folder = folder.path().as_os_str().to_owned();
    let own = ["tokenrail".into(), "converse".into(), protocol.into(), folder, "--".into()];
    own.into_iter().chain(command_line(program, args)).collect()
}

/// Enters the folder that was allowed. Between that and now, a part of its path may have become a link to elsewhere:
/// so what is compared is where this process really is.
fn enter(cwd: &Path) -> io::Result<()> {
    std::env::set_current_dir(cwd)?;
    if std::env::current_dir()? == cwd {
        return Ok(());
    }
    Err(io::Error::other("the working directory changed between its check and the start"))
}
