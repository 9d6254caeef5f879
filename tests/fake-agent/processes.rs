//! Processes that the agent starts.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, io, thread};

use rustix::process::setsid;

use crate::modes::hang;
use crate::script::{HANDED_ON, Script};

/// Starts a process as the grandchild that ignores polite signals.
pub(crate) const ESCAPEE: &str = "--escapee";
/// Starts a process that only starts the next one. The number of further processes follows.
pub(crate) const HOPPER: &str = "--hopper";
/// Starts a process of a fork bomb. The number of further generations follows.
pub(crate) const BOMB: &str = "--bomb";

/// How many chains of processes `hoppers` starts, and their maximum length.
const CHAINS: usize = 3;
const HOPS: usize = 20_000;
/// How many children `many_processes` has.
const PROCESSES: usize = 200;
/// Together with the first one, there are at most 2047 processes, and each lives no longer than [`BOMB_LIFE`]. So they
/// do no harm if nothing ends them.
const GENERATIONS: usize = 10;
const BOMB_LIFE: Duration = Duration::from_mins(1);

pub(crate) fn begin_many() -> io::Result<()> {
    (0..PROCESSES).try_for_each(|_| escape())
}

pub(crate) fn begin_chains() -> io::Result<()> {
    (0..CHAINS).try_for_each(|_| hop(HOPS))
}

pub(crate) fn begin_bomb() -> io::Result<()> {
    start(BOMB, GENERATIONS)
}

/// Starts a process without waiting for it.
pub(crate) fn escape() -> io::Result<()> {
    Command::new(env::current_exe()?).arg(ESCAPEE).spawn().map(drop)
}

/// The grandchild: in its own session, holding what it inherited.
pub(crate) fn escapee() -> io::Result<()> {
    setsid()?;
    hang()
}

/// A process of a chain: it starts the next one and ends.
pub(crate) fn hopper(more: &str) -> io::Result<()> {
    match more.parse::<usize>() {
        Ok(more) if 0 < more => hop(more - 1),
        _ => Ok(()),
    }
}

/// Starts the next process of a chain, so that the processes of a listing have already been replaced.
fn hop(more: usize) -> io::Result<()> {
    start(HOPPER, more)
}

/// A process of a fork bomb: it starts two more of its kind, unless it is of the last generation, and lives on.
pub(crate) fn bomb(more: &str) -> io::Result<()> {
    if let Ok(more @ 1..) = more.parse::<usize>() {
        (0..2).try_for_each(|_| start(BOMB, more - 1))?;
    }
    thread::sleep(BOMB_LIFE);
    Ok(())
}

fn start(kind: &str, more: usize) -> io::Result<()> {
    let mut next = Command::new(env::current_exe()?);
    next.args([kind, &more.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    next.spawn().map(drop)
}

/// Starts this program again, ignoring polite signals: a shell sets that up, and it survives `exec`.
pub(crate) fn start_again_deaf(script: &Script, arguments: &[String]) -> io::Result<()> {
    Err(Command::new("/bin/sh")
        .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
        .arg(env::current_exe()?)
        .args(arguments)
        .env(HANDED_ON, serde_json::to_string(script)?)
        .exec())
}
