//! The run of an agent that this process is a part of.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;

/// The variable that each process of an agent's run has.
const RUN: &str = "TOKENRAIL_RUN";
/// How many processes above this one are looked at.
const ANCESTORS: usize = 64;

/// The run of this process, as the variable names it. An empty variable means that there is none. Many clients pass
/// only a few variables to the programs that they start, so without the variable, the processes above this one are
/// asked: the client has it.
pub(super) fn own_run() -> Option<String> {
    let run = std::env::var_os(RUN).or_else(|| run_of_ancestors(std::process::id()))?;
    run.into_string().ok().filter(|run| !run.is_empty())
}

fn run_of_ancestors(process: u32) -> Option<OsString> {
    let mut process = process;
    for _ in 0..ANCESTORS {
        process = parent(process)?;
        if let Some(run) = run_of(process) {
            return Some(run);
        }
    }
    None
}

/// The parent of a process. `None` above the first process, and on systems without `/proc`.
fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok().filter(|parent| *parent != 0)
}

/// The run of another process. `None` if it has none, or belongs to another user.
fn run_of(process: u32) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let run = variables.find_map(|variable| variable.strip_prefix(RUN.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(run.to_owned()))
}
