//! Hints that have come: what the listener has heard, until the caller takes it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokenrail_ports::Heard;
use tokenrail_ports::rules::PendingHints;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::lock;
use super::payload::{self, Word};

/// Hints that have come.
pub(super) struct Incoming {
    /// Marks what this bus has sent, so that it does not take that for a hint.
    own: Uuid,
    hints: Mutex<PendingHints>,
    /// Something is in `hints`.
    came: Notify,
    /// The newest check that this bus has heard of itself.
    checked: watch::Sender<u64>,
    /// For metrics.
    hints_heard: AtomicU64,
    /// For metrics.
    times_missed: AtomicU64,
}

impl Incoming {
    pub(super) fn new(own: Uuid, hints_max: usize) -> Self {
        Self {
            own,
            hints: Mutex::new(PendingHints::new(hints_max)),
            came: Notify::new(),
            checked: watch::Sender::new(0),
            hints_heard: AtomicU64::new(0),
            times_missed: AtomicU64::new(0),
        }
    }

    /// Takes the payload of a NOTIFY. The driver of the connection calls it, through the `Ear` of `listener.rs`. The
    /// next step is [`Incoming::heard`], which returns the hints.
    pub(super) fn take(&self, payload: &str) {
        let Some((from, words)) = payload::read(payload) else {
            tracing::debug!(bytes = payload.len(), "a hint that this version does not understand");
            return self.miss();
        };
        if from == self.own {
            for word in words {
                self.take_own(word);
            }
            return;
        }
        let mut hints = lock(&self.hints);
        for word in words {
            match word {
                Word::Hint(hint) => {
                    self.hints_heard.fetch_add(1, Ordering::Relaxed);
                    hints.add(hint);
                }
                Word::Missed => {
                    self.times_missed.fetch_add(1, Ordering::Relaxed);
                    hints.miss();
                }
                // Another node checks itself.
                Word::Check(_) => {}
            }
        }
        drop(hints);
        self.came.notify_one();
    }

    fn take_own(&self, word: Word) {
        if let Word::Check(number) = word {
            self.checked.send_if_modified(|newest| {
                let is_newer = *newest < number;
                *newest = number.max(*newest);
                is_newer
            });
        }
    }

    /// Hints of other nodes may have been lost.
    pub(super) fn miss(&self) {
        self.times_missed.fetch_add(1, Ordering::Relaxed);
        lock(&self.hints).miss();
        self.came.notify_one();
    }

    /// Waits for hints. The next step is `hear_all` in `use_cases/nodes/listening.rs` of the application crate, which
    /// waits here, through `PostgresBus::heard`.
    pub(super) async fn heard(&self) -> Heard {
        loop {
            let next = lock(&self.hints).take();
            match next {
                Some(heard) => return heard,
                None => self.came.notified().await,
            }
        }
    }

    /// Waits until the check with this number has come.
    pub(super) async fn until_checked(&self, number: u64) {
        let mut checked = self.checked.subscribe();
        // This fails only if the channel is closed, and this struct has both of its ends.
        let _newer = checked.wait_for(|newest| number <= *newest).await;
    }

    /// How many hints of other nodes have come.
    pub(super) fn hints_heard(&self) -> u64 {
        self.hints_heard.load(Ordering::Relaxed)
    }

    /// How often hints may have been lost.
    pub(super) fn times_missed(&self) -> u64 {
        self.times_missed.load(Ordering::Relaxed)
    }
}
