//! The rules of an append.

use tokenrail_domain::{AgentStatus, Event, EventBody, Notice, Sequence, TurnNumber, TurnResult, TurnState};

use crate::{Append, Epoch, StoreError, TurnStep};

/// Whether an append has the form that its fields promise. A store refuses any other append as a conflict.
///
/// Its events are consecutive, not empty, and of one turn. If and only if the step is [`TurnStep::End`], the last event
/// is a turn result. No other event is one. If the step is [`TurnStep::Start`], the events belong to the turn that
/// starts.
pub fn is_well_formed(append: &Append) -> bool {
    let events = &append.events;
    let consecutive = events.windows(2).all(|pair| {
        pair[0].sequence.next() == pair[1].sequence
            && pair[0].turn == pair[1].turn
            && !matches!(pair[0].body, EventBody::TurnResult(_))
    });
    let starts_right = match &append.step {
        TurnStep::Start(turn) => events.first().is_some_and(|first| first.turn == turn.number),
        TurnStep::Continue | TurnStep::End => true,
    };
    !events.is_empty()
        && consecutive
        && starts_right
        && result_of(append).is_some() == (append.step == TurnStep::End)
}

/// Whether an append contains a permission request. The agent then needs its user, so a store that writes the append
/// also puts an archived agent back into the lists.
pub fn needs_user(append: &Append) -> bool {
    let asks = |event: &Event| matches!(&event.body, EventBody::Notice(notice) if notice.subtype == Notice::PERMISSION_REQUEST);
    append.events.iter().any(asks)
}

fn result_of(append: &Append) -> Option<&TurnResult> {
    match &append.events.last()?.body {
        EventBody::TurnResult(result) => Some(result),
        _ => None,
    }
}

/// What a store knows of an agent's journal between two appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalState {
    pub status: AgentStatus,
    /// The number of the newest event.
    pub head: Sequence,
    /// The turn that started last.
    pub turn: TurnNumber,
    /// Whether that turn is running.
    pub running: bool,
    /// The ownership under which the journal is written.
    pub epoch: Epoch,
}

/// How far a turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnPhase {
    Queued,
    Running,
    Ended,
}

impl From<TurnState> for TurnPhase {
    fn from(state: TurnState) -> Self {
        match state {
            TurnState::Queued => Self::Queued,
            TurnState::Running => Self::Running,
            TurnState::Ended(_) => Self::Ended,
        }
    }
}

/// What a store does with a well-formed append.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AppendDecision<'a> {
    /// Writes it.
    Write(NewEvents<'a>),
    /// Compares it with the stored events `first ..= last`. If they are equal, the append was saved before and the
    /// answer is `Ok`, whatever its epoch; if not, it is refused: see [`JournalState::refusal`].
    Compare { first: Sequence, last: Sequence },
    /// Refuses it: see [`JournalState::refusal`].
    Refuse,
}

/// An append that the store must write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewEvents<'a> {
    pub first: &'a Event,
    pub last: &'a Event,
    /// The result, if the append ends its turn.
    pub result: Option<&'a TurnResult>,
    /// The state of the journal afterwards. If the turn ends and another one is queued, the status then becomes
    /// `initializing`: see [`begins_again`].
    pub after: JournalState,
}

impl JournalState {
    /// Decides about a well-formed append. `phase` returns the phase of a turn, `None` if the store does not have it;
    /// it is called only if the append starts or ends a turn.
    ///
    /// # Errors
    /// Those of `phase`.
    pub fn admit<'a, E>(
        &self,
        append: &'a Append,
        phase: impl FnOnce(TurnNumber) -> Result<Option<TurnPhase>, E>,
    ) -> Result<AppendDecision<'a>, E> {
        let (Some(first), Some(last)) = (append.events.first(), append.events.last()) else {
            return Ok(AppendDecision::Refuse);
        };
        if first.sequence != self.head.next() {
            let (first, last) = (first.sequence, last.sequence);
            return Ok(if last <= self.head {
                AppendDecision::Compare { first, last }
            } else {
                AppendDecision::Refuse
            });
        }
        if append.epoch != self.epoch {
            return Ok(AppendDecision::Refuse);
        }
        let result = result_of(append);
        let Some(status) = self.status_after(append, first.turn, result, phase)? else {
            return Ok(AppendDecision::Refuse);
        };
        let running = append.step != TurnStep::End;
        // A turn that ends before it has started is not the one that started last.
        let turn = if running || self.running { first.turn } else { self.turn };
        let after = Self { status, head: last.sequence, turn, running, epoch: self.epoch };
        Ok(AppendDecision::Write(NewEvents { first, last, result, after }))
    }

    /// The error of an append that is refused.
    pub fn refusal(&self, append: &Append) -> StoreError {
        if append.epoch == self.epoch { StoreError::Conflict { head: self.head } } else { StoreError::Fenced }
    }

    /// `None` if the turn or the agent is not in a state for the step.
    fn status_after<E>(
        &self,
        append: &Append,
        turn: TurnNumber,
        result: Option<&TurnResult>,
        phase: impl FnOnce(TurnNumber) -> Result<Option<TurnPhase>, E>,
    ) -> Result<Option<AgentStatus>, E> {
        let is_this_turn = self.turn == turn;
        let (open, next) = match (&append.step, result) {
            (TurnStep::Continue, _) => return Ok((self.running && is_this_turn).then_some(self.status)),
            (TurnStep::Start(_), _) => {
                (matches!(phase(turn)?, None | Some(TurnPhase::Queued)), AgentStatus::Running)
            }
            // A queued turn can end if no turn is running: it failed to start.
            (TurnStep::End, Some(result)) => {
                let open = matches!(phase(turn)?, Some(TurnPhase::Queued | TurnPhase::Running));
                (open && (!self.running || is_this_turn), AgentStatus::from(result.outcome))
            }
            (TurnStep::End, None) => return Ok(None),
        };
        Ok(self.status.transition(next).ok().filter(|_| open))
    }
}

/// Whether no further turn can be queued. `waiting` turns wait to run. `cancelled` turns were cancelled while they
/// waited, and keep their place until they can end: as many of them as of the others, so that turns that are cancelled
/// one by one have a bound too.
pub fn is_queue_full(waiting: u32, cancelled: u32, queue_max: u32) -> bool {
    queue_max <= waiting || queue_max < cancelled
}

/// Whether an agent with this status becomes `initializing`: it has ended, and at least one turn is queued.
pub fn begins_again(status: AgentStatus, queued: u32) -> bool {
    0 < queued && !status.is_active()
}

#[cfg(test)]
mod tests;
