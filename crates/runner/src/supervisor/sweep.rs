//! Ends all processes of a run.

use std::collections::HashSet;
use std::io;

use rustix::process::{Pid, Signal};
use tokio::time::{Duration, Instant};

use super::supervise::Supervisor;
use crate::run_folder::{Process, own_descendants};

/// How often the processes are counted while they are being ended. SIGCHLD reports most ends, but not those of
/// processes whose parent is alive.
const COUNT_AGAIN_MS: u64 = 10;

/// The outcome of a sweep.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// How many processes other than the agent took a signal. The agent is the child, and of an interactive agent also
    /// the program that the child has started.
    pub(super) signalled: u32,
    /// How many could not be ended.
    pub(super) left: u32,
}

impl Supervisor {
    /// Ends all descendants, within about 1.5 times the time `kill`. If the agent has ended, the processes that it left
    /// behind get SIGTERM first. SIGKILL comes at once if the run must end at once, or if the agent was asked to end
    /// and has not.
    ///
    /// The next steps are in `supervise.rs`: `finish_output`, then `record_exit`.
    pub(super) async fn sweep(&mut self, kill: Duration) -> io::Result<Swept> {
        let mut signalled = HashSet::new();
        let until = Instant::now() + kill;
        if self.child_has_ended() && !self.must_end() {
            // At least half of the time is for processes that ignore SIGTERM.
            let leftover = Duration::from_millis(self.order.leftover_grace_ms).min(kill / 2);
            self.end_all(Signal::TERM, Instant::now() + leftover, &mut signalled).await?;
        }
        let now = Instant::now();
        freeze_all(now + until.saturating_duration_since(now) / 2)?;
        // On a busy machine, listing many processes takes long. What is stopped must not wait for a signal in vain.
        let until = until.max(Instant::now() + kill / 2);
        let left = self.end_all(Signal::KILL, until, &mut signalled).await?;
        Ok(Swept { signalled: signalled.len() as u32, left })
    }

    /// Sends a signal to all descendants until none is left or the time is up, but at least once to each. Returns how
    /// many are left.
    async fn end_all(
        &mut self,
        signal: Signal,
        deadline: Instant,
        signalled: &mut HashSet<Pid>,
    ) -> io::Result<u32> {
        let mut asked = HashSet::new();
        loop {
            // Listed again each time, because others may begin while some are ended.
            let alive = own_descendants()?;
            if alive.is_empty() && (self.child_has_ended() || signal == Signal::TERM) {
                return Ok(0);
            }
            let left = alive.len() as u32;
            if signal == Signal::TERM && self.must_end() {
                return Ok(left);
            }
            let is_late = deadline <= Instant::now();
            for process in alive {
                // A second SIGTERM means "at once" to some programs.
                if asked.insert(process.identity()) && process.signal(signal) && !self.is_of_agent(&process) {
                    signalled.insert(process.pid);
                }
            }
            if is_late {
                return Ok(left);
            }
            self.wait(Some(deadline.min(Instant::now() + Duration::from_millis(COUNT_AGAIN_MS)))).await;
        }
    }

    /// Whether this is the child, or the program of an interactive agent: the `converse` process starts no other.
    fn is_of_agent(&self, process: &Process) -> bool {
        process.pid == self.child || (self.order.converse.is_some() && process.is_child_of(self.child))
    }
}

/// Sends SIGSTOP to all descendants, until there is no new one or the time is up. A killed process makes room for the
/// next process of a fork bomb. A stopped process does not, and starts no other.
fn freeze_all(deadline: Instant) -> io::Result<()> {
    let mut told = HashSet::new();
    loop {
        let alive = own_descendants()?;
        let new: Vec<_> = alive.iter().filter(|process| told.insert(process.identity())).collect();
        if new.is_empty() || deadline <= Instant::now() {
            return Ok(());
        }
        for process in new {
            process.signal(Signal::STOP);
        }
    }
}
