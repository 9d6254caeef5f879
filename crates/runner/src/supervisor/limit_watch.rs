//! Checks whether a run has too many processes or too much memory.
//!
//! Each supervisor checks by itself, because it outlives the server. A check must cost next to nothing. The kernel
//! numbers processes one after the other: if fewer have begun on the machine than the run may still start, there is
//! nothing to count. A count reads only the processes of the run.
//!
//! A thousand supervisors that wake ten times a second still use half a core. So a supervisor checks less often while
//! few processes begin on the machine. As soon as many begin, the server asks all supervisors to check.

use tokio::time::{Duration, Instant};

use crate::run_folder::{Begun, ExecOrder, OverLimit, Process, RunLimit, begun_since, own_family};

/// After a count of the run's processes, the next one waits for this many times as long as the count took.
const PAUSE_AFTER_WALK: u32 = 20;

/// While few processes begin on the machine, the pause between two checks is this many times as long.
const CALM: u32 = 10;

/// The shortest pause between two checks.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// Checks periodically whether a run is over one of its limits.
pub(super) struct LimitWatch {
    /// 0: no limit.
    processes_max: u64,
    /// 0: no limit.
    memory_bytes_max: u64,
    next_walk: Instant,
    /// A count is due, but had to wait for `next_walk`.
    postponed: bool,
    /// How many processes the run had at the last count.
    counted: u64,
    /// The number of the machine's newest process at that count.
    newest: Option<u64>,
    begun: Begun,
    check_every: Duration,
    calm: bool,
    over: Option<OverLimit>,
}

impl LimitWatch {
    pub(super) fn new(order: &ExecOrder) -> Self {
        Self {
            processes_max: order.agent_processes,
            memory_bytes_max: order.agent_memory_bytes,
            next_walk: Instant::now(),
            postponed: false,
            counted: 0,
            newest: None,
            begun: Begun::on_this_machine(),
            check_every: Duration::from_millis(order.look_ms.max(1)),
            calm: false,
            over: None,
        }
    }

    /// The first limit that the run exceeded, if any.
    pub(super) fn over(&self) -> Option<OverLimit> {
        self.over
    }

    /// Whether there is a limit to check. False once a limit is exceeded.
    pub(super) fn has_limits(&self) -> bool {
        let limited = 0 < self.processes_max || 0 < self.memory_bytes_max;
        limited && self.over.is_none()
    }

    /// Checks the limits. Returns whether the run is over one of them.
    pub(super) fn check(&mut self) -> bool {
        let began = Instant::now();
        // With a memory limit it is never calm, because the memory of one process can grow at any time.
        self.calm = !self.begun.is_storm() && self.memory_bytes_max == 0;
        let newest = self.begun.newest();
        let is_due = 0 < self.memory_bytes_max || self.may_have_too_many(newest);
        self.postponed = is_due && began < self.next_walk;
        if is_due && !self.postponed {
            self.walk(newest);
            self.next_walk = began + began.elapsed() * PAUSE_AFTER_WALK;
        }
        self.over.is_some()
    }

    /// How long to wait until the next check. After a postponed count, no longer than until it may begin: a server that
    /// has asked for the check does not ask again.
    pub(super) fn pause(&self) -> Duration {
        let pause = if self.calm { self.check_every * CALM } else { self.check_every };
        if self.postponed {
            let until_walk = self.next_walk.saturating_duration_since(Instant::now());
            return until_walk.min(pause).max(SHORTEST_PAUSE);
        }
        pause
    }

    /// Whether the run would have too many processes if all that have begun since the last count were its own.
    fn may_have_too_many(&self, newest: Option<u64>) -> bool {
        let at_most = begun_since(self.newest, newest).map(|begun| self.counted + begun);
        0 < self.processes_max && at_most.is_none_or(|at_most| self.processes_max < at_most)
    }

    fn walk(&mut self, newest: Option<u64>) {
        // If the count fails, the next check tries again.
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
        // Memory that processes share was counted for each of them. The exact measurement takes longer.
        let seen = processes.iter().map(Process::share_bytes).sum();
        if allowed < seen {
            self.over = Some(OverLimit { limit: RunLimit::MemoryBytes, allowed, seen });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(counted: u64, newest: Option<u64>) -> LimitWatch {
        LimitWatch {
            processes_max: 100,
            memory_bytes_max: 0,
            next_walk: Instant::now(),
            postponed: false,
            counted,
            newest,
            begun: Begun::on_this_machine(),
            check_every: Duration::from_millis(100),
            calm: false,
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
    fn a_count_that_must_wait_is_made_up_for() {
        const HOUR: Duration = Duration::from_hours(1);
        let mut watch = watch(0, None);
        (watch.check_every, watch.next_walk) = (24 * HOUR, Instant::now() + HOUR);
        assert!(!watch.check());
        assert!(watch.pause() <= HOUR, "{:?}", watch.pause());
        watch.next_walk = Instant::now();
        assert!(!watch.check());
        assert!(24 * HOUR <= watch.pause(), "the processes are counted");
    }
}
