//! What the server asks of the system's memory allocator: to keep little of what was freed, and to give it back.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// glibc gives a heap to each thread, and raises by itself the size from which freed memory goes back to the system: after
/// a flood a server would keep several times of what it uses. With these settings it keeps what it uses.
const SETTINGS: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "2097152"), ("MALLOC_TRIM_THRESHOLD_", "2097152")];

/// Whoever sets one of these knows what it is for.
const OTHERS: [&str; 2] = ["GLIBC_TUNABLES", "LD_PRELOAD"];

/// Replaces this process by the same program with these settings, which are read when a program is loaded and at no
/// other time. Gives nothing where they are there already.
pub(crate) fn start_again_with_settings() -> Option<io::Error> {
    let mut names = SETTINGS.iter().map(|(name, _)| *name).chain(OTHERS);
    if names.any(|name| std::env::var_os(name).is_some()) {
        return None;
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Some(error),
    };
    let mut args = std::env::args_os();
    let name = args.next();
    let mut command = Command::new(program);
    command.arg0(name.as_deref().unwrap_or(OsStr::new("tokenrail"))).args(args).envs(SETTINGS);
    Some(command.exec())
}

/// How often the server looks at what it holds.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long it waits at most before it tries again to give something back, where the last tries were in vain.
const TRY_AGAIN_MAX: Duration = Duration::from_mins(1);
/// What a burst has left is given back when it is as much as this.
const GIVE_BACK_KIB: u64 = 4 << 10;

/// Gives back to the system, from now on, what bursts have left in the allocator's heaps. By itself it gives back their
/// ends only, and a thousand readers that come and go leave 50 MiB of free pages between what lives on.
pub(crate) fn give_back_after_bursts() -> io::Result<()> {
    thread::Builder::new().name("memory".to_owned()).spawn(|| {
        let mut tries = Tries::default();
        while let Some(held) = resident_kib() {
            if tries.are_due(held) {
                trim();
                tries.tried(held, resident_kib().unwrap_or(held));
            }
            thread::sleep(LOOK_EVERY);
        }
    })?;
    Ok(())
}

/// When to try to give memory back. Tries that were in vain become rare, until there is something new to be given back.
#[derive(Debug)]
struct Tries {
    /// The least that was ever held.
    least: u64,
    /// What the last try has left.
    left: u64,
    /// How many looks to wait after a try in vain, and how many of them are to come.
    pause: u32,
    to_come: u32,
}

impl Default for Tries {
    fn default() -> Self {
        Self { least: u64::MAX, left: 0, pause: 1, to_come: 0 }
    }
}

impl Tries {
    fn are_due(&mut self, held: u64) -> bool {
        self.least = self.least.min(held);
        self.to_come = self.to_come.saturating_sub(1);
        let is_new_burst = self.left + GIVE_BACK_KIB < held;
        self.least + GIVE_BACK_KIB < held && (is_new_burst || self.to_come == 0)
    }

    fn tried(&mut self, held: u64, left: u64) {
        let in_vain = held.saturating_sub(left) < GIVE_BACK_KIB;
        let most = (TRY_AGAIN_MAX.as_secs() / LOOK_EVERY.as_secs()) as u32;
        self.pause = if in_vain { (self.pause * 2).min(most) } else { 1 };
        (self.left, self.to_come) = (left, self.pause);
    }
}

/// The memory that this process has, in KiB; none where the system does not tell.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way, and asks nothing of its caller")]
fn trim() {
    // SAFETY: it may be called at any time from any thread, and touches free memory only.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 10;

    /// How many looks pass until it is tried again, with so much held at each.
    fn looks_until_due(tries: &mut Tries, held: u64) -> usize {
        (1..100).find(|_| tries.are_due(held)).expect("it is tried in the end")
    }

    #[test]
    fn tries_in_vain_become_rare() {
        let mut tries = Tries::default();
        assert!(!tries.are_due(10 * MIB), "there is nothing to be given back");
        let waits: Vec<usize> = (0..6)
            .map(|_| {
                let looks = looks_until_due(&mut tries, 30 * MIB);
                tries.tried(30 * MIB, 30 * MIB);
                looks
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 12, 12]);
    }

    #[test]
    fn what_another_burst_leaves_is_given_back_at_the_next_look() {
        let mut tries = Tries::default();
        tries.are_due(10 * MIB);
        for _ in 0..6 {
            looks_until_due(&mut tries, 30 * MIB);
            tries.tried(30 * MIB, 30 * MIB);
        }
        assert_eq!(looks_until_due(&mut tries, 60 * MIB), 1);
        tries.tried(60 * MIB, 31 * MIB);
        assert_eq!(looks_until_due(&mut tries, 31 * MIB), 1, "and the next one soon after");
    }
}
