//! Makes the system's memory allocator keep little freed memory, and return it to the system.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// glibc gives each thread a heap, and by itself raises the size from which freed memory is returned to the system.
/// After a flood, a server would keep several times the memory that it uses. With these settings it keeps what it
/// uses.
const SETTINGS: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "2097152"), ("MALLOC_TRIM_THRESHOLD_", "2097152")];

/// A user who sets one of these has a reason. The settings are left alone then.
const OTHERS: [&str; 2] = ["GLIBC_TUNABLES", "LD_PRELOAD"];

/// Replaces this process by the same program with these settings, which are read only when a program is loaded.
/// Returns `None` if a variable of `SETTINGS` or `OTHERS` is already set, and an error if the process cannot be
/// replaced.
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

/// How often the server checks how much memory it holds.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The longest wait between two tries, if the last tries returned too little memory.
const TRY_AGAIN_MAX: Duration = Duration::from_mins(1);
/// The memory that a burst has left is returned if it is more than this.
const GIVE_BACK_KIB: u64 = 4 << 10;

/// Starts a thread that returns to the system what bursts leave in the allocator's heaps. The allocator itself returns
/// only the ends of heaps. After a thousand readers have come and gone, 50 MiB of free pages remain between data that
/// is still in use.
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

/// When to try to return memory. After tries in vain, the next ones become rare until a new burst.
#[derive(Debug)]
struct Tries {
    /// The least memory that was ever held, in KiB.
    least: u64,
    /// The memory that was held after the last try, in KiB.
    left: u64,
    /// The number of checks from one try to the next, and how many of them remain. It doubles after each try in vain.
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

/// The memory that this process holds, in KiB; `None` if the system does not report it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way, and asks nothing of its caller")]
fn trim() {
    // SAFETY: `malloc_trim` may be called at any time from any thread, and touches only free memory.
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
