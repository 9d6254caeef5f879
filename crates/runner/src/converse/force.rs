//! Ends a program that was idle or has closed its output, and does not end by itself.

use std::array::IntoIter;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

/// Which signal the program gets next, and when: SIGTERM after a grace period, and SIGKILL after another one.
pub(super) struct Force {
    grace: Duration,
    due: Option<Instant>,
    signals: IntoIter<Signal, 2>,
}

impl Force {
    /// Nothing is due before [`Force::begin`].
    pub(super) fn new(grace_ms: u64) -> Self {
        let signals = [Signal::TERM, Signal::KILL].into_iter();
        Self { grace: Duration::from_millis(grace_ms), due: None, signals }
    }

    /// Starts the grace period, or starts it again.
    pub(super) fn begin(&mut self) {
        self.due = Instant::now().checked_add(self.grace);
    }

    /// When the next signal is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the signal that is due.
    pub(super) fn next_signal(&mut self) -> Option<Signal> {
        let signal = self.signals.next();
        self.due = None;
        if signal.is_some() {
            self.begin();
        }
        signal
    }
}
