//! When a client gets its next ping, and when the answer must be there. The session and its transport share it: a
//! transport that is still sending the session's output sends pings in between, because clients of Socket.IO disconnect
//! if pings are late, whatever else they receive.

use std::cell::Cell;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::engine::PING;
use crate::frames;

pub(super) struct Heart {
    ping: Duration,
    pong_timeout: Duration,
    ping_due: Cell<Instant>,
    /// When the session ends unless the client answers the ping.
    pong_due: Cell<Option<Instant>>,
    /// Whether the bytes that are being sent contain events.
    giving: Cell<bool>,
}

impl Heart {
    /// `ping`: the time between two pings.
    pub(super) fn new(ping: Duration, pong_timeout: Duration) -> Self {
        let ping_due = Cell::new(Instant::now() + ping);
        Self { ping, pong_timeout, ping_due, pong_due: Cell::new(None), giving: Cell::new(false) }
    }

    /// How long a client may be silent.
    pub(super) fn silence(&self) -> Duration {
        self.ping + self.pong_timeout
    }

    pub(super) fn ping_due(&self) -> Instant {
        self.ping_due.get()
    }

    pub(super) fn pong_due(&self) -> Option<Instant> {
        self.pong_due.get()
    }

    /// The ping that the client gets now.
    pub(super) fn ping(&self) -> Bytes {
        self.pinged();
        frames::text(PING)
    }

    /// The client gets a ping. An unanswered ping keeps its deadline.
    pub(super) fn pinged(&self) {
        let now = Instant::now();
        self.ping_due.set(now + self.ping);
        self.pong_due.set(Some(self.pong_due.get().unwrap_or(now + self.pong_timeout)));
    }

    pub(super) fn is_due(&self) -> bool {
        self.ping_due.get() <= Instant::now()
    }

    /// Whether the client has not answered in time.
    pub(super) fn is_late(&self) -> bool {
        self.pong_due.get().is_some_and(|due| due <= Instant::now())
    }

    /// The client has sent something, so it is alive.
    pub(super) fn heard(&self) {
        self.pong_due.set(None);
    }

    /// Whether what the session gives next contains events.
    pub(super) fn gives_events(&self, giving: bool) {
        self.giving.set(giving);
    }

    /// The transport has taken something. If it contains events, the client may have to read many of them before the
    /// ping, so this extends the deadline of the pong.
    pub(super) fn taken(&self) {
        if self.giving.get() && self.pong_due.get().is_some() {
            self.pong_due.set(Some(Instant::now() + self.pong_timeout));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pong_has_its_time_and_more_while_events_are_taken() {
        let second = Duration::from_secs(1);
        let heart = Heart::new(25 * second, 20 * second);
        assert!(!heart.is_due() && heart.pong_due().is_none());
        advance(25 * second).await;
        assert!(heart.is_due());
        assert_eq!(&heart.ping()[2..], PING);
        assert!(!heart.is_due());
        let due = Instant::now() + 20 * second;
        assert_eq!(heart.pong_due(), Some(due));
        advance(second).await;
        heart.taken();
        heart.ping();
        assert_eq!(heart.pong_due(), Some(due), "only events extend it");
        heart.gives_events(true);
        heart.taken();
        assert_eq!(heart.pong_due(), Some(due + second));
        assert!(!heart.is_late());
        advance(20 * second).await;
        assert!(heart.is_late());
        heart.heard();
        heart.taken();
        assert_eq!(heart.pong_due(), None);
    }
}
