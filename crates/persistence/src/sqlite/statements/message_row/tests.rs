use tokenrail_domain::{AgentId, TurnOutcome};
use tokenrail_ports::testing::samples::{Scribe, error, every_body, json, launch, result};

use super::*;
use crate::format::rows::rows_of;

/// Writes the rows to their own table and reads them back.
fn there_and_back(agent: AgentId, events: &[Event]) -> Vec<Event> {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE t (
            sequence_number INTEGER, first_sequence INTEGER, content TEXT, raw ANY, metadata TEXT,
            created_at TEXT, type TEXT, agent_id TEXT, checksum INTEGER
        ) STRICT",
    )
    .unwrap();
    for row in rows_of(agent, events).unwrap() {
        let first = row.first_sequence.map(|first| first.0 as i64);
        db.execute(
            "INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            rusqlite::params![
                row.sequence.0 as i64,
                first,
                &row.content,
                row.raw.as_deref().map(RawColumn),
                &row.metadata,
                &row.created_at,
                row.kind,
                agent.to_string(),
                row.checksum,
            ],
        )
        .unwrap();
    }
    let mut statement = db.prepare(&format!("SELECT {COLUMNS} FROM t")).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut events = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        events.push(event_of(row).unwrap());
    }
    events
}

#[test]
fn every_event_that_has_a_row_is_all_in_it() {
    let (agent, turn) = launch(1);
    let mut scribe = Scribe::new(&agent);
    let mut events = scribe.start(&turn).events.to_vec();
    events.extend_from_slice(&scribe.say(every_body()).events);
    for outcome in TurnOutcome::ALL {
        let mut result = result(outcome);
        result.error = Some(error());
        result.origin = Some("task".into());
        events.extend_from_slice(&scribe.end_with(result).events);
    }
    events.retain(|event| !event.body.is_delta());
    assert_eq!(there_and_back(agent.id, &events), events);
}

#[test]
fn a_notice_may_have_any_word_for_itself() {
    let (agent, _) = launch(1);
    let words = ["init", "message", "result", "message_delta", "abandoned", ""];
    let events = Scribe::new(&agent)
        .say(words.iter().map(|word| tokenrail_ports::testing::samples::notice(word)).collect())
        .events;
    assert_eq!(there_and_back(agent.id, &events), events.to_vec());
}

#[test]
fn json_that_is_none_is_refused_and_not_stored() {
    let (agent, _) = launch(1);
    let mut bad = result(TurnOutcome::Completed);
    bad.usage = Some(json("{"));
    let events = Scribe::new(&agent).end_with(bad).events;
    assert!(matches!(rows_of(agent.id, &events), Err(StoreError::Corrupt(_))));
}

#[test]
fn a_message_of_text_is_stored_as_text() {
    let (agent, _) = launch(1);
    let mut scribe = Scribe::new(&agent);
    scribe.say(vec![tokenrail_ports::testing::samples::text_delta(0, "[\"looks like JSON\"]")]);
    let complete = scribe.complete(0);
    let events = scribe.say(vec![complete]).events;
    let row = &rows_of(agent.id, &events).unwrap()[0];
    assert_eq!((row.kind, row.role), ("assistant", Some("assistant")));
    assert_eq!(row.content, "[\"looks like JSON\"]");
    assert_eq!(there_and_back(agent.id, &events), events.to_vec());
}
