//! Lifecycle events of agents, for every client. They are rare, and have no history.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokenrail_domain::{AgentId, AgentStatus, ListedAgent, Timestamp};
use tokio::sync::watch;

use crate::open_requests::Needs;
use crate::renderings::{Rendering, RenderingKey, Renderings};

/// How many lifecycle events are kept. A client that is further behind must load the list of agents again.
const EVENTS_KEPT: usize = 1024;

/// About how many bytes of lifecycle events are kept. A created agent has the beginning of its first prompt.
const EVENTS_BYTES: usize = 8 << 20;

/// A lifecycle event. An agent is updated if its status or its needs have changed, or if it was edited.
#[derive(Debug, Clone)]
pub enum LifecycleEvent {
    Created { agent: Box<ListedAgent>, at: Timestamp },
    Updated { agent: AgentId, status: AgentStatus, needs: Needs, cause: UpdateCause, at: Timestamp },
    Deleted { agent: AgentId, at: Timestamp },
}

/// Why an agent is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateCause {
    /// Something that its turns have done.
    Turns,
    /// Its name or its place in lists may have changed.
    Edit,
}

/// A lifecycle event as it is kept, shared by all readers.
#[derive(Debug)]
pub struct KeptLifecycleEvent {
    pub event: LifecycleEvent,
    renderings: Renderings,
}

impl KeptLifecycleEvent {
    /// The bytes that clients receive for `key`. The first reader that requests them renders them for all readers.
    pub fn rendering(&self, key: RenderingKey, render: impl FnOnce(&LifecycleEvent) -> Bytes) -> Bytes {
        let rendered = || Rendering { bytes: render(&self.event), ends: Vec::new() };
        self.renderings.get_or_init(key, rendered).bytes.clone()
    }

    fn bytes(&self) -> usize {
        // The agent, and its renderings for WebSockets and for Socket.IO.
        let text = match &self.event {
            LifecycleEvent::Created { agent, .. } => 3 * agent.bytes(),
            LifecycleEvent::Updated { .. } | LifecycleEvent::Deleted { .. } => 0,
        };
        size_of::<Self>() + text
    }
}

/// Publishes lifecycle events. A reader is a cursor here too, so unread events cost nothing beyond what is kept
/// anyway.
#[derive(Debug)]
pub(crate) struct LifecycleEvents {
    board: Arc<Mutex<Board>>,
    /// How many lifecycle events were published so far.
    published: watch::Sender<u64>,
}

/// The newest lifecycle events.
#[derive(Debug, Default)]
struct Board {
    /// The number of the oldest kept event. The first event of all has number 0.
    first: u64,
    items: VecDeque<Arc<KeptLifecycleEvent>>,
    bytes: usize,
}

impl LifecycleEvents {
    pub(crate) fn new() -> Self {
        Self { board: Arc::default(), published: watch::Sender::new(0) }
    }

    pub(crate) fn tell(&self, event: LifecycleEvent) {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.push(KeptLifecycleEvent { event, renderings: Renderings::default() });
        self.published.send_replace(board.end());
    }

    /// Tells all readers that they have missed events. They load the list of agents again.
    pub(crate) fn miss(&self) {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let first = board.end() + 1;
        *board = Board { first, ..Board::default() };
        self.published.send_replace(board.end());
    }

    pub(crate) fn subscribe(&self) -> LifecycleReader {
        let published = self.published.subscribe();
        let next = *published.borrow();
        LifecycleReader { board: Arc::clone(&self.board), published, next }
    }
}

impl Board {
    fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn push(&mut self, item: KeptLifecycleEvent) {
        self.bytes += item.bytes();
        self.items.push_back(Arc::new(item));
        // The newest event stays, whatever its size, so that a reader that keeps up misses nothing.
        while EVENTS_KEPT < self.items.len() || EVENTS_BYTES < self.bytes && 1 < self.items.len() {
            let Some(oldest) = self.items.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.first += 1;
        }
    }
}

/// A reader of the lifecycle events that are published after it was created.
#[derive(Debug)]
pub struct LifecycleReader {
    board: Arc<Mutex<Board>>,
    published: watch::Receiver<u64>,
    next: u64,
}

/// Some lifecycle events were missed, because they are no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleEventsMissed;

impl LifecycleReader {
    /// Waits for the next lifecycle event. Returns `None` if the service is gone. May be dropped at any await.
    ///
    /// # Errors
    /// [`LifecycleEventsMissed`] if some events were not read in time. The next call returns the oldest event that is
    /// kept.
    pub async fn next(&mut self) -> Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>> {
        loop {
            // Marked as seen before the board is read, so that a later event wakes this reader.
            self.published.borrow_and_update();
            if let Some(read) = self.read() {
                return Some(read);
            }
            self.published.changed().await.ok()?;
        }
    }

    fn read(&mut self) -> Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>> {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = self.next.checked_sub(board.first) else {
            self.next = board.first;
            return Some(Err(LifecycleEventsMissed));
        };
        let item = board.items.get(usize::try_from(place).ok()?)?;
        self.next += 1;
        Some(Ok(Arc::clone(item)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn deleted(number: i64) -> LifecycleEvent {
        LifecycleEvent::Deleted { agent: AgentId::new(Timestamp(number), [0; 10]), at: Timestamp(number) }
    }

    fn created(prompt_bytes: usize) -> LifecycleEvent {
        let (agent, _) = tokenrail_ports::testing::samples::launch(1);
        let agent = tokenrail_domain::Agent { prompt: "x".repeat(prompt_bytes), ..agent };
        LifecycleEvent::Created { agent: Box::new(ListedAgent::new(agent, usize::MAX)), at: Timestamp(0) }
    }

    /// The times of the available events; -1 if some were missed.
    fn heard(reader: &mut LifecycleReader) -> Vec<i64> {
        let next = || match reader.next().now_or_never()?? {
            Ok(item) => match item.event {
                LifecycleEvent::Deleted { at, .. }
                | LifecycleEvent::Created { at, .. }
                | LifecycleEvent::Updated { at, .. } => Some(at.0),
            },
            Err(LifecycleEventsMissed) => Some(-1),
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn each_reader_hears_what_comes_after_it_once_and_in_order() {
        let desk = LifecycleEvents::new();
        desk.tell(deleted(1));
        let mut first = desk.subscribe();
        desk.tell(deleted(2));
        let mut second = desk.subscribe();
        desk.tell(deleted(3));
        assert_eq!((heard(&mut first), heard(&mut second)), (vec![2, 3], vec![3]));
        desk.tell(deleted(4));
        assert_eq!((heard(&mut first), heard(&mut second)), (vec![4], vec![4]));
    }

    #[test]
    fn whoever_is_too_far_behind_is_told_so_once_and_goes_on_with_the_oldest() {
        let desk = LifecycleEvents::new();
        let mut reader = desk.subscribe();
        (0..EVENTS_KEPT as i64 + 5).for_each(|number| desk.tell(deleted(number)));
        let heard = heard(&mut reader);
        assert_eq!((heard.len(), heard[0], heard[1]), (EVENTS_KEPT + 1, -1, 5));
    }

    #[test]
    fn readers_are_told_once_that_they_have_missed_something() {
        let desk = LifecycleEvents::new();
        let mut reader = desk.subscribe();
        desk.tell(deleted(1));
        desk.miss();
        desk.tell(deleted(2));
        assert_eq!(heard(&mut reader), [-1, 2]);
        let mut later = desk.subscribe();
        desk.miss();
        assert_eq!((heard(&mut reader), heard(&mut later)), (vec![-1], vec![-1]));
    }

    #[test]
    fn long_prompts_are_not_kept_for_whoever_does_not_read() {
        let desk = LifecycleEvents::new();
        let mut reader = desk.subscribe();
        let mut in_time = desk.subscribe();
        for _ in 0..100 {
            desk.tell(created(1 << 20));
            assert_eq!(heard(&mut in_time).len(), 1);
        }
        assert!(desk.board.lock().unwrap().bytes <= EVENTS_BYTES);
        assert!(heard(&mut reader).len() < 10);
        // An event that is larger than the bound is delivered nevertheless.
        desk.tell(created(2 * EVENTS_BYTES));
        assert_eq!(heard(&mut in_time), [0]);
        desk.tell(deleted(7));
        assert_eq!(heard(&mut in_time), [7]);
        assert!(desk.board.lock().unwrap().bytes <= EVENTS_BYTES);
    }

    #[test]
    fn news_are_written_once_for_all_readers() {
        let desk = LifecycleEvents::new();
        let mut readers = [desk.subscribe(), desk.subscribe()];
        desk.tell(deleted(1));
        let mut written = Vec::new();
        for reader in &mut readers {
            let item = reader.next().now_or_never().unwrap().unwrap().unwrap();
            for form in ["frame", "packet"] {
                let key = RenderingKey::of::<LifecycleEvent>([form.len() as u8, 0]);
                let bytes = item.rendering(key, |_| {
                    written.push(form);
                    Bytes::from_static(form.as_bytes())
                });
                assert_eq!(bytes, form);
            }
        }
        assert_eq!(written, ["frame", "packet"]);
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken_and_ends_with_the_desk() {
        let desk = LifecycleEvents::new();
        let mut reader = desk.subscribe();
        let waiting = async {
            let first = reader.next().await;
            (first.is_some(), reader.next().await.is_none())
        };
        let telling = async {
            tokio::task::yield_now().await;
            desk.tell(deleted(1));
            tokio::task::yield_now().await;
            drop(desk);
        };
        assert_eq!(tokio::join!(waiting, telling).0, (true, true));
    }
}
