//! Which agents have saved events lately.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::AgentId;
use tokio::time::Instant;

/// An agent has saved lately if it has saved within this time. A model that speaks saves more often.
const LATELY: Duration = Duration::from_secs(1);

/// The two agents that have saved last, so that each agent can learn whether another one has.
#[derive(Debug, Default)]
pub(crate) struct RecentSavers(Mutex<[Option<Saver>; 2]>);

#[derive(Debug, Clone, Copy)]
struct Saver {
    agent: AgentId,
    saved_at: Instant,
}

impl RecentSavers {
    /// Notes that an agent has saved events.
    pub(crate) fn note(&self, agent: AgentId) {
        let mut newest = self.newest();
        let other = newest.into_iter().flatten().find(|saver| saver.agent != agent);
        *newest = [Some(Saver { agent, saved_at: Instant::now() }), other];
    }

    /// Whether another agent than this one has saved lately.
    pub(crate) fn has_others(&self, agent: AgentId) -> bool {
        let newest = *self.newest();
        newest.iter().flatten().any(|saver| saver.agent != agent && saver.saved_at.elapsed() < LATELY)
    }

    fn newest(&self) -> MutexGuard<'_, [Option<Saver>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(number: u8) -> AgentId {
        format!("01890000-0000-7000-8000-0000000000{number:02}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn only_other_agents_count_and_only_for_a_while() {
        let savers = RecentSavers::default();
        let [one, two, three] = [1, 2, 3].map(agent);
        assert!(!savers.has_others(one), "nobody has saved");
        for _ in 0..3 {
            savers.note(one);
        }
        assert!(!savers.has_others(one) && savers.has_others(two));
        savers.note(two);
        savers.note(two);
        assert!([one, two, three].into_iter().all(|agent| savers.has_others(agent)));
        tokio::time::advance(LATELY / 2).await;
        savers.note(one);
        tokio::time::advance(LATELY / 2).await;
        assert!(!savers.has_others(one), "it was too long ago");
        assert!(savers.has_others(two));
    }
}
