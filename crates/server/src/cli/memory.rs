//! What the server asks of the system's memory allocator.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// glibc gives a heap to each thread, and raises by itself the size from which freed memory goes back to the system: after
/// a flood a server would keep several times of what it uses. With these settings it keeps what it uses.
const SETTINGS: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "262144"), ("MALLOC_TRIM_THRESHOLD_", "262144")];

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
