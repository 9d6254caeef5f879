//! One-use tickets, for browser APIs that cannot set headers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::query::is_ticket_path;

/// The tickets that wait for their use.
pub(crate) struct Tickets {
    waiting: Mutex<HashMap<String, Ticket>>,
    max: usize,
    age: Duration,
}

/// What a ticket is good for.
pub(crate) struct Ticket {
    /// The only path that it opens; none: every path that a ticket may open.
    path: Option<String>,
    /// The origin of the page that asked for it; none: no page did.
    pub(crate) origin: Option<String>,
    expires: Instant,
}

impl Tickets {
    /// At most `max` tickets wait, each for at most `age`.
    pub(crate) fn new(max: usize, age: Duration) -> Self {
        Self { waiting: Mutex::default(), max, age }
    }

    /// Makes a ticket of 256 random bits; none where too many wait.
    pub(crate) fn issue(
        &self,
        random: [u8; 32],
        path: Option<String>,
        origin: Option<String>,
    ) -> Option<String> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, ticket| now < ticket.expires);
        if self.max <= waiting.len() {
            return None;
        }
        let name = hex(&random);
        waiting.insert(name.clone(), Ticket { path, origin, expires: now + self.age });
        Some(name)
    }

    /// Uses a ticket up; gives it where it opens that path.
    pub(crate) fn redeem(&self, name: &str, path: &str) -> Option<Ticket> {
        let ticket = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(name)?;
        let fits = ticket.path.as_ref().is_none_or(|only| only == path);
        (Instant::now() < ticket.expires && is_ticket_path(path) && fits).then_some(ticket)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = "/api/agents/0195bd2f-0a00-7000-8000-000000000000/events";

    #[tokio::test(start_paused = true)]
    async fn a_ticket_opens_one_stream_once_and_soon() {
        let tickets = Tickets::new(2, Duration::from_secs(30));
        let any = tickets.issue([1; 32], None, None).unwrap();
        assert_eq!(any, "01".repeat(32));
        assert!(tickets.redeem(&any, "/ws").is_some());
        assert!(tickets.redeem(&any, "/ws").is_none(), "used");

        let bound = tickets.issue([2; 32], Some("/ws".into()), None).unwrap();
        assert!(tickets.redeem(&bound, EVENTS).is_none(), "it is for another path");
        assert!(tickets.redeem(&bound, "/ws").is_none(), "and that try has used it up");

        let list = tickets.issue([3; 32], None, None).unwrap();
        assert!(tickets.redeem(&list, "/api/agents").is_none(), "only streams");

        let late = tickets.issue([4; 32], None, None).unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(tickets.redeem(&late, EVENTS).is_none(), "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_tickets_wait() {
        let tickets = Tickets::new(2, Duration::from_secs(30));
        assert!(tickets.issue([1; 32], None, None).is_some());
        assert!(tickets.issue([2; 32], None, None).is_some());
        assert!(tickets.issue([3; 32], None, None).is_none());
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(tickets.issue([3; 32], None, None).is_some(), "those that expired make room");
    }
}
