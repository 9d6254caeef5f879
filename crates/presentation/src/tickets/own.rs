//! The tickets that only this server issues and accepts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokenrail_domain::Timestamp;
use tokio::time::{Instant, timeout};

use super::{Denied, Opening, Openings, Seal, Shown, check_origin};
use crate::hex::hex;
use crate::query::{is_events_path, is_ticket_path};

/// How long the opening of a stream may wait until its ticket is saved in the file.
const SAVING: Duration = Duration::from_secs(1);

/// See [`Tickets`](super::Tickets), which also describes the methods.
pub(crate) struct OwnTickets {
    state: Mutex<State>,
    seal: Seal,
    /// Tickets for one path that have opened the event stream at that path.
    openings: Arc<Openings>,
    max: usize,
    age: Duration,
    resume: Duration,
}

#[derive(Default)]
struct State {
    /// Unused tickets.
    waiting: HashMap<String, Ticket>,
    /// Tickets for any path that have opened an event stream, and what they can resume.
    opened: HashMap<String, Opened>,
}

/// What an unused ticket allows.
struct Ticket {
    /// The only path that it opens. `None`: any path that tickets can open.
    path: Option<String>,
    /// The origin of the page that requested it. `None` if no page did.
    origin: Option<String>,
    expires: Instant,
    /// Until when it can resume the stream that it has opened.
    resumable_until: Timestamp,
}

struct Opened {
    path: String,
    origin: Option<String>,
    until: Timestamp,
}

impl OwnTickets {
    /// At most `max` tickets may be unused, each for at most `age`. A ticket can resume its stream until `resume` after
    /// it was issued.
    pub(crate) fn new(seal: Seal, openings: Openings, max: usize, age: Duration, resume: Duration) -> Self {
        Self { state: Mutex::default(), seal, openings: Arc::new(openings), max, age, resume }
    }

    pub(super) fn issue(
        &self,
        random: [u8; 32],
        path: Option<String>,
        origin: Option<String>,
        now: Timestamp,
    ) -> Option<String> {
        let at = Instant::now();
        let resumable_until = Timestamp(now.0.saturating_add(self.resume.as_millis() as i64));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.retain(|_, ticket| at < ticket.expires);
        if self.max <= state.waiting.len() {
            return None;
        }
        let name = match path.as_deref().filter(|path| is_events_path(path)) {
            Some(path) => self.seal.ticket(random, path, origin.as_deref(), resumable_until),
            None => hex(&random),
        };
        let ticket = Ticket { path, origin, expires: at + self.age, resumable_until };
        state.waiting.insert(name.clone(), ticket);
        Some(name)
    }

    pub(super) fn redeem(&self, shown: Shown<'_>) -> Result<Option<Opening>, Denied> {
        let Shown { ticket: name, path, origin, now } = shown;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = state.waiting.remove(name).ok_or(Denied::Failed)?;
        let fits = ticket.path.as_ref().is_none_or(|only| only == path);
        if !(Instant::now() < ticket.expires && is_ticket_path(path) && fits) {
            return Err(Denied::Failed);
        }
        // If `Origin` is missing, the guard has checked `Sec-Fetch-Site` instead.
        check_origin(ticket.origin.as_deref(), origin, !is_events_path(path))?;
        if !is_events_path(path) {
            return Ok(None);
        }
        if ticket.path.is_none() {
            let until = ticket.resumable_until;
            state.remember(
                name,
                Opened { path: path.to_owned(), origin: ticket.origin, until },
                self.max,
                now,
            );
            return Ok(None);
        }
        let opening = self.seal.check(name, path, origin, now).ok();
        if let Some(opening) = opening {
            self.openings.add(opening, now);
        }
        Ok(opening)
    }

    /// Saves it in the file, but does not wait for a slow disk.
    pub(super) async fn save(&self, opening: Opening) {
        let openings = Arc::clone(&self.openings);
        let saving = tokio::task::spawn_blocking(move || openings.save(opening));
        match timeout(SAVING, saving).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "cannot save the ticket of an event stream; after a restart of the server, its client must request a new ticket");
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot save the ticket of an event stream; after a restart of the server, its client must request a new ticket");
            }
            Err(_) => tracing::warn!(
                "saving the ticket of an event stream takes too long; after a restart of the server, its client may have to request a new ticket"
            ),
        }
    }

    pub(super) fn resume(&self, shown: Shown<'_>) -> Result<Timestamp, Denied> {
        let Shown { ticket, path, origin, now } = shown;
        if !is_events_path(path) {
            return Err(Denied::Failed);
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.opened.get(ticket) {
            Some(opened) if opened.path == path && now < opened.until => {
                check_origin(opened.origin.as_deref(), origin, false).map(|()| opened.until)
            }
            Some(_) => Err(Denied::Failed),
            None => {
                let opening = self.seal.check(ticket, path, origin, now)?;
                self.openings.has(opening).then_some(opening.until).ok_or(Denied::Failed)
            }
        }
    }
}

impl State {
    /// Remembers a ticket. If there is no room, forgets the one that expires first.
    fn remember(&mut self, name: &str, opened: Opened, max: usize, now: Timestamp) {
        self.opened.retain(|_, opened| now < opened.until);
        if max <= self.opened.len() {
            let oldest = self.opened.iter().min_by_key(|(_, opened)| opened.until);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.opened.remove(&oldest);
            }
        }
        self.opened.insert(name.to_owned(), opened);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = "/api/agents/0195bd2f-0a00-7000-8000-000000000000/events";
    const OTHERS: &str = "/api/agents/0195bd2f-0a00-7000-8000-000000000001/events";
    const PAGE: Option<&str> = Some("https://app.example");

    fn tickets(max: usize) -> OwnTickets {
        let openings = Openings::new(None, max, Timestamp(0));
        OwnTickets::new(Seal::new(b"token"), openings, max, Duration::from_secs(30), Duration::from_mins(1))
    }

    fn issue(tickets: &OwnTickets, random: u8, path: Option<&str>, origin: Option<&str>) -> Option<String> {
        let (path, origin) = (path.map(str::to_owned), origin.map(str::to_owned));
        tickets.issue([random; 32], path, origin, Timestamp(0))
    }

    fn shown<'a>(ticket: &'a str, path: &'a str) -> Shown<'a> {
        Shown { ticket, path, origin: None, now: Timestamp(59_999) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_ticket_opens_one_stream_once_and_soon() {
        let tickets = tickets(2);
        let any = issue(&tickets, 1, None, None).unwrap();
        assert_eq!(any, "01".repeat(32));
        assert_eq!(tickets.redeem(shown(&any, "/ws")), Ok(None));
        assert_eq!(tickets.redeem(shown(&any, "/ws")), Err(Denied::Failed), "used");

        let bound = issue(&tickets, 2, Some("/ws"), None).unwrap();
        assert_eq!(tickets.redeem(shown(&bound, EVENTS)), Err(Denied::Failed), "it is for another path");
        assert_eq!(tickets.redeem(shown(&bound, "/ws")), Err(Denied::Failed), "and that try has used it up");

        let list = issue(&tickets, 3, None, None).unwrap();
        assert_eq!(tickets.redeem(shown(&list, "/api/agents")), Err(Denied::Failed), "only streams");

        let late = issue(&tickets, 4, None, None).unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(tickets.redeem(shown(&late, EVENTS)), Err(Denied::Failed), "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_tickets_wait() {
        let tickets = tickets(2);
        assert!(issue(&tickets, 1, None, None).is_some());
        assert!(issue(&tickets, 2, None, None).is_some());
        assert!(issue(&tickets, 3, None, None).is_none());
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(issue(&tickets, 3, None, None).is_some(), "those that expired make room");
    }

    #[tokio::test(start_paused = true)]
    async fn a_ticket_of_an_event_stream_is_good_for_coming_back_to_it_for_a_while() {
        for path in [Some(EVENTS), None] {
            let tickets = tickets(2);
            let ticket = issue(&tickets, 1, path, PAGE).unwrap();
            assert!(tickets.redeem(shown(&ticket, EVENTS)).is_ok());
            let by = |origin| tickets.resume(Shown { origin, ..shown(&ticket, EVENTS) });
            let until = Ok(Timestamp(60_000));
            assert_eq!((by(None), by(PAGE)), (until, until), "{path:?}");
            assert_eq!(by(Some("https://other.example")), Err(Denied::OtherOrigin), "{path:?}");
            assert_eq!(
                tickets.resume(shown(&ticket, OTHERS)),
                Err(Denied::Failed),
                "{path:?}: another agent"
            );
            assert_eq!(
                tickets.resume(shown(&ticket, "/ws")),
                Err(Denied::Failed),
                "{path:?}: no event stream"
            );
            assert_eq!(tickets.redeem(shown(&ticket, EVENTS)), Err(Denied::Failed), "{path:?}: not anew");
            let late = Shown { now: Timestamp(60_000), ..shown(&ticket, EVENTS) };
            assert_eq!(tickets.resume(late), Err(Denied::Failed), "{path:?}: too late");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_ticket_of_a_socket_and_one_that_opened_nothing_are_not_good_for_coming_back() {
        let tickets = tickets(4);
        for path in ["/ws", "/api/chat"] {
            let ticket = issue(&tickets, 1, Some(path), None).unwrap();
            assert_eq!(tickets.redeem(shown(&ticket, path)), Ok(None));
            assert_eq!(tickets.resume(shown(&ticket, path)), Err(Denied::Failed));
            assert_eq!(tickets.resume(shown(&ticket, EVENTS)), Err(Denied::Failed));
        }
        for (random, path) in [(2, None), (3, Some(EVENTS))] {
            let unused = issue(&tickets, random, path, PAGE).unwrap();
            assert_eq!(tickets.resume(shown(&unused, EVENTS)), Err(Denied::Failed), "{path:?}: unused");
            assert_eq!(tickets.redeem(shown(&unused, "/api/agents")), Err(Denied::Failed), "{path:?}");
            assert_eq!(tickets.resume(shown(&unused, EVENTS)), Err(Denied::Failed), "{path:?}: wrongly used");
        }
        let other = issue(&tickets, 4, Some(EVENTS), PAGE).unwrap();
        let elsewhere = Shown { origin: Some("https://other.example"), ..shown(&other, EVENTS) };
        assert_eq!(tickets.redeem(elsewhere), Err(Denied::OtherOrigin));
        assert_eq!(tickets.resume(shown(&other, EVENTS)), Err(Denied::Failed), "by another page");
        let late = issue(&tickets, 5, Some(EVENTS), PAGE).unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(tickets.redeem(shown(&late, EVENTS)), Err(Denied::Failed));
        assert_eq!(tickets.resume(shown(&late, EVENTS)), Err(Denied::Failed), "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_without_a_path_the_newest_are_remembered() {
        let tickets = tickets(2);
        let opened: Vec<_> = (1..=3)
            .map(|second| {
                let now = Timestamp(i64::from(second));
                let ticket = tickets.issue([second; 32], None, None, now).unwrap();
                assert!(tickets.redeem(shown(&ticket, EVENTS)).is_ok());
                tickets.resume(shown(&ticket, EVENTS)).unwrap();
                ticket
            })
            .collect();
        let comes_back = |ticket: &String| tickets.resume(shown(ticket, EVENTS)).is_ok();
        assert_eq!(opened.iter().map(comes_back).collect::<Vec<_>>(), [false, true, true]);
    }
}
