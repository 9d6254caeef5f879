//! The permission requests of one turn, as its journal contains them.

use std::collections::BTreeMap;

use tokenrail_application::Refusal;
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, TurnNumber};

use crate::api::Api;
use crate::vocabularies::turns::permission_notices::{AskedPermission, PermissionNotice};

/// A permission request, and where it was asked and settled.
pub(super) struct KnownRequest {
    pub(super) request: AskedPermission,
    pub(super) at: Sequence,
    pub(super) settled: Option<Sequence>,
}

impl KnownRequest {
    /// Whether the request was still open when a later one was asked. That never changes: if it is open now, it will be
    /// settled after the later one.
    pub(super) fn was_open_at(&self, later: &Self) -> bool {
        self.settled.is_none_or(|settled| later.at < settled)
    }
}

/// The requests with these ids in a turn.
pub(super) async fn requests(
    api: &Api,
    agent: AgentId,
    turn: TurnNumber,
    ids: &[&str],
) -> Result<BTreeMap<String, KnownRequest>, Refusal> {
    let mut known = BTreeMap::new();
    let begin = api.service().turn(agent, turn).await?.and_then(|turn| turn.first_sequence);
    let Some(first) = begin else { return Ok(known) };
    let mut notices = Notices { agent, turn, since: first.before(), is_over: false };
    while let Some(page) = notices.next(api).await? {
        for (at, notice) in page {
            match notice {
                PermissionNotice::Asked(request) if ids.contains(&&*request.request_id) => {
                    known.insert(request.request_id.clone(), KnownRequest { request, at, settled: None });
                }
                PermissionNotice::Asked(_) => {}
                PermissionNotice::Settled(settling) => {
                    if let Some(known) = known.get_mut(&settling.request_id) {
                        known.settled = Some(at);
                    }
                }
            }
        }
    }
    Ok(known)
}

/// Whether the journal contains, after the request, that it is no longer open.
pub(super) async fn is_settled(
    api: &Api,
    (agent, turn): (AgentId, TurnNumber),
    request: &str,
    asked: Sequence,
) -> Result<bool, Refusal> {
    let mut notices = Notices { agent, turn, since: asked, is_over: false };
    while let Some(page) = notices.next(api).await? {
        if page.iter().any(|(_, notice)| settles(notice, request)) {
            return Ok(true);
        }
    }
    Ok(notices.is_over)
}

/// Whether an event says that the request is no longer open.
pub(super) fn is_end_of(event: &Event, request: &str) -> bool {
    match &event.body {
        EventBody::TurnResult(_) => true,
        EventBody::Notice(notice) => PermissionNotice::of(notice).is_some_and(|it| settles(&it, request)),
        _ => false,
    }
}

fn settles(notice: &PermissionNotice, request: &str) -> bool {
    matches!(notice, PermissionNotice::Settled(settling) if settling.request_id == request)
}

/// Reads the notices about permission requests of one turn.
struct Notices {
    agent: AgentId,
    turn: TurnNumber,
    since: Sequence,
    /// Whether the turn has ended.
    is_over: bool,
}

impl Notices {
    /// The next ones, with their numbers. `None` at the end of the turn, or of the journal.
    async fn next(&mut self, api: &Api) -> Result<Option<Vec<(Sequence, PermissionNotice)>>, Refusal> {
        if self.is_over {
            return Ok(None);
        }
        // A notice is not a delta, so this page leaves out most deltas.
        let page = api.service().messages(self.agent, self.since, None).await?;
        if page.up_to <= self.since {
            return Ok(None);
        }
        self.since = page.up_to;
        let mut notices = Vec::new();
        for event in &page.events {
            self.is_over |= event.turn != self.turn || matches!(event.body, EventBody::TurnResult(_));
            if event.turn == self.turn
                && let EventBody::Notice(notice) = &event.body
            {
                notices.extend(PermissionNotice::of(notice).map(|notice| (event.sequence, notice)));
            }
        }
        Ok(Some(notices))
    }
}
