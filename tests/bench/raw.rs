//! The throughput of the store: batches of one agent, one after the other, each awaited. The events are made before.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use tokenrail_domain::{
    Agent, AgentId, Event, EventBody, MessageOrdinal, Part, Sequence, Timestamp, Turn, TurnNumber, TurnState,
};
use tokenrail_persistence::{SqliteConfig, SqliteStore, Synchronous};
use tokenrail_ports::{Append, Epoch, IAgentRepository as _, IJournal as _, TurnStep};

use crate::report::{Report, Table, grouped};
use crate::server::{self, Durability};
use crate::{Failure, Scale};

/// The usual size of a batch in a flood, and the largest batch that the server makes.
const BATCHES: [u64; 2] = [512, 4096];

const LAUNCHED: Timestamp = Timestamp(1_795_299_000_000);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    let columns = ["synchronous, batch", "events/s", "appends/s", "MB/s of lines"];
    let table = Table::begin("raw: what the store takes from one agent", &columns);
    for durability in Durability::ALL {
        let mut best: f64 = 0.0;
        for batch in BATCHES {
            let count = scale.of(400_000) / batch;
            let (seconds, bytes) = one(durability, batch, count).await?;
            let rate = (count * batch) as f64 / seconds;
            best = best.max(rate);
            let name = format!("{}, {batch}", durability.as_str());
            let appends = grouped(count as f64 / seconds);
            table.row(&[name, grouped(rate), appends, format!("{:.0}", bytes as f64 / seconds / 1e6)]);
        }
        report.keep(format!("raw {}", durability.as_str()), best);
    }
    Ok(())
}

/// Returns the seconds, and the bytes of the lines.
async fn one(durability: Durability, batch: u64, count: u64) -> Result<(f64, usize), Failure> {
    let folder = server::folder()?;
    let synchronous = match durability {
        Durability::Full => Synchronous::Full,
        Durability::Normal => Synchronous::Normal,
    };
    let store = SqliteStore::open(SqliteConfig { synchronous, ..SqliteConfig::new(folder.path()) })?;
    let (agent, turn) = launch();
    let id = agent.id;
    store.create(agent, turn.clone().into(), None).await?;
    store.append(begin(turn)).await?;
    let appends: Vec<_> =
        (0..count).map(|number| append(id, deltas(2 + number * batch, batch), TurnStep::Continue)).collect();
    let bytes = appends.iter().flat_map(|append| append.events.iter());
    let bytes = bytes.filter_map(|event| event.raw.as_ref()).map(Bytes::len).sum();
    let started = Instant::now();
    for append in appends {
        store.append(append).await?;
    }
    let seconds = started.elapsed().as_secs_f64();
    store.close().await;
    Ok((seconds, bytes))
}

/// The first append of a turn: what the user has asked.
pub(crate) fn begin(turn: Turn) -> Append {
    let body = EventBody::UserMessage { content: "go".to_owned(), images: Vec::new() };
    let asked = Event { sequence: Sequence(1), at: LAUNCHED, turn: TurnNumber::FIRST, body, raw: None };
    append(turn.agent, vec![asked], TurnStep::Start(Box::new(turn)))
}

pub(crate) fn append(agent: AgentId, events: Vec<Event>, step: TurnStep) -> Append {
    let spool_offset = events.last().map_or(0, |event| event.sequence.0 * 300);
    let open_from = Some(Sequence(2));
    Append {
        agent,
        epoch: Epoch::FIRST,
        events: events.into(),
        step,
        spool_offset,
        session: None,
        open_from,
        then: None,
    }
}

/// Deltas as Claude Code prints them, all slices of one buffer.
pub(crate) fn deltas(first: u64, count: u64) -> Vec<Event> {
    let mut all = BytesMut::new();
    let mut events = Vec::new();
    for number in first..first + count {
        let line = format!(
            "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
             {{\"type\":\"text_delta\",\"text\":\"{number} \"}}}},\"session_id\":\"2ed47069-625f-46a8-8039-fad1b050e0f2\",\
             \"parent_tool_use_id\":null,\"uuid\":\"9ff3e1c0-aded-4f78-8ba2-{number:012x}\",\
             \"api_message_id\":\"msg_011CVMdAzEwSaBLH9pVwnvTq\"}}"
        );
        all.extend_from_slice(line.as_bytes());
        let text = format!("{number} ");
        let body = EventBody::TextDelta { message: MessageOrdinal(0), part: Part(0), text };
        let at = Timestamp(LAUNCHED.0 + number as i64 / 100);
        events.push((
            Event { sequence: Sequence(number), at, turn: TurnNumber::FIRST, body, raw: None },
            line.len(),
        ));
    }
    let mut all = all.freeze();
    events.into_iter().map(|(event, length)| Event { raw: Some(all.split_to(length)), ..event }).collect()
}

pub(crate) fn launch() -> (Agent, Turn) {
    let id = AgentId::new(LAUNCHED, [7; 10]);
    let (prompt, cwd) = ("go".to_owned(), "/".to_owned());
    let agent = Agent { prompt, cwd, ..Agent::new(id, "bench".to_owned(), LAUNCHED) };
    let turn = Turn {
        agent: agent.id,
        number: TurnNumber::FIRST,
        run: TurnNumber::FIRST,
        prompt: "go".to_owned(),
        images: Vec::new(),
        state: TurnState::Queued,
        asked_at: LAUNCHED,
        first_sequence: None,
        last_sequence: None,
        spool_offset: 0,
        stop: None,
        base: None,
    };
    (agent, turn)
}
