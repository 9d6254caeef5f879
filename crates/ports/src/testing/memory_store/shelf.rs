//! One agent of the memory store: its row, its turns and its journal.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use bytes::Bytes;
use tokenrail_domain::{
    Agent, AgentStatus, Event, EventBody, ImageFile, ListedTurn, NodeId, Sequence, SessionId, StopReason,
    Timestamp, Turn, TurnImage, TurnNumber, TurnState, cut,
};

use crate::rules::{self, AppendDecision, EventPage, Flow, JournalState, NewEvents};
use crate::{
    AgentFilter, Append, Epoch, ListBounds, MessagePage, NewTurn, PageLimit, STOP_REASON_EVENTS, Standing,
    StoreError, TurnRange, TurnStep,
};

#[derive(Clone)]
pub(super) struct Shelf {
    pub(super) agent: Agent,
    /// Who may append; nobody while no turn is open.
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: Epoch,
    pub(super) to_purge: bool,
    pub(super) events: Vec<Event>,
    pub(super) turns: BTreeMap<TurnNumber, Turn>,
    pub(super) images: BTreeMap<TurnNumber, Vec<TurnImage>>,
}

impl Shelf {
    pub(super) fn new(mut agent: Agent, turn: Option<NewTurn>) -> Self {
        agent.queued = turn.iter().len() as u32;
        let (turns, images) = (BTreeMap::new(), BTreeMap::new());
        let (owner, epoch) = (None, Epoch::FIRST);
        let mut it = Self { agent, owner, epoch, to_purge: false, events: Vec::new(), turns, images };
        if let Some(turn) = turn {
            it.add(turn);
        }
        it
    }

    pub(super) fn add(&mut self, turn: NewTurn) {
        let (turn, images) = turn.into_parts();
        // A database has a copy too.
        let copy = |image: ImageFile| ImageFile::new(Bytes::copy_from_slice(image.data())).unwrap_or(image);
        let images = images.into_iter().map(|image| match image {
            TurnImage::File(image) => TurnImage::File(copy(image)),
            lost @ TurnImage::Lost(_) => lost,
        });
        let images = images.collect();
        self.images.insert(turn.number, images);
        self.turns.insert(turn.number, turn);
    }

    pub(super) fn lose_image(&mut self, turn: TurnNumber, position: usize) {
        if let Some(image) = self.images.get_mut(&turn).and_then(|images| images.get_mut(position)) {
            *image = TurnImage::Lost(image.summary());
        }
    }

    pub(super) fn image(&self, turn: TurnNumber, position: u32) -> Option<ImageFile> {
        self.images.get(&turn)?.get(usize::try_from(position).ok()?)?.file().cloned()
    }

    /// Adds all parts of an append, or none.
    pub(super) fn append(&mut self, append: &Append, node: NodeId) -> Result<(), StoreError> {
        // A copy of the events would cost more with each append. They only become more, so their number is enough.
        let events = mem::take(&mut self.events);
        let (before, count) = (self.clone(), events.len());
        self.events = events;
        let added = append.parts().try_for_each(|part| self.append_part(part, node));
        if added.is_err() {
            let mut events = mem::replace(self, before).events;
            events.truncate(count);
            self.events = events;
        }
        added
    }

    fn append_part(&mut self, append: &Append, node: NodeId) -> Result<(), StoreError> {
        let conflict = || StoreError::Conflict { head: self.agent.head };
        if !rules::is_well_formed(append) {
            return Err(conflict());
        }
        let phase = |number| Ok(self.turns.get(&number).map(|turn| turn.state.into()));
        let state = self.state();
        let new = match state.admit::<StoreError>(append, phase)? {
            AppendDecision::Write(new) if self.completes_each_message_once(&append.events) => new,
            AppendDecision::Compare { .. } if self.has_exactly(&append.events) => return Ok(()),
            AppendDecision::Write(_) | AppendDecision::Compare { .. } | AppendDecision::Refuse => {
                return Err(state.refusal(append));
            }
        };
        self.write(append, new, node).ok_or_else(|| StoreError::Conflict { head: self.agent.head })
    }

    /// Whether this node continues its open turns.
    pub(super) fn belongs_to(&self, node: NodeId) -> bool {
        self.owner.map_or_else(|| self.agent.is_at_home(node), |owner| owner == node)
    }

    pub(super) fn standing(&self) -> Standing {
        let Agent { id, head, deleted_at, .. } = self.agent;
        Standing { agent: id, head, open: !self.open_turns().is_empty(), deleted: deleted_at.is_some() }
    }

    /// The state on which the rules decide.
    fn state(&self) -> JournalState {
        let Agent { status, head, turn, .. } = self.agent;
        JournalState { status, head, turn, running: status == AgentStatus::Running, epoch: self.epoch }
    }

    /// `None` if there is no such turn.
    fn write(&mut self, append: &Append, new: NewEvents<'_>, node: NodeId) -> Option<()> {
        let NewEvents { first, last, result, after } = new;
        let turn = match &append.step {
            TurnStep::Start(new) => {
                let turn = self.turns.entry(first.turn).or_insert_with(|| (**new).clone());
                turn.base.clone_from(&new.base);
                turn
            }
            TurnStep::Continue | TurnStep::End => self.turns.get_mut(&first.turn)?,
        };
        turn.spool_offset = append.spool_offset;
        if matches!(append.step, TurnStep::Start(_)) {
            turn.state = TurnState::Running;
            turn.first_sequence = Some(first.sequence);
            self.agent.ended_at = None;
            self.agent.error = None;
            self.agent.usage = None;
            self.owner = Some(node);
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
        JournalState { status: self.agent.status, head: self.agent.head, turn: self.agent.turn, .. } = after;
        self.agent.updated_at = last.at;
        self.agent.archived &= !rules::needs_user(append);
        self.agent.session = append.session.clone().map(SessionId::into_string).or(self.agent.session.take());
        self.agent.queued = self.count_queued();
        if result.is_some() {
            self.wait_again();
            if self.open_turns().is_empty() {
                self.owner = None;
            }
        }
        self.events.extend(append.events.iter().cloned());
        Some(())
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

    pub(super) fn read(&self, after: Sequence, limit: PageLimit) -> Vec<Event> {
        let after = self.events.iter().filter(|event| after < event.sequence);
        page_of(after, limit).0
    }

    pub(super) fn messages(&self, after: Sequence, limit: PageLimit) -> MessagePage {
        let mut closed = BTreeSet::new();
        let mut shown = Vec::new();
        // Backwards, so that each delta comes after the event that closes its message.
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
        let (events, flow) = page_of(shown.into_iter().rev(), limit);
        let head = self.agent.head;
        let up_to = match flow {
            Flow::Enough => events.last().map_or(after, |event| event.sequence),
            Flow::More => head,
        };
        MessagePage { events, up_to, head }
    }

    fn has_ended(&self, number: TurnNumber) -> bool {
        self.turns.get(&number).is_some_and(|turn| matches!(turn.state, TurnState::Ended(_)))
    }

    pub(super) fn enqueue(&mut self, mut turn: Turn, images: Vec<TurnImage>) -> TurnNumber {
        let number = self.turns.last_key_value().map_or(TurnNumber::FIRST, |(last, _)| last.next());
        (turn.number, turn.run) = (number, number);
        turn.state = TurnState::Queued;
        self.agent.updated_at = self.agent.updated_at.max(turn.asked_at);
        self.add(NewTurn::with_lost(turn, images));
        self.agent.queued = self.count_queued();
        self.wait_again();
        number
    }

    fn wait_again(&mut self) {
        if rules::begins_again(self.agent.status, self.agent.queued) {
            self.agent.status = AgentStatus::Initializing;
            self.agent.ended_at = None;
        }
    }

    pub(super) fn last_turn(&self) -> TurnNumber {
        self.turns.last_key_value().map_or(TurnNumber::default(), |(last, _)| *last)
    }

    /// Whether the agent is not deleted, and this turn is the newest one that a client requested.
    pub(super) fn newest_is(&self, turn: TurnNumber) -> bool {
        let mut asked = self.turns.values().rev().filter(|turn| turn.run == turn.number);
        self.agent.deleted_at.is_none() && asked.next().is_some_and(|newest| newest.number == turn)
    }

    pub(super) fn turns(&self, after: TurnNumber) -> Vec<Turn> {
        self.turns.values().filter(|turn| after < turn.number).cloned().collect()
    }

    pub(super) fn list_turns(&self, range: &TurnRange, bounds: ListBounds) -> Vec<ListedTurn> {
        let TurnRange { after, before, with_base, newest_first, limit: _ } = *range;
        let wanted = |turn: &&Turn| {
            after < turn.number
                && before.is_none_or(|before| turn.number < before)
                && (!with_base || turn.base.is_some())
        };
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

    /// Whether its first turn is queued.
    pub(super) fn is_waiting_launch(&self) -> bool {
        let first = self.turns.get(&TurnNumber::FIRST);
        first.is_some_and(|turn| turn.state == TurnState::Queued && turn.stop.is_none())
    }

    pub(super) fn open_turns(&self) -> Vec<Turn> {
        let open = |turn: &&Turn| !matches!(turn.state, TurnState::Ended(_));
        let mut turns: Vec<Turn> = self.turns.values().filter(open).cloned().collect();
        // The running turn may have a higher number, if the agent started it by itself while others were queued.
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
            self.agent.updated_at = self.agent.updated_at.max(at);
        }
        noted
    }

    pub(super) fn stop_turn(&mut self, number: TurnNumber, reason: StopReason) -> Option<StopReason> {
        let open = |turn: &&mut Turn| !matches!(turn.state, TurnState::Ended(_));
        let first = *self.turns.get_mut(&number).filter(open)?.stop.get_or_insert(reason);
        self.agent.queued = self.count_queued();
        Some(first)
    }

    pub(super) fn count_queued(&self) -> u32 {
        self.count_waiting(|turn| turn.stop.is_none())
    }

    pub(super) fn count_cancelled(&self) -> u32 {
        self.count_waiting(|turn| turn.stop.is_some())
    }

    fn count_waiting(&self, counts: impl Fn(&Turn) -> bool) -> u32 {
        let waiting = self.turns.values().filter(|turn| turn.state == TurnState::Queued);
        waiting.map(|turn| u32::from(counts(turn))).sum()
    }
}

pub(super) fn matches(filter: &AgentFilter, agent: &Agent) -> bool {
    agent.deleted_at.is_some() == filter.deleted
        && (!filter.pinned || agent.pinned)
        && filter.archived.wanted().is_none_or(|wanted| agent.archived == wanted)
        && (filter.statuses.is_empty() || filter.statuses.contains(&agent.status))
        && filter.kind.as_ref().is_none_or(|kind| *kind == agent.kind)
        && filter.name.as_ref().is_none_or(|name| Some(name) == agent.name.as_ref())
        && filter.before.is_none_or(|before| agent.id < before)
        && filter.after.is_none_or(|after| after < agent.id)
        && filter.launched_by.is_none_or(|parent| agent.launched_by.is_some_and(|by| by.agent == parent))
}

/// As many events as fit, but at least one, and whether there are more.
fn page_of<'a>(events: impl Iterator<Item = &'a Event>, limit: PageLimit) -> (Vec<Event>, Flow) {
    let mut page = EventPage::new(limit);
    for event in events {
        if page.offer(event.clone()) == Flow::Enough {
            return (page.events, Flow::Enough);
        }
    }
    (page.events, Flow::More)
}
