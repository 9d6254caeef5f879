//! Ends everything that a run has started.

use std::collections::HashSet;
use std::io;

use rustix::process::{Pid, Signal};
use tokio::time::{Duration, Instant};

use super::supervise::Supervisor;
use crate::run_folder::own_descendants;

/// How often the processes are counted while they are being ended. Most ends are told by a signal; those of
/// processes with a living parent are not.
const COUNT_AGAIN_MS: u64 = 10;

/// What became of the processes of a run.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// How many outlived the agent and were ended.
    pub(super) reaped: u32,
    /// How many could not be.
    pub(super) left: u32,
}

impl Supervisor {
    /// Ends all descendants. If the agent has ended, what it has left behind is asked to; if it has not, it was
    /// asked already. Where the run must end at once nobody is asked. It takes no longer than `kill`.
    pub(super) async fn sweep(&mut self, kill: Duration) -> io::Result<Swept> {
        let mut ended = HashSet::new();
        let until = Instant::now() + kill;
        if self.agent_has_ended() && !self.must_end() {
            // The second half at least is for those who do not listen.
            let leftover = Duration::from_millis(self.order.leftover_grace_ms).min(kill / 2);
            self.end_all(Signal::TERM, Instant::now() + leftover, &mut ended).await?;
        }
        freeze_all(Instant::now() + kill / 2)?;
        let left = self.end_all(Signal::KILL, until, &mut ended).await?;
        ended.remove(&self.agent);
        Ok(Swept { reaped: ended.len() as u32, left })
    }

    /// Sends a signal to all descendants until there are none or the time is up. Gives how many are left.
    async fn end_all(
        &mut self,
        signal: Signal,
        deadline: Instant,
        ended: &mut HashSet<Pid>,
    ) -> io::Result<u32> {
        let mut asked = HashSet::new();
        loop {
            // They are found anew each time: while some are ended, others may be born.
            let alive = own_descendants()?;
            if alive.is_empty() && (self.agent_has_ended() || signal == Signal::TERM) {
                return Ok(0);
            }
            let in_vain = signal == Signal::TERM && self.must_end();
            if in_vain || deadline <= Instant::now() {
                return Ok(alive.len() as u32);
            }
            for process in alive {
                // A second SIGTERM means "at once" to some programs.
                if asked.insert(process.identity()) && process.signal(signal) {
                    ended.insert(process.pid);
                }
            }
            self.wait(Some(deadline.min(Instant::now() + Duration::from_millis(COUNT_AGAIN_MS)))).await;
        }
    }
}

/// Stops all descendants where they are, until there is none that was not told to or the time is up. A process that is
/// killed makes room for the next one of its kind; a stopped one does not, and begins no other.
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
