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

/// How often it is looked at what the server holds; less often while nothing can be given back.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_EVERY_MAX: Duration = Duration::from_mins(1);
/// What a burst has left is given back when it is as much as this.
const GIVE_BACK_KIB: u64 = 4 << 10;

/// Gives back to the system, from now on, what bursts have left in the allocator's heaps. By itself it gives back their
/// ends only, and a thousand readers that come and go leave 50 MiB of free pages between what lives on.
pub(crate) fn give_back_after_bursts() -> io::Result<()> {
    thread::Builder::new().name("memory".to_owned()).spawn(|| {
        let (mut least, mut pause) = (u64::MAX, LOOK_EVERY);
        while let Some(held) = resident_kib() {
            least = least.min(held);
            if least + GIVE_BACK_KIB < held {
                trim();
                let given_back = held.saturating_sub(resident_kib().unwrap_or(held));
                let in_vain = given_back < GIVE_BACK_KIB;
                pause = if in_vain { (pause * 2).min(LOOK_EVERY_MAX) } else { LOOK_EVERY };
            }
            thread::sleep(pause);
        }
    })?;
    Ok(())
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
