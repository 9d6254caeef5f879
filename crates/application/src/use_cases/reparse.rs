//! Parses stored raw lines again with the current parser, and writes the result under the same sequence numbers.

mod rereading;

use std::sync::Arc;

use tokenrail_domain::{Agent, AgentId, Event, Sequence, Turn, TurnNumber, TurnState};

use self::rereading::{Misfit, Rereading};
use crate::error::Refusal;
use crate::outside::MakeParser;
use crate::service::AgentService;

/// One finding of a reparse.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The new event differs from the stored one.
    Changed { stored: Box<Event>, parsed: Box<Event> },
    /// From this turn on, the run cannot be reparsed, because its sequence numbers would change their meaning.
    Refused { turn: TurnNumber, reason: String },
}

/// The outcome of a reparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reparsed {
    /// Events that were compared.
    pub events: u64,
    /// Events that differ from the stored ones.
    pub changed: u64,
    /// Runs that cannot be reparsed to their end.
    pub refused: u64,
}

/// Whether a pass writes the new events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Look,
    /// Writes up to this number.
    Write(Sequence),
}

/// The turns of one run, and what reparsing them has found.
struct Run {
    /// The number before its first event.
    before: Sequence,
    /// The last event of the turns that can be reparsed.
    good: Sequence,
    changed: u64,
}

impl AgentService {
    /// Parses the stored lines of an agent's ended turns again with the current parser, and passes each difference
    /// from the stored events to `tell`. With `apply`, the new events are written. Only the content of an event may
    /// change. If there would be more, fewer or other events, that turn and the later turns of the same run stay as
    /// they are.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::UnknownType`], [`Refusal::Store`].
    pub async fn reparse(
        &self,
        id: AgentId,
        apply: bool,
        tell: &mut (dyn FnMut(Finding) + Send),
    ) -> Result<Reparsed, Refusal> {
        let agent = self.get(id).await?;
        let Some(kind) = self.core.outside.types.get(&agent.kind) else {
            return Err(self.core.outside.unknown_type(&agent.kind));
        };
        let mut reparsed = Reparsed::default();
        let mut cursor = Sequence::START;
        while cursor < agent.head {
            let mut look = Reading::new(self, &agent, &kind.parser, cursor);
            let run = look.run(Pass::Look, tell, &mut reparsed).await?;
            if apply && 0 < run.changed {
                let mut write = Reading::new(self, &agent, &kind.parser, cursor);
                let mut quiet = |_| {};
                write.run(Pass::Write(run.good), &mut quiet, &mut Reparsed::default()).await?;
            }
            let nothing_read = look.cursor == cursor;
            cursor = look.cursor;
            if look.open || nothing_read {
                break;
            }
        }
        Ok(reparsed)
    }
}

/// One pass over the turns of one run.
struct Reading<'a> {
    service: &'a AgentService,
    agent: &'a Agent,
    parser: &'a MakeParser,
    cursor: Sequence,
    turn: Option<Turn>,
    rereading: Option<Rereading>,
    refused: bool,
    /// The pass has reached a turn that has not ended.
    open: bool,
}

impl<'a> Reading<'a> {
    fn new(service: &'a AgentService, agent: &'a Agent, parser: &'a MakeParser, cursor: Sequence) -> Self {
        Self { service, agent, parser, cursor, turn: None, rereading: None, refused: false, open: false }
    }

    /// Reads the turns of one run, and stops before the next run.
    async fn run(
        &mut self,
        pass: Pass,
        tell: &mut (dyn FnMut(Finding) + Send),
        reparsed: &mut Reparsed,
    ) -> Result<Run, Refusal> {
        let mut run = Run { before: self.cursor, good: self.cursor, changed: 0 };
        while self.cursor < self.agent.head {
            if matches!(pass, Pass::Write(good) if good <= self.cursor) {
                break;
            }
            if self.turn.as_ref().and_then(|turn| turn.last_sequence).is_none_or(|last| last <= self.cursor)
                && !self.begin_turn(run.before).await?
            {
                break;
            }
            let stored = self.page().await?;
            let Some(last) = stored.last().map(|last| last.sequence) else { break };
            self.cursor = last;
            if self.refused {
                continue;
            }
            match self.read(&stored) {
                Ok(parsed) => {
                    let differs = stored.iter().zip(&parsed).filter(|(stored, parsed)| stored != parsed);
                    let before = run.changed;
                    for (stored, parsed) in differs {
                        run.changed += 1;
                        let (stored, parsed) = (Box::new(stored.clone()), Box::new(parsed.clone()));
                        tell(Finding::Changed { stored, parsed });
                    }
                    reparsed.events += stored.len() as u64;
                    reparsed.changed += run.changed - before;
                    self.settle(pass, &mut run, before, parsed).await?;
                }
                Err(Misfit(reason)) => {
                    self.refused = true;
                    reparsed.refused += 1;
                    let turn = self.turn.as_ref().map_or(TurnNumber::default(), |turn| turn.number);
                    tell(Finding::Refused { turn, reason });
                }
            }
        }
        Ok(run)
    }

    /// Notes how far the run can be reparsed, which is up to the end of a whole turn. In a writing pass, writes the
    /// new events of the page if any of them changed.
    async fn settle(
        &mut self,
        pass: Pass,
        run: &mut Run,
        changed_before: u64,
        parsed: Vec<Event>,
    ) -> Result<(), Refusal> {
        let ended = self.turn.as_ref().and_then(|turn| turn.last_sequence) == Some(self.cursor);
        if ended {
            run.good = self.cursor;
        }
        if matches!(pass, Pass::Write(_)) && changed_before < run.changed {
            self.service.core.outside.archive.rewrite(self.agent.id, Arc::from(parsed)).await?;
        }
        Ok(())
    }

    /// Begins the turn of the next event. Returns false if there is none, it belongs to another run, or it has not
    /// ended.
    async fn begin_turn(&mut self, before: Sequence) -> Result<bool, Refusal> {
        let Some(turn) = self.service.turn_at(self.agent.id, self.cursor.next()).await? else {
            return Ok(false);
        };
        let TurnState::Ended(outcome) = turn.state else {
            self.open = true;
            return Ok(false);
        };
        let begins = self.cursor == before;
        if !begins && self.turn.as_ref().is_none_or(|last| last.run != turn.run) {
            return Ok(false);
        }
        let last = turn.last_sequence.unwrap_or(self.cursor);
        let (result, _) = self.service.events(self.agent.id, last.before(), Some(1)).await?;
        let result = result.into_iter().next();
        match &mut self.rereading {
            Some(rereading) => rereading.next_turn(turn.number, outcome, result),
            None => self.rereading = Some(Rereading::new((self.parser)(), &turn, outcome, result)),
        }
        self.turn = Some(turn);
        Ok(true)
    }

    /// The next stored events of the turn.
    async fn page(&self) -> Result<Vec<Event>, Refusal> {
        let (mut events, _) = self.service.events(self.agent.id, self.cursor, None).await?;
        let number = self.turn.as_ref().map(|turn| turn.number);
        let of_turn = events.iter().take_while(|event| Some(event.turn) == number).count();
        events.truncate(of_turn);
        Ok(events)
    }

    fn read(&mut self, stored: &[Event]) -> Result<Vec<Event>, Misfit> {
        let Some(rereading) = &mut self.rereading else { return Ok(stored.to_vec()) };
        stored.iter().map(|event| rereading.read(event)).collect()
    }
}
