//! What the callers, the sender and the listener of a bus share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokenrail_ports::rules::PendingHints;
use tokenrail_ports::{BusFigures, Heard, Ring};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::payload::{self, Word};
use crate::postgres::config::PostgresLimits;

/// How many nodes there are until somebody says otherwise.
const NODES_ASSUMED: usize = 10;

/// Hints on their way, and how the bus is.
pub(super) struct Board {
    /// Random. It marks what this bus has sent, so that it does not take that for a hint.
    own: Uuid,
    outgoing: Mutex<Outgoing>,
    /// Something is in `outgoing`.
    rung: Notify,
    incoming: Mutex<PendingHints>,
    /// Something is in `incoming`.
    came: Notify,
    /// The newest check that this bus has heard of itself.
    checked: watch::Sender<u64>,
    /// `None` until it is known.
    works: Mutex<Option<bool>>,
    /// How often the sender was told to open a new connection.
    renewals: watch::Sender<u64>,
    pause_ms: AtomicU64,
    pauses: Pauses,
    payload_bytes: usize,
    carried: Carried,
}

/// For metrics.
#[derive(Debug, Default)]
struct Carried {
    sent: AtomicU64,
    heard: AtomicU64,
    missed: AtomicU64,
    checks: AtomicU64,
    check_us: AtomicU64,
}

/// What waits to be sent.
struct Outgoing {
    hints: PendingHints,
    /// The number of the newest check, if it waits to be sent.
    check: Option<u64>,
    last_check: u64,
}

impl Outgoing {
    fn new_check(&mut self) -> u64 {
        self.last_check += 1;
        self.check = Some(self.last_check);
        self.last_check
    }
}

/// What is sent together.
#[derive(Debug)]
pub(super) struct Mail {
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

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("own", &self.own).field("works", &self.works).finish_non_exhaustive()
    }
}

impl Board {
    pub(super) fn new(limits: &PostgresLimits) -> Self {
        let hints = || PendingHints::new(limits.bell_hints);
        let pauses = Pauses { least_ms: limits.bell_pause_ms, per_node_ms: limits.bell_pause_per_node_ms };
        Self {
            own: Uuid::now_v7(),
            outgoing: Mutex::new(Outgoing { hints: hints(), check: None, last_check: 0 }),
            rung: Notify::new(),
            incoming: Mutex::new(hints()),
            came: Notify::new(),
            checked: watch::Sender::new(0),
            works: Mutex::new(None),
            renewals: watch::Sender::new(0),
            pause_ms: AtomicU64::new(pauses.for_nodes(NODES_ASSUMED)),
            pauses,
            payload_bytes: limits.bell_payload_bytes,
            carried: Carried::default(),
        }
    }

    // What callers use.

    /// The next step is `run` in `sender.rs`, which waits for [`Board::rung`].
    pub(super) fn ring(&self, ring: Ring) {
        lock(&self.outgoing).hints.add(ring);
        self.rung.notify_one();
    }

    /// `hear_all` in `use_cases/nodes/listening.rs` of the application crate waits here, through `PostgresBus::heard`.
    pub(super) async fn heard(&self) -> Heard {
        loop {
            let next = lock(&self.incoming).take();
            match next {
                Some(heard) => return heard,
                None => self.came.notified().await,
            }
        }
    }

    pub(super) fn works(&self) -> bool {
        *lock(&self.works) == Some(true)
    }

    pub(super) fn figures(&self) -> BusFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Carried { sent, heard, missed, checks, check_us } = &self.carried;
        BusFigures {
            sent: read(sent),
            heard: read(heard),
            missed: read(missed),
            checks: read(checks),
            check_time: Duration::from_micros(read(check_us)),
        }
    }

    pub(super) fn set_nodes(&self, nodes: usize) {
        self.pause_ms.store(self.pauses.for_nodes(nodes), Ordering::Relaxed);
    }

    // What the sender uses.

    /// Waits until there is something to send. It may be gone by then.
    pub(super) async fn rung(&self) {
        self.rung.notified().await;
    }

    /// Takes what is sent next. `run` in `sender.rs` calls it after [`Board::rung`], and sends it (`Sender::send`).
    pub(super) fn mail(&self) -> Option<Mail> {
        let mut outgoing = lock(&self.outgoing);
        let (hints, check) = (outgoing.hints.take(), outgoing.check.take());
        (hints.is_some() || check.is_some()).then_some(Mail { hints, check })
    }

    pub(super) fn note_sent(&self, mail: &Mail) {
        if let Some(Heard::Rung(rings)) = &mail.hints {
            self.carried.sent.fetch_add(rings.len() as u64, Ordering::Relaxed);
        }
    }

    /// It may or may not have been sent.
    pub(super) fn send_again(&self, mail: Mail) {
        let mut outgoing = lock(&self.outgoing);
        if let Some(hints) = mail.hints {
            outgoing.hints.put_back(hints);
        }
        outgoing.check = outgoing.check.max(mail.check);
        self.rung.notify_one();
    }

    pub(super) fn payloads(&self, mail: &Mail) -> Vec<String> {
        let mut words: Vec<Word> = mail.check.map(Word::Check).into_iter().collect();
        match &mail.hints {
            None => {}
            Some(Heard::Missed) => words.push(Word::Missed),
            Some(Heard::Rung(rings)) => words.extend(rings.iter().copied().map(Word::Hint)),
        }
        payload::write(self.own, &words, self.payload_bytes)
    }

    pub(super) fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms.load(Ordering::Relaxed))
    }

    /// Changes when the connection of the sender is no longer to be used.
    pub(super) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    // What the listener uses.

    /// Takes the payload of a NOTIFY. The driver of the connection calls it, through the `Ear` of `listener.rs`. The
    /// next step is [`Board::heard`], which returns the hints.
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
        let mut incoming = lock(&self.incoming);
        for word in words {
            match word {
                Word::Hint(ring) => {
                    self.carried.heard.fetch_add(1, Ordering::Relaxed);
                    incoming.add(ring);
                }
                Word::Missed => {
                    self.carried.missed.fetch_add(1, Ordering::Relaxed);
                    incoming.miss();
                }
                // Another node checks itself.
                Word::Check(_) => {}
            }
        }
        drop(incoming);
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
        self.carried.missed.fetch_add(1, Ordering::Relaxed);
        lock(&self.incoming).miss();
        self.came.notify_one();
    }

    /// Sends a hint to this node itself, and waits until it arrives.
    pub(super) async fn check(&self) {
        let (number, begun) = (lock(&self.outgoing).new_check(), Instant::now());
        self.rung.notify_one();
        let mut checked = self.checked.subscribe();
        // This fails only if the channel is closed, and the board has both of its ends.
        let _newer = checked.wait_for(|newest| number <= *newest).await;
        let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.carried.checks.fetch_add(1, Ordering::Relaxed);
        self.carried.check_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(super) fn set_works(&self, works: bool) {
        if lock(&self.works).replace(works) == Some(works) {
            return;
        }
        if works {
            tracing::info!("hints from other nodes arrive");
        } else {
            tracing::warn!(
                "hints from other nodes do not arrive; until they do, this node reads the database more often"
            );
        }
    }

    /// Makes the sender open a new connection.
    pub(super) fn renew_sender(&self) {
        self.renewals.send_modify(|times| *times += 1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
