//! The process table: reads `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::RawDir;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, waitid,
};

use super::records::SupervisorRecord;

/// How much of the list of a process's threads is read at once. An entry takes 32 bytes.
const THREADS_BYTES: usize = 1 << 10;

/// One process. The start time distinguishes it from a later process with the same id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    parent: i32,
    start_time: u64,
}

impl Process {
    /// The process with this id. `None` if it does not exist, or has ended and is only a zombie.
    pub(crate) fn find(pid: Pid) -> Option<Self> {
        Self::read(pid, &fs::read_to_string(file(pid, "stat")).ok()?)
    }

    fn read(pid: Pid, stat: &str) -> Option<Self> {
        // The second field is the program's name, which may contain blanks and parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let threads: u32 = fields.nth(15)?.parse().ok()?;
        let start_time = fields.nth(1)?.parse().ok()?;
        // The state is that of the first thread. If other threads are left, the process has not ended, and its children
        // still belong to it.
        let has_ended = state == "X" || (state == "Z" && threads <= 1);
        (!has_ended).then_some(Self { pid, parent, start_time })
    }

    /// Whether this was its parent when the process was read.
    pub(crate) fn is_child_of(&self, parent: Pid) -> bool {
        self.parent == parent.as_raw_pid()
    }

    /// The fields that never change while the process lives. Its parent can change.
    pub(crate) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.start_time)
    }

    /// A descriptor that becomes readable when the process ends. `None` if it has already ended.
    pub(crate) fn open(&self) -> io::Result<Option<OwnedFd>> {
        match pidfd_open(self.pid, PidfdFlags::NONBLOCK) {
            // Checked after opening: otherwise the id could have gone to another process in between.
            Ok(fd) => {
                Ok((Self::find(self.pid).map(|found| found.start_time) == Some(self.start_time))
                    .then_some(fd))
            }
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The memory that the kernel cannot take from the process: private and shared, in memory or swapped out, without
    /// mapped files.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.sizes("status", ["RssAnon:", "RssShmem:", "VmSwap:"]).unwrap_or(0)
    }

    /// The same, but only the process's part of shared memory. This takes longer. If the kernel does not permit it for
    /// this process, the result is [`Process::held_bytes`].
    pub(crate) fn share_bytes(&self) -> u64 {
        let own = self.sizes("smaps_rollup", ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"]);
        own.unwrap_or_else(|| self.held_bytes())
    }

    /// The sum of lines like `RssAnon:  123 kB`, in bytes. `None` if there is no such line.
    fn sizes(&self, name: &str, fields: [&str; 3]) -> Option<u64> {
        let text = fs::read_to_string(file(self.pid, name)).ok()?;
        let kibibytes = text.lines().filter_map(|line| {
            let size = fields.iter().find_map(|field| line.strip_prefix(field))?;
            size.trim_end_matches("kB").trim().parse::<u64>().ok()
        });
        kibibytes.map(|kibibytes| kibibytes << 10).reduce(|sum, more| sum + more)
    }

    /// Sends a signal. Returns false if the process has ended, or if this user may not signal it.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        matches!(self.open(), Ok(Some(fd)) if pidfd_send_signal(&fd, signal).is_ok())
    }
}

impl SupervisorRecord {
    /// The record of this very process.
    pub(crate) fn own() -> io::Result<Self> {
        let pid = rustix::process::getpid();
        let own = Process::find(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        Ok(Self { pid: pid.as_raw_pid(), start_time: own.start_time, boot_id: boot_id()? })
    }

    /// A descriptor of the supervisor that wrote the record. `None` if the supervisor has ended.
    pub(crate) fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(found) = Pid::from_raw(self.pid).and_then(Process::find) else { return Ok(None) };
        if found.start_time != self.start_time || boot_id()? != self.boot_id {
            return Ok(None);
        }
        found.open()
    }

    /// Kills the supervisor and all its descendants. These are listed first, because they cannot be identified once it
    /// has ended. Blocks.
    pub(crate) fn kill_with_descendants(&self) -> io::Result<()> {
        let (Some(pidfd), Some(pid)) = (self.open()?, Pid::from_raw(self.pid)) else { return Ok(()) };
        let family = descendants(pid)?;
        match pidfd_send_signal(&pidfd, Signal::KILL) {
            Err(error) if error != Errno::SRCH => return Err(error.into()),
            _ => {}
        }
        for process in family {
            process.signal(Signal::KILL);
        }
        Ok(())
    }
}

/// All processes that descend from this one.
pub(crate) fn descendants(ancestor: Pid) -> io::Result<Vec<Process>> {
    let seen: Vec<Process> = pids()?.filter_map(Process::find).collect();
    let pids: HashSet<i32> = seen.iter().map(|process| process.pid.as_raw_pid()).collect();
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in seen {
        // If the parent has ended since the child was read, the child has another parent now.
        let known = pids.contains(&process.parent);
        let process = if known { Some(process) } else { Process::find(process.pid) };
        if let Some(process) = process {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor.as_raw_pid()];
    while let Some(parent) = open.pop() {
        let born = children.remove(&parent).unwrap_or_default();
        open.extend(born.iter().map(|process| process.pid.as_raw_pid()));
        found.extend(born);
    }
    Ok(found)
}

/// All descendants of this process, which must be a subreaper. If it has no child, no other process is read.
pub(crate) fn own_descendants() -> io::Result<Vec<Process>> {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, peek) {
        Err(Errno::CHILD) => Ok(Vec::new()),
        _ => descendants(getpid()),
    }
}

/// The same, good enough for counting. It asks the kernel for the children of each process and reads no others. While
/// some processes are ending, others may be missing.
pub(crate) fn own_family() -> io::Result<Vec<Process>> {
    let own = getpid();
    // Not every kernel is built with `/proc/<pid>/task/<tid>/children`.
    let Ok(mut open) = children(own) else { return own_descendants() };
    let mut found = Vec::new();
    while let Some(pid) = open.pop() {
        // A process that has ended has no children any more: they have another parent.
        open.extend(children(pid).unwrap_or_default());
        found.extend(Process::find(pid));
    }
    Ok(found)
}

fn children(parent: Pid) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    // The standard library would read the list with a buffer of 32 KiB, which a supervisor uses nowhere else.
    let mut buffer = [MaybeUninit::uninit(); THREADS_BYTES];
    let mut threads = RawDir::new(File::open(file(parent, "task"))?, &mut buffer);
    while let Some(thread) = threads.next() {
        let thread = thread?;
        // Skips `.` and `..`. All other names are numbers.
        let Some(thread) = thread.file_name().to_str().ok().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let text = fs::read_to_string(file(parent, &format!("task/{thread}/children")))?;
        found.extend(text.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    Ok(found)
}

/// Kills all processes that have `variable` (`NAME=value`) in their environment, until none is left or the time is
/// up, but each at least once. Returns how many were killed, and how many are left.
///
/// It does not find a process that has cleared its environment. A supervisor would, so this is only for runs whose
/// supervisor has died. Blocks.
pub(crate) fn kill_marked(variable: &str, kill_grace_ms: u64) -> io::Result<(u32, u32)> {
    let until = Instant::now() + Duration::from_millis(kill_grace_ms);
    let mut killed = HashSet::new();
    loop {
        let marked = with_entry("environ", variable.as_bytes())?;
        let is_late = until <= Instant::now();
        killed.extend(marked.iter().filter(|process| process.signal(Signal::KILL)).map(Process::identity));
        if marked.is_empty() || is_late {
            return Ok((killed.len() as u32, marked.len() as u32));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether any process has `argument` on its command line.
pub(crate) fn is_argument(argument: &[u8]) -> io::Result<bool> {
    Ok(!with_entry("cmdline", argument)?.is_empty())
}

/// The processes whose NUL-separated file `name` has `entry`.
fn with_entry(name: &str, entry: &[u8]) -> io::Result<Vec<Process>> {
    let has_entry = |pid: &Pid| {
        // If the file cannot be read, the process has ended or belongs to another user.
        fs::read(file(*pid, name)).is_ok_and(|text| text.split(|byte| *byte == 0).any(|part| part == entry))
    };
    Ok(pids()?.filter(has_entry).filter_map(Process::find).collect())
}

fn pids() -> io::Result<impl Iterator<Item = Pid>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?)))
}

fn file(pid: Pid, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// The id of this boot of the machine. Empty if the kernel has none: then only the start time identifies a process.
fn boot_id() -> io::Result<String> {
    match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => Ok(id.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(state: &str, threads: u32) -> Option<(i32, u64)> {
        let stat =
            format!("7 (a) Z b) {state} 5 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 {threads} 0 4711 9 10\n");
        Process::read(Pid::from_raw(7)?, &stat).map(|process| (process.parent, process.start_time))
    }

    #[test]
    fn the_family_of_a_process_is_found_however_deep_it_is() {
        // A program that has another one run a third.
        let mut child = std::process::Command::new("timeout")
            .args(["600", "timeout", "600", "cat"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        // Other tests have children too, which come and go.
        let ours = |found: Vec<Process>| -> HashSet<_> {
            let of = |parent| found.iter().filter(move |process| process.parent == parent);
            let inner = of(pid).flat_map(|other| of(other.pid.as_raw_pid()));
            let own = found.iter().filter(|process| process.pid.as_raw_pid() == pid);
            own.chain(of(pid)).chain(inner).map(Process::identity).collect()
        };
        let is_whole = |found: &HashSet<_>| 3 <= found.len();
        while !is_whole(&ours(own_family().unwrap())) || !is_whole(&ours(own_descendants().unwrap())) {
            thread::yield_now();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_ends_with_its_last_thread_and_not_with_its_first() {
        assert_eq!(read("S", 1), Some((5, 4711)));
        assert_eq!(read("Z", 2), Some((5, 4711)), "the first thread has ended, and another one has not");
        assert_eq!((read("Z", 1), read("X", 0)), (None, None));
    }
}
