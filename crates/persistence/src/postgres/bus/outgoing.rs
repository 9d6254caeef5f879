//! Hints on their way out: from the caller until the sender has sent them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokenrail_ports::rules::PendingHints;
use tokenrail_ports::{Heard, Hint};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::lock;
use super::payload::{self, Word};
use crate::postgres::config::PostgresLimits;

/// How many nodes there are until somebody says otherwise.
const NODES_ASSUMED: usize = 10;

/// Hints on their way out.
pub(super) struct Outgoing {
    /// Marks what this bus has sent.
    own: Uuid,
    unsent: Mutex<Unsent>,
    /// Something is in `unsent`.
    added: Notify,
    /// How often the sender was told to open a new connection.
    renewals: watch::Sender<u64>,
    pause_ms: AtomicU64,
    pauses: Pauses,
    payload_bytes: usize,
    /// For metrics.
    sent: AtomicU64,
}

/// What waits to be sent.
struct Unsent {
    hints: PendingHints,
    /// The number of the newest check, if it waits to be sent.
    check: Option<u64>,
    last_check: u64,
}

/// What is sent together.
#[derive(Debug)]
pub(super) struct HintBatch {
    hints: Option<Heard>,
    check: Option<u64>,
}

/// How long a sender pauses.
#[derive(Debug, Clone, Copy)]
struct Pauses {
    least_ms: u64,
    per_node_ms: u64,
}

impl Pauses {
    fn for_nodes(self, nodes: usize) -> u64 {
        self.least_ms.max(self.per_node_ms.saturating_mul(nodes as u64))
    }
}

impl Outgoing {
    pub(super) fn new(own: Uuid, limits: &PostgresLimits) -> Self {
        let hints = PendingHints::new(limits.hints);
        let pauses = Pauses { least_ms: limits.hint_pause_ms, per_node_ms: limits.hint_pause_per_node_ms };
        Self {
            own,
            unsent: Mutex::new(Unsent { hints, check: None, last_check: 0 }),
            added: Notify::new(),
            renewals: watch::Sender::new(0),
            pause_ms: AtomicU64::new(pauses.for_nodes(NODES_ASSUMED)),
            pauses,
            payload_bytes: limits.hint_payload_bytes,
            sent: AtomicU64::new(0),
        }
    }

    /// The next steps are `run` in `sender.rs`, which waits for [`Outgoing::added`], [`Outgoing::take_batch`] and
    /// `Sender::send`.
    pub(super) fn send_hint(&self, hint: Hint) {
        lock(&self.unsent).hints.add(hint);
        self.added.notify_one();
    }

    /// Adds a check, and returns its number.
    pub(super) fn add_check(&self) -> u64 {
        let number = {
            let mut unsent = lock(&self.unsent);
            unsent.last_check += 1;
            unsent.check = Some(unsent.last_check);
            unsent.last_check
        };
        self.added.notify_one();
        number
    }

    /// Waits until there is something to send. It may be gone by then.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }

    /// Takes what is sent next.
    pub(super) fn take_batch(&self) -> Option<HintBatch> {
        let mut unsent = lock(&self.unsent);
        let (hints, check) = (unsent.hints.take(), unsent.check.take());
        (hints.is_some() || check.is_some()).then_some(HintBatch { hints, check })
    }

    pub(super) fn payloads(&self, batch: &HintBatch) -> Vec<String> {
        let mut words: Vec<Word> = batch.check.map(Word::Check).into_iter().collect();
        match &batch.hints {
            None => {}
            Some(Heard::Missed) => words.push(Word::Missed),
            Some(Heard::Hints(hints)) => words.extend(hints.iter().copied().map(Word::Hint)),
        }
        payload::write(self.own, &words, self.payload_bytes)
    }

    pub(super) fn note_sent(&self, batch: &HintBatch) {
        if let Some(Heard::Hints(hints)) = &batch.hints {
            self.sent.fetch_add(hints.len() as u64, Ordering::Relaxed);
        }
    }

    /// It may or may not have been sent.
    pub(super) fn send_again(&self, batch: HintBatch) {
        let mut unsent = lock(&self.unsent);
        if let Some(hints) = batch.hints {
            unsent.hints.put_back(hints);
        }
        unsent.check = unsent.check.max(batch.check);
        self.added.notify_one();
    }

    /// How many hints were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn set_nodes(&self, nodes: usize) {
        self.pause_ms.store(self.pauses.for_nodes(nodes), Ordering::Relaxed);
    }

    pub(super) fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms.load(Ordering::Relaxed))
    }

    /// Changes when the connection of the sender is no longer to be used.
    pub(super) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// Makes the sender open a new connection.
    pub(super) fn renew_sender(&self) {
        self.renewals.send_modify(|times| *times += 1);
    }
}
