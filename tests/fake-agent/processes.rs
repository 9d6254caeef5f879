//! Processes that the agent starts, and what they do.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, io, thread};

use rustix::process::setsid;

use crate::modes::hang;
use crate::script::{HANDED_ON, Script};

/// Tells a process of this program that it is the grandchild that nobody can stop politely.
pub(crate) const ESCAPEE: &str = "--escapee";
/// Tells a process of this program that it is one that only begins the next one; how many come after it follows.
pub(crate) const HOPPER: &str = "--hopper";
/// Tells a process of this program that it is a part of a fork bomb; how many generations come after it follows.
pub(crate) const BOMB: &str = "--bomb";

/// How many chains of processes `hoppers` begins, and how long each may get.
const CHAINS: usize = 3;
const HOPS: usize = 20_000;
/// How many children `many_processes` has.
const PROCESSES: usize = 200;
/// With the first one there are 2047 processes at most, and none of them lives longer than this: where nobody ends
/// them, they do no harm.
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

/// Starts a process that nobody waits for.
pub(crate) fn escape() -> io::Result<()> {
    Command::new(env::current_exe()?).arg(ESCAPEE).spawn().map(drop)
}

/// The grandchild: in a session of its own, holding what it has inherited.
pub(crate) fn escapee() -> io::Result<()> {
    setsid()?;
    hang()
}

/// A process of a chain: it begins the next one, and ends.
pub(crate) fn hopper(more: &str) -> io::Result<()> {
    match more.parse::<usize>() {
        Ok(more) if 0 < more => hop(more - 1),
        _ => Ok(()),
    }
}

/// Begins the next process of a chain: whoever looks for one that was there finds another.
fn hop(more: usize) -> io::Result<()> {
    start(HOPPER, more)
}

/// A part of a fork bomb: begins two more of its kind, as long as there may be more, and lives on.
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

/// Starts this program again, deaf to polite signals: a shell sets that up, and it outlives the `exec`.
pub(crate) fn start_again_deaf(script: &Script, arguments: &[String]) -> io::Result<()> {
    Err(Command::new("/bin/sh")
        .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
        .arg(env::current_exe()?)
        .args(arguments)
        .env(HANDED_ON, serde_json::to_string(script)?)
        .exec())
}
