//! Whether a run has more processes or memory than it may.
//!
//! Many supervisors look many times a second, so a look must cost next to nothing: the kernel numbers processes one after
//! the other, and where fewer have begun on the machine than are still allowed, nobody need be counted. To count the
//! processes of a run, only those are asked for.

use std::fs::File;

use rustix::io::pread;
use tokio::time::Instant;

use crate::process::{ExecOrder, OverLimit, Process, RunLimit, own_family};

/// After a walk through all processes there is none for this many times as long as it took.
const REST_AFTER_WALK: u32 = 20;

/// `/proc/loadavg` is shorter.
const LOAD_BYTES: usize = 128;

/// Looks now and then whether a run is over one of its limits.
pub(super) struct LimitWatch {
    /// 0 is no limit, and so with the next one.
    processes_max: u64,
    memory_bytes_max: u64,
    next_walk: Instant,
    /// How many processes the run had when they were counted, and the newest of the machine then.
    counted: u64,
    newest: Option<u64>,
    load: Option<File>,
    over: Option<OverLimit>,
}

impl LimitWatch {
    pub(super) fn new(order: &ExecOrder) -> Self {
        Self {
            processes_max: order.agent_processes,
            memory_bytes_max: order.agent_memory_bytes,
            next_walk: Instant::now(),
            counted: 0,
            newest: None,
            load: File::open("/proc/loadavg").ok(),
            over: None,
        }
    }

    /// The first limit that was found to be passed.
    pub(super) fn over(&self) -> Option<OverLimit> {
        self.over
    }

    /// Whether there is something to look for.
    pub(super) fn looks(&self) -> bool {
        let limited = 0 < self.processes_max || 0 < self.memory_bytes_max;
        limited && self.over.is_none()
    }

    /// Says whether the run is over a limit.
    pub(super) fn look(&mut self) -> bool {
        let began = Instant::now();
        let newest = newest_process(self.load.as_ref());
        if self.next_walk <= began && (0 < self.memory_bytes_max || self.may_have_too_many(newest)) {
            self.walk(newest);
            self.next_walk = began + began.elapsed() * REST_AFTER_WALK;
        }
        self.over.is_some()
    }

    /// Whether there could be too many processes, if all that have begun since they were counted were of this run.
    fn may_have_too_many(&self, newest: Option<u64>) -> bool {
        // The numbers begin again at their end.
        let begun = newest.zip(self.newest).and_then(|(newest, before)| newest.checked_sub(before));
        let at_most = begun.map(|begun| self.counted + begun);
        0 < self.processes_max && at_most.is_none_or(|at_most| self.processes_max < at_most)
    }

    fn walk(&mut self, newest: Option<u64>) {
        // Where they cannot be counted now, they are the next time.
        let Ok(processes) = own_family() else { return };
        (self.counted, self.newest) = (processes.len() as u64, newest);
        if 0 < self.processes_max && self.processes_max < self.counted {
            let (limit, allowed, seen) = (RunLimit::Processes, self.processes_max, self.counted);
            self.over = Some(OverLimit { limit, allowed, seen });
            return;
        }
        let allowed = self.memory_bytes_max;
        if allowed == 0 || processes.iter().map(Process::held_bytes).sum::<u64>() <= allowed {
            return;
        }
        // What processes share was counted for each of them: now it is looked at more closely, which takes longer.
        let seen = processes.iter().map(Process::share_bytes).sum();
        if allowed < seen {
            self.over = Some(OverLimit { limit: RunLimit::MemoryBytes, allowed, seen });
        }
    }
}

/// The number of the process or thread that has begun last, anywhere on the machine, by `/proc/loadavg`.
fn newest_process(load: Option<&File>) -> Option<u64> {
    let mut text = [0; LOAD_BYTES];
    let read = pread(load?, &mut text, 0).ok()?;
    str::from_utf8(&text[..read]).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(counted: u64, newest: Option<u64>) -> LimitWatch {
        LimitWatch {
            processes_max: 100,
            memory_bytes_max: 0,
            next_walk: Instant::now(),
            counted,
            newest,
            load: None,
            over: None,
        }
    }

    #[test]
    fn processes_are_counted_only_where_there_could_be_too_many() {
        for (counted, before, newest, expected) in [
            (40, Some(1000), Some(1060), false),
            (40, Some(1000), Some(1061), true),
            (0, None, Some(5), true),
            (0, Some(5), None, true),
            // The numbers have begun again.
            (1, Some(32_000), Some(300), true),
        ] {
            assert_eq!(watch(counted, before).may_have_too_many(newest), expected, "{before:?} {newest:?}");
        }
    }

    #[test]
    fn the_kernel_tells_which_process_is_the_newest() {
        let load = File::open("/proc/loadavg").unwrap();
        for _ in 0..2 {
            let newest = newest_process(Some(&load));
            assert!(newest.is_some_and(|newest| u64::from(std::process::id()) <= newest), "{newest:?}");
        }
    }
}
