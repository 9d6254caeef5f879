//! One agent of the memory store: its row, its turns and its journal.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{
    Agent, AgentStatus, Event, EventBody, ListedTurn, Sequence, SessionId, StopReason, Timestamp, Turn,
    TurnNumber, TurnResult, TurnState, cut,
};

use crate::{
    AgentFilter, Append, ListBounds, MessagePage, PageLimit, STOP_REASON_EVENTS, StoreError, TurnRange,
    TurnStep,
};

#[derive(Clone)]
pub(super) struct Shelf {
    pub(super) agent: Agent,
    pub(super) to_purge: bool,
    pub(super) events: Vec<Event>,
    pub(super) turns: BTreeMap<TurnNumber, Turn>,
}

impl Shelf {
    pub(super) fn new(mut agent: Agent, turn: Option<Turn>) -> Self {
        agent.queued = turn.iter().len() as u32;
        let turns = turn.into_iter().map(|turn| (turn.number, turn)).collect();
        Self { agent, to_purge: false, events: Vec::new(), turns }
    }

    pub(super) fn append(&mut self, append: &Append) -> Result<(), StoreError> {
        let conflict = StoreError::Conflict { head: self.agent.head };
        let (Some(first), Some(last)) = (append.events.first(), append.events.last()) else {
            return Err(conflict);
        };
        if first.sequence != self.agent.head.next() {
            return if self.has_exactly(&append.events) { Ok(()) } else { Err(conflict) };
        }
        let result = result_of(append).map_err(|IllFormed| conflict)?;
        let conflict = StoreError::Conflict { head: self.agent.head };
        let Some(status) = self.next_status(&append.step, first.turn, result) else { return Err(conflict) };
        if !self.completes_each_message_once(&append.events) {
            return Err(conflict);
        }

        let turn = match &append.step {
            TurnStep::Start(new) => self.turns.entry(first.turn).or_insert_with(|| (**new).clone()),
            TurnStep::Continue | TurnStep::End => self.turns.get_mut(&first.turn).ok_or(conflict)?,
        };
        turn.spool_offset = append.spool_offset;
        if matches!(append.step, TurnStep::Start(_)) {
            turn.state = TurnState::Running;
            turn.first_sequence = Some(first.sequence);
            self.agent.turn = first.turn;
            self.agent.ended_at = None;
            self.agent.error = None;
            self.agent.usage = None;
        }
        if let Some(result) = result {
            turn.state = TurnState::Ended(result.outcome);
            turn.first_sequence.get_or_insert(first.sequence);
            turn.last_sequence = Some(last.sequence);
            self.agent.ended_at = Some(last.at);
            self.agent.error.clone_from(&result.error);
            self.agent.usage.clone_from(&result.usage);
            self.agent.cost_usd = result.cost_usd.or(self.agent.cost_usd);
        }
        self.agent.status = status;
        self.agent.head = last.sequence;
        self.agent.updated_at = last.at;
        self.agent.session = append.session.clone().map(SessionId::into_string).or(self.agent.session.take());
        self.agent.queued = self.count_queued();
        if result.is_some() {
            self.wait_again();
        }
        self.events.extend(append.events.iter().cloned());
        Ok(())
    }

    pub(super) fn completes_each_message_once(&self, more: &[Event]) -> bool {
        let mut complete = BTreeSet::new();
        let events = self.events.iter().chain(more);
        events.filter_map(|event| Some((event.turn, event.body.completed()?))).all(|it| complete.insert(it))
    }

    pub(super) fn has_exactly(&self, events: &[Event]) -> bool {
        events.iter().all(|event| self.event(event.sequence) == Some(event))
    }

    fn event(&self, sequence: Sequence) -> Option<&Event> {
        self.events.get(usize::try_from(sequence.0.checked_sub(1)?).ok()?)
    }

    /// The agent's status after the step; none where the turn or the agent cannot take it.
    fn next_status(
        &self,
        step: &TurnStep,
        number: TurnNumber,
        result: Option<&TurnResult>,
    ) -> Option<AgentStatus> {
        let state = self.turns.get(&number).map(|turn| turn.state);
        let status = self.agent.status;
        match (step, state, result) {
            (TurnStep::Start(turn), None | Some(TurnState::Queued), _) if turn.number == number => {
                status.transition(AgentStatus::Running).ok()
            }
            (TurnStep::Continue, Some(TurnState::Running), _) => Some(status),
            // A turn that waits can end where none runs: it has failed to start.
            (TurnStep::End, Some(TurnState::Queued), _) if status == AgentStatus::Running => None,
            (TurnStep::End, Some(TurnState::Queued | TurnState::Running), Some(result)) => {
                status.transition(result.outcome.status()).ok()
            }
            _ => None,
        }
    }

    pub(super) fn read(&self, after: Sequence, limit: PageLimit) -> Vec<Event> {
        let after = self.events.iter().filter(|event| after < event.sequence);
        prefix(after, limit).0
    }

    pub(super) fn messages(&self, after: Sequence, limit: PageLimit) -> MessagePage {
        let mut closed = BTreeSet::new();
        let mut shown = Vec::new();
        // Backwards, so that a delta is met after whatever has closed its message.
        for event in self.events.iter().rev().take_while(|event| after < event.sequence) {
            match &event.body {
                EventBody::Message(complete) => {
                    closed.insert((event.turn, complete.message));
                }
                EventBody::Abandoned { message } => {
                    closed.insert((event.turn, *message));
                }
                _ => {}
            }
            let said = event.body.delta_of().map(|message| (event.turn, message));
            if said.is_none_or(|message| !closed.contains(&message) && !self.has_ended(event.turn)) {
                shown.push(event);
            }
        }
        let (events, cut) = prefix(shown.into_iter().rev(), limit);
        let head = self.agent.head;
        let up_to = if cut { events.last().map_or(after, |event| event.sequence) } else { head };
        MessagePage { events, up_to, head }
    }

    fn has_ended(&self, number: TurnNumber) -> bool {
        self.turns.get(&number).is_some_and(|turn| matches!(turn.state, TurnState::Ended(_)))
    }

    pub(super) fn enqueue(&mut self, mut turn: Turn) -> TurnNumber {
        let number = self.turns.last_key_value().map_or(TurnNumber::FIRST, |(last, _)| last.next());
        (turn.number, turn.run) = (number, number);
        turn.state = TurnState::Queued;
        self.agent.updated_at = turn.asked_at;
        self.turns.insert(number, turn);
        self.agent.queued = self.count_queued();
        self.wait_again();
        number
    }

    /// An agent that has ended begins anew where a turn waits.
    fn wait_again(&mut self) {
        let waits = 0 < self.agent.queued;
        if let Some(status) = self.agent.status.transition(AgentStatus::Initializing).ok().filter(|_| waits) {
            self.agent.status = status;
            self.agent.ended_at = None;
        }
    }

    pub(super) fn last_turn(&self) -> TurnNumber {
        self.turns.last_key_value().map_or(TurnNumber::default(), |(last, _)| *last)
    }

    /// Whether the agent is there, and this turn is the newest of those that were asked for.
    pub(super) fn newest_is(&self, turn: TurnNumber) -> bool {
        let mut asked = self.turns.values().rev().filter(|turn| turn.run == turn.number);
        self.agent.deleted_at.is_none() && asked.next().is_some_and(|newest| newest.number == turn)
    }

    pub(super) fn turns(&self, after: TurnNumber) -> Vec<Turn> {
        self.turns.values().filter(|turn| after < turn.number).cloned().collect()
    }

    pub(super) fn list_turns(&self, range: &TurnRange, bounds: ListBounds) -> Vec<ListedTurn> {
        let TurnRange { after, before, newest_first, limit: _ } = *range;
        let wanted = |turn: &&Turn| after < turn.number && before.is_none_or(|before| turn.number < before);
        let mut turns: Vec<ListedTurn> =
            self.turns.values().filter(wanted).map(|turn| self.listed(turn, bounds)).collect();
        if newest_first {
            turns.reverse();
        }
        turns
    }

    pub(super) fn listed(&self, turn: &Turn, bounds: ListBounds) -> ListedTurn {
        let mut turn = turn.clone();
        let truncated = cut(&mut turn.prompt, bounds.field_bytes);
        let result = turn.last_sequence.and_then(|last| self.event(last));
        let near = |event: &&Event| {
            event.turn == turn.number
                && result.is_some_and(|result| result.sequence.0 - event.sequence.0 < STOP_REASON_EVENTS)
        };
        let said = self.events.iter().filter(near).rev().find_map(|event| match &event.body {
            EventBody::Usage(usage) => usage.stop_reason.clone(),
            _ => None,
        });
        ListedTurn { ended_at: result.map(|result| result.at), stop_reason: said, truncated, turn }
    }

    pub(super) fn turn_at(&self, sequence: Sequence) -> Option<Turn> {
        self.turns.get(&self.event(sequence)?.turn).cloned()
    }

    pub(super) fn open_turns(&self) -> Vec<Turn> {
        let open = |turn: &&Turn| !matches!(turn.state, TurnState::Ended(_));
        let mut turns: Vec<Turn> = self.turns.values().filter(open).cloned().collect();
        // The one that runs may have a higher number: the agent has begun it by itself while others waited.
        turns.sort_by_key(|turn| (turn.state != TurnState::Running, turn.number));
        turns
    }

    pub(super) fn cancel(&mut self, at: Timestamp) -> u32 {
        let mut noted = 0;
        for turn in self.turns.values_mut() {
            if turn.stop.is_none() && !matches!(turn.state, TurnState::Ended(_)) {
                turn.stop = Some(StopReason::Cancelled);
                noted += 1;
            }
        }
        self.agent.queued = self.count_queued();
        if 0 < noted {
            self.agent.updated_at = at;
        }
        noted
    }

    pub(super) fn stop_turn(&mut self, number: TurnNumber, reason: StopReason) {
        let open = |turn: &&mut Turn| !matches!(turn.state, TurnState::Ended(_));
        if let Some(turn) = self.turns.get_mut(&number).filter(open) {
            turn.stop.get_or_insert(reason);
        }
        self.agent.queued = self.count_queued();
    }

    fn count_queued(&self) -> u32 {
        let waits = |turn: &Turn| turn.state == TurnState::Queued && turn.stop.is_none();
        self.turns.values().map(|turn| u32::from(waits(turn))).sum()
    }
}

pub(super) fn matches(filter: &AgentFilter, agent: &Agent) -> bool {
    let AgentFilter { statuses, kind, name, before, after, oldest_first: _, deleted, limit: _ } = filter;
    agent.deleted_at.is_some() == *deleted
        && (statuses.is_empty() || statuses.contains(&agent.status))
        && kind.as_ref().is_none_or(|kind| *kind == agent.kind)
        && name.as_ref().is_none_or(|name| Some(name) == agent.name.as_ref())
        && before.is_none_or(|before| agent.id < before)
        && after.is_none_or(|after| after < agent.id)
}

/// An append that breaks the promise of its type.
struct IllFormed;

/// The turn result that ends the append, if one does.
fn result_of(append: &Append) -> Result<Option<&TurnResult>, IllFormed> {
    let mut result = None;
    let mut before: Option<&Event> = None;
    for event in append.events.iter() {
        let follows = before.is_none_or(|b| b.sequence.next() == event.sequence && b.turn == event.turn);
        if !follows || result.is_some() {
            return Err(IllFormed);
        }
        if let EventBody::TurnResult(it) = &event.body {
            result = Some(&**it);
        }
        before = Some(event);
    }
    if result.is_some() == (append.step == TurnStep::End) { Ok(result) } else { Err(IllFormed) }
}

/// As many events as fit, but at least one; and whether there would have been more.
fn prefix<'a>(events: impl Iterator<Item = &'a Event>, limit: PageLimit) -> (Vec<Event>, bool) {
    let mut page = Vec::new();
    let mut bytes = 0;
    for event in events {
        bytes += weight(event);
        if !page.is_empty() && (limit.events <= page.len() || limit.bytes < bytes) {
            return (page, true);
        }
        page.push(event.clone());
    }
    (page, false)
}

fn weight(event: &Event) -> usize {
    let text = match &event.body {
        EventBody::UserMessage { content: text }
        | EventBody::TextDelta { text, .. }
        | EventBody::ReasoningDelta { text, .. }
        | EventBody::ToolInputDelta { fragment: text, .. } => text.len(),
        EventBody::Message(complete) => complete.text().len(),
        EventBody::ToolResult(result) => result.content.as_str().len(),
        EventBody::Notice(notice) => notice.data.as_str().len(),
        _ => 0,
    };
    text + event.raw.as_ref().map_or(0, bytes::Bytes::len)
}
