//! Reads what the journal contains of a run now. Nothing here waits for more events.

use tokenrail_domain::{AgentId, Event, EventBody, ListedTurn, Sequence, Timestamp, Turn, TurnState};

use crate::api::Api;
use crate::error::Problem;
use crate::fold::{Fold as _, Silence};
use crate::vocabularies::letta::dto::UsageStatistics;
use crate::vocabularies::letta::fold::{Ending, LettaFold, REASON_EVENTS, stop_reason};
use crate::vocabularies::letta::run_id::RunId;

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) at: Timestamp,
    /// The same stop reason as in its stream.
    pub(super) stop_reason: &'static str,
}

impl End {
    /// The end as it was saved with the turn. `None` if the turn has not ended, or if no end was saved.
    pub(super) fn noted(listed: &ListedTurn) -> Option<Self> {
        let TurnState::Ended(outcome) = listed.turn.state else { return None };
        Some(Self { at: listed.ended_at?, stop_reason: stop_reason(outcome, listed.stop_reason.as_deref()) })
    }
}

/// Reads how a run ended from its events. `None` if it has not ended.
pub(super) async fn end(api: &Api, turn: &Turn) -> Result<Option<End>, Problem> {
    let (TurnState::Ended(_), Some(last)) = (turn.state, turn.last_sequence) else { return Ok(None) };
    let since = Sequence(last.0.saturating_sub(REASON_EVENTS).max(before(turn).0));
    let (mut ending, mut end) = (Ending::default(), None);
    read(api, turn.agent, since, last, |event| {
        end = ending.event(event).map(|stop_reason| End { at: event.at, stop_reason });
    })
    .await?;
    Ok(end)
}

/// Reads the usage of a run so far.
pub(super) async fn usage(api: &Api, run: RunId, turn: &Turn) -> Result<UsageStatistics, Problem> {
    let mut fold = LettaFold::new(run.agent, run.turn, run.tokens);
    let mut usage = fold.usage_so_far();
    if turn.first_sequence.is_none() {
        return Ok(usage);
    }
    let mut since = before(turn);
    loop {
        // Deltas contain no usage, so this page leaves out most of them.
        let page = api.service().messages(run.agent, since, None).await?;
        let of_turn = page.events.iter().take_while(|event| event.turn == run.turn);
        for event in of_turn {
            fold.event(event, &mut Silence);
            usage = match &event.body {
                EventBody::TurnResult(result) => return Ok(fold.usage_of(result)),
                _ => fold.usage_so_far(),
            };
        }
        let ends = page.events.last().is_some_and(|last| last.turn != run.turn);
        if ends || page.up_to <= since || page.head <= page.up_to {
            return Ok(usage);
        }
        since = page.up_to;
    }
}

/// The cursor before the first event of a run.
pub(super) fn before(turn: &Turn) -> Sequence {
    turn.first_sequence.map_or(Sequence::START, |first| Sequence(first.0.saturating_sub(1)))
}

/// Passes to `see` the existing events after `since`, up to `until`.
pub(super) async fn read(
    api: &Api,
    agent: AgentId,
    mut since: Sequence,
    until: Sequence,
    mut see: impl FnMut(&Event),
) -> Result<(), Problem> {
    while since < until {
        let wanted = usize::try_from(until.0 - since.0).ok();
        let (events, _) = api.service().events(agent, since, wanted).await?;
        let Some(last) = events.last() else { break };
        since = last.sequence;
        events.iter().filter(|event| event.sequence <= until).for_each(&mut see);
    }
    Ok(())
}
