//! How far journals were shown lately to readers that may have left. After a failover, a shared store may not have
//! these events any more, and their numbers must be given to nothing else: the readers come back, to any node.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokenrail_domain::{AgentId, Sequence};
use tokio::time::Instant;

use crate::limits::Limits;
use crate::outside::Outside;

/// What a failover loses is not older than this.
pub(crate) const LOST_AT_MOST: Duration = Duration::from_mins(1);

/// The most agents that are remembered: one MiB. Beyond that, those that were launched first are forgotten.
const AGENTS: usize = 10_000;

#[derive(Debug)]
pub(crate) struct ShownLately {
    /// How long it is remembered. Zero if it is not needed.
    keep: Duration,
    shown: Mutex<BTreeMap<AgentId, Shown>>,
}

#[derive(Debug)]
struct Shown {
    head: Sequence,
    at: Instant,
}

impl ShownLately {
    /// It is remembered for as long as a failover may lose it, and until that is made good. A store that is not shared
    /// loses nothing.
    pub(crate) fn of(outside: &Outside, limits: &Limits) -> Self {
        let keep = LOST_AT_MOST + limits.nodes.catch_up;
        Self::new(if outside.nodes.is_shared() { keep } else { Duration::ZERO })
    }

    fn new(keep: Duration) -> Self {
        Self { keep, shown: Mutex::default() }
    }

    /// Notes that events up to `head` were shown.
    pub(crate) fn note(&self, agent: AgentId, head: Sequence) {
        if self.keep.is_zero() || head == Sequence::START {
            return;
        }
        let at = Instant::now();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown
            .entry(agent)
            .and_modify(|known| *known = Shown { head: head.max(known.head), at })
            .or_insert(Shown { head, at });
        if AGENTS < shown.len() {
            shown.retain(|_, shown| at.duration_since(shown.at) < self.keep);
        }
        if AGENTS < shown.len() {
            shown.pop_first();
        }
    }

    /// How far each journal was shown.
    pub(crate) fn all(&self) -> BTreeMap<AgentId, Sequence> {
        let now = Instant::now();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|_, shown| now.duration_since(shown.at) < self.keep);
        shown.iter().map(|(agent, shown)| (*agent, shown.head)).collect()
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::Timestamp;
    use tokio::time::advance;

    use super::*;

    fn id(number: usize) -> AgentId {
        AgentId::new(Timestamp(i64::try_from(number).unwrap()), [0; 10])
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_shown_is_remembered_for_a_while() {
        let (lately, agent) = (ShownLately::new(Duration::from_secs(9)), id(1));
        lately.note(agent, Sequence::START);
        assert!(lately.all().is_empty(), "nothing was shown");
        lately.note(agent, Sequence(7));
        advance(Duration::from_secs(8)).await;
        lately.note(agent, Sequence(5));
        advance(Duration::from_secs(8)).await;
        assert_eq!(lately.all(), BTreeMap::from([(agent, Sequence(7))]));
        advance(Duration::from_secs(1)).await;
        assert!(lately.all().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_grow_with_the_agents() {
        let lately = ShownLately::new(Duration::from_secs(9));
        let agents = (0..=AGENTS).map(id);
        agents.for_each(|agent| lately.note(agent, Sequence(1)));
        assert_eq!(lately.all().len(), AGENTS);
        assert_eq!(lately.all().first_key_value().unwrap().0, &id(1));
    }
}
