//! A working bus in memory. It hesitates, and hints go wrong if a test says so.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::hesitation::Hesitation;
use crate::rules::PendingHints;
use crate::{Heard, Hint, IBus};

/// Hints that wait at a node. More become [`Heard::Missed`].
const HINTS_MAX: usize = 1024;

/// [`IBus`] in memory: the bus as one node sees it. [`MemoryBus::another`] makes the bus of a further node. A node
/// leaves when its bus is dropped.
///
/// A new listener first hears [`Heard::Missed`], as with a real bus: what was sent before it listened is lost.
///
/// It hesitates: before it hears something, it yields to the scheduler. How often it yields, and which hints go wrong,
/// follows from the seed. Hints that come late wait by the clock of the async runtime, which a test can pause.
pub struct MemoryBus {
    state: Arc<Mutex<State>>,
    /// The number of this node among those of the bus.
    number: u64,
    heard: Arc<Notify>,
}

struct State {
    nodes: BTreeMap<u64, Listening>,
    last_number: u64,
    /// What happens to the next hints, one each.
    planned: VecDeque<HintFault>,
    faults: BusFaults,
    /// Also decides which hints go wrong.
    hesitation: Hesitation,
}

/// A node that listens.
struct Listening {
    hints: PendingHints,
    /// They come a second time, after they were taken once.
    again: Vec<Hint>,
    /// They come at their times.
    late: Vec<(Instant, Hint)>,
    is_broken: bool,
    heard: Arc<Notify>,
}

/// How a hint goes wrong, at all nodes that would hear it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintFault {
    Lost,
    /// It comes twice.
    Doubled,
    /// It comes after this time.
    Late(Duration),
}

/// How often a hint goes wrong at a node that would hear it, per mille.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusFaults {
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
    /// How late a hint comes, at most.
    pub late_max: Duration,
}

impl MemoryBus {
    /// A bus whose hesitations and faults follow from `seed`, as its first node.
    pub fn new(seed: u64) -> Self {
        let hesitation = Hesitation::new(seed);
        let (nodes, planned) = (BTreeMap::new(), VecDeque::new());
        let state = State { nodes, last_number: 0, planned, faults: BusFaults::default(), hesitation };
        Self::join(Arc::new(Mutex::new(state)))
    }

    /// The same bus, as a further node.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::join(Arc::clone(&self.state))
    }

    fn join(state: Arc<Mutex<State>>) -> Self {
        let heard = Arc::new(Notify::new());
        let mut locked = lock(&state);
        locked.last_number += 1;
        let number = locked.last_number;
        let mut listening = Listening::new(Arc::clone(&heard));
        listening.miss();
        locked.nodes.insert(number, listening);
        drop(locked);
        Self { state, number, heard }
    }

    /// Lets something happen to the next hint that is sent, at any node, for which nothing is planned yet.
    pub fn fail_next_hint(&self, fault: HintFault) {
        lock(&self.state).planned.push_back(fault);
    }

    /// Sets how often hints go wrong from here on, at all nodes.
    pub fn set_faults(&self, faults: BusFaults) {
        lock(&self.state).faults = faults;
    }

    /// Disconnects this node: it hears nothing, and what it sends is lost. It knows.
    pub fn break_off(&self) {
        let mut state = lock(&self.state);
        let Some(own) = state.nodes.get_mut(&self.number) else { return };
        *own = Listening { is_broken: true, ..Listening::new(Arc::clone(&self.heard)) };
    }

    /// Connects this node again. All nodes hear [`Heard::Missed`].
    pub fn repair(&self) {
        let mut state = lock(&self.state);
        if let Some(own) = state.nodes.get_mut(&self.number) {
            own.is_broken = false;
        }
        for node in state.nodes.values_mut() {
            node.miss();
        }
    }

    async fn hesitate(&self) {
        let pause = lock(&self.state).hesitation.pause();
        pause.await;
    }

    /// What this node hears now, or else when it hears something that is late.
    fn take(&self) -> Result<Heard, Option<Instant>> {
        let mut state = lock(&self.state);
        let Some(own) = state.nodes.get_mut(&self.number) else { return Err(None) };
        own.take(Instant::now()).ok_or_else(|| own.late.iter().map(|(at, _)| *at).min())
    }
}

impl Drop for MemoryBus {
    fn drop(&mut self) {
        lock(&self.state).nodes.remove(&self.number);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// What happens to a hint at one node.
    fn fault(&mut self) -> Option<HintFault> {
        let BusFaults { lost, doubled, late, late_max } = self.faults;
        match self.hesitation.below(1000) {
            rolled if rolled < lost => Some(HintFault::Lost),
            rolled if rolled < lost + doubled => Some(HintFault::Doubled),
            rolled if rolled < lost + doubled + late => {
                let micros = self.hesitation.below(late_max.as_micros() as u64 + 1);
                Some(HintFault::Late(Duration::from_micros(micros)))
            }
            _ => None,
        }
    }
}

impl Listening {
    fn new(heard: Arc<Notify>) -> Self {
        let hints = PendingHints::new(HINTS_MAX);
        Self { hints, again: Vec::new(), late: Vec::new(), is_broken: false, heard }
    }

    fn miss(&mut self) {
        if !self.is_broken {
            self.hints.miss();
            self.heard.notify_one();
        }
    }

    fn hear(&mut self, hint: Hint, fault: Option<HintFault>) {
        match fault {
            _ if self.is_broken => return,
            Some(HintFault::Lost) => return,
            Some(HintFault::Late(_)) if HINTS_MAX <= self.late.len() => self.hints.miss(),
            Some(HintFault::Late(by)) => self.late.push((Instant::now() + by, hint)),
            Some(HintFault::Doubled) => {
                self.hints.add(hint);
                if self.again.len() < HINTS_MAX {
                    self.again.push(hint);
                }
            }
            None => self.hints.add(hint),
        }
        self.heard.notify_one();
    }

    fn take(&mut self, now: Instant) -> Option<Heard> {
        let (due, late) = self.late.drain(..).partition(|(at, _)| *at <= now);
        self.late = late;
        let mut due: Vec<(Instant, Hint)> = due;
        due.sort_by_key(|(at, _)| *at);
        for (_, hint) in due {
            self.hints.add(hint);
        }
        let heard = self.hints.take();
        for hint in self.again.drain(..) {
            self.hints.add(hint);
        }
        heard
    }
}

#[async_trait]
impl IBus for MemoryBus {
    fn send_hint(&self, hint: Hint) {
        let mut state = lock(&self.state);
        if state.nodes.get(&self.number).is_none_or(|own| own.is_broken) {
            return;
        }
        let planned = state.planned.pop_front();
        let others: Vec<u64> = state.nodes.keys().copied().filter(|number| *number != self.number).collect();
        for number in others {
            let fault = planned.or_else(|| state.fault());
            if let Some(node) = state.nodes.get_mut(&number) {
                node.hear(hint, fault);
            }
        }
    }

    async fn heard(&self) -> Heard {
        self.hesitate().await;
        loop {
            match self.take() {
                Ok(heard) => return heard,
                Err(None) => self.heard.notified().await,
                Err(Some(late)) => tokio::select! {
                    biased;
                    () = self.heard.notified() => {}
                    () = sleep_until(late) => {}
                },
            }
        }
    }

    fn is_working(&self) -> bool {
        lock(&self.state).nodes.get(&self.number).is_some_and(|own| !own.is_broken)
    }
}

#[cfg(test)]
mod tests;
