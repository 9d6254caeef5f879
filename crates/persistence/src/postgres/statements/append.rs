//! Appending to a journal: the one write that every token goes through.
//!
//! Most appends go by [`move_heads`], which saves those of many agents at once. All others, and those that it does not
//! take, go alone: see [`save_alone`].

mod steps;
mod together;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::join_all;
use tokenrail_domain::{AgentId, Event, Sequence, TurnNumber};
use tokenrail_ports::rules::{self, AppendDecision, NewEvents};
use tokenrail_ports::{Append, StoreError, TurnStep};

use crate::format::batch::BatchRange;
use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::postgres::command::Redone;
use crate::postgres::database::failures::ChangeFailure;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::Membership;
use crate::postgres::statements::columns::int;
use crate::postgres::statements::heads::{self, Journal};
use crate::postgres::statements::journal::{ADD_BATCH, FetchLimit, add_batch, events_between};
use crate::postgres::statements::message_row::{ADD_MESSAGES, add_messages};
use crate::postgres::statements::{ownership, turn_ends};

pub(crate) use self::steps::{unarchive_if_archived, wait_again};
use self::together::MOVE_HEADS;
pub(crate) use self::together::move_heads;

/// An append with those that are chained to it (`Append::then`). Its events are packed on the caller's thread.
pub(crate) struct PreparedAppend {
    pub(crate) append: Append,
    /// The node that has it.
    node: i64,
    /// One for each part; `None` if a part is not well-formed.
    parts: Vec<Option<PreparedPart>>,
}

struct PreparedPart {
    /// If it starts a turn: the node that does.
    starter: Option<i64>,
    codec: Codec,
    payload: Vec<u8>,
    rows: Vec<MessageRow>,
}

impl PreparedAppend {
    pub(crate) fn new(append: Append, membership: &Membership) -> Result<Self, StoreError> {
        let parts =
            append.parts().map(|part| PreparedPart::of(part, membership)).collect::<Result<_, _>>()?;
        // Only a start needs a node that has joined.
        let node = membership.joined().map_or(0, |joined| joined.id);
        Ok(Self { append, node, parts })
    }

    pub(crate) fn agent(&self) -> AgentId {
        self.append.agent
    }

    /// The number of its first event.
    pub(crate) fn first(&self) -> Option<Sequence> {
        self.append.events.first().map(|event| event.sequence)
    }

    /// The number of its last event.
    pub(crate) fn last(&self) -> Option<Sequence> {
        self.append.parts().last()?.events.last().map(|event| event.sequence)
    }

    /// How much memory it holds, about.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        let events = self.append.parts().flat_map(|part| part.events.iter());
        let bytes = |event: &Event| {
            size_of::<Event>() + event.body.text_bytes() + event.raw.as_ref().map_or(0, bytes::Bytes::len)
        };
        size_of::<Self>() + self.bytes() + events.map(bytes).sum::<usize>()
    }

    /// How many bytes it sends, about.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().flatten().map(PreparedPart::bytes).sum()
    }

    /// Where the packed events are in memory.
    #[cfg(test)]
    pub(crate) fn sent_bytes(&self) -> Vec<*const u8> {
        self.parts.iter().flatten().map(|part| part.payload.as_ptr()).collect()
    }

    /// Whether it changes nothing but the journal and its head, so that it may go with those of other agents.
    pub(crate) fn goes_with_others(&self) -> bool {
        let Append { agent: _, epoch: _, events: _, step, spool_offset: _, session, open_from: _, then } =
            &self.append;
        *step == TurnStep::Continue
            && then.is_none()
            && session.is_none()
            && !rules::needs_user(&self.append)
            && matches!(self.parts[..], [Some(_)])
    }
}

impl PreparedPart {
    fn of(append: &Append, membership: &Membership) -> Result<Option<Self>, StoreError> {
        if !rules::is_well_formed(append) {
            return Ok(None);
        }
        let starter = match &append.step {
            TurnStep::Start(_) => Some(membership.id()?),
            TurnStep::Continue | TurnStep::End => None,
        };
        let rows = rows_of(append.agent, &append.events)?;
        let (codec, payload) =
            packing::pack_quick(&append.events).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Some(Self { starter, codec, payload, rows }))
    }

    fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| {
            row.content.len() + row.metadata.len() + row.raw.as_ref().map_or(0, bytes::Bytes::len)
        });
        self.payload.len() + rows.sum::<usize>()
    }
}

/// Saves one append, with those that are chained to it, in a transaction: three round trips for an append that is not
/// chained. An append that an earlier try has saved is saved.
///
/// Locking the agent is a write. So the commit waits for the standby also if nothing else is written: what an earlier
/// try had saved may have been visible before it was durable.
pub(crate) async fn save_alone(
    db: &Link,
    prepared: &PreparedAppend,
    wait: Duration,
    fetch: FetchLimit,
) -> Result<(), ChangeFailure> {
    let first = &prepared.append;
    let place = heads::lock_place(db, first.agent, turn_of(first));
    db.change_after(wait, place, async |place| save_parts(db, place, prepared, fetch).await).await
}

/// Saves an append that was acknowledged before a failover, unless it is there. The failover may have lost the
/// ownership too; a higher one that is there is that of another node.
pub(crate) async fn save_again(
    db: &Link,
    prepared: &PreparedAppend,
    wait: Duration,
    fetch: FetchLimit,
) -> Result<Redone, ChangeFailure> {
    let first = &prepared.append;
    let place = heads::lock_place(db, first.agent, turn_of(first));
    db.change_after(wait, place, async |mut place| {
        let is_there = prepared.last() <= Some(place.state.head);
        if place.state.epoch < first.epoch && !is_there {
            ownership::raise(db, place.agent, prepared.node, first.epoch).await?;
            place.state.epoch = first.epoch;
        }
        save_parts(db, place, prepared, fetch).await?;
        Ok(if is_there { Redone::There } else { Redone::Again })
    })
    .await
}

/// The turn of its events.
fn turn_of(append: &Append) -> TurnNumber {
    append.events.first().map_or(TurnNumber(0), |first| first.turn)
}

/// Saves an append and those that are chained to it. `place` is where the first one goes.
async fn save_parts(
    db: &Link,
    place: Journal,
    prepared: &PreparedAppend,
    fetch: FetchLimit,
) -> Result<(), QueryFailure> {
    let mut place = Some(place);
    for (append, part) in prepared.append.parts().zip(&prepared.parts) {
        let journal = match place.take() {
            Some(journal) => journal,
            // The part before has changed it.
            None => heads::place(db, append.agent, turn_of(append)).await?,
        };
        save_part(db, journal, append, part.as_ref(), fetch).await?;
    }
    Ok(())
}

async fn save_part(
    db: &Link,
    journal: Journal,
    append: &Append,
    part: Option<&PreparedPart>,
    fetch: FetchLimit,
) -> Result<(), QueryFailure> {
    let Journal { agent, state, phase } = journal;
    let conflict = || QueryFailure::Refused(StoreError::Conflict { head: state.head });
    let refused = || QueryFailure::Refused(state.refusal(append));
    let Some(part) = part else { return Err(conflict()) };
    match state.admit(append, |_| Ok::<_, StoreError>(phase))? {
        AppendDecision::Refuse => Err(refused()),
        AppendDecision::Compare { first, last } => {
            let stored = events_between(db, agent, (first, last), fetch).await?;
            if stored == *append.events { Ok(()) } else { Err(refused()) }
        }
        AppendDecision::Write(new) => {
            // A message that is completed twice, or an id that exists already: a bug of the caller.
            let written = write(db, agent, append, part, new).await;
            written.map_err(|failure| failure.if_taken(conflict))
        }
    }
}

/// The statements of an append that goes alone. They must be prepared, so that the steps of [`write`] are sent in
/// order.
pub(crate) fn statements() -> Vec<&'static str> {
    let rows = [MOVE_HEADS, ADD_BATCH, ADD_MESSAGES];
    [&rows[..], &steps::STATEMENTS, &heads::OF_A_PLACE, &turn_ends::OF_A_NOTE, &ownership::OF_AN_APPEND]
        .concat()
}

/// Sends all statements, and then waits for their answers.
async fn write(
    db: &Link,
    agent: i64,
    append: &Append,
    part: &PreparedPart,
    new: NewEvents<'_>,
) -> Result<(), QueryFailure> {
    let NewEvents { first, last, result, after } = new;
    let range = BatchRange { agent, first: first.sequence, last: last.sequence, turn: first.turn };
    let mut all: Vec<Step<'_>> = vec![
        Box::pin(add_batch(db, range, part.codec, &part.payload)),
        Box::pin(add_messages(db, agent, &part.rows)),
        Box::pin(steps::move_head(db, agent, append, (after, last))),
    ];
    if let Some(session) = &append.session {
        all.push(Box::pin(steps::set_session(db, agent, session)));
    }
    if rules::needs_user(append) {
        all.push(Box::pin(steps::unarchive(db, agent)));
    }
    if let TurnStep::Start(turn) = &append.step {
        all.push(Box::pin(steps::start_turn(db, agent, append, turn, first)));
        all.push(Box::pin(steps::agent_starts(db, agent)));
    }
    if let Some(node) = part.starter {
        all.push(Box::pin(ownership::keep(db, agent, node)));
    }
    if let Some(result) = result {
        all.push(Box::pin(steps::end_turn(db, agent, append, result, (first, last))));
        all.push(Box::pin(steps::agent_ends(db, agent, result, (after, last))));
        all.push(Box::pin(turn_ends::note(db, agent, Some(int(first.turn.0)))));
        all.push(Box::pin(steps::wait_again(db, agent)));
        all.push(Box::pin(ownership::release(db, agent)));
    }
    // The first failure is the cause of those that follow.
    join_all(all).await.into_iter().collect()
}

type Step<'a> = Pin<Box<dyn Future<Output = Result<(), QueryFailure>> + Send + 'a>>;
