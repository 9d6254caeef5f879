//! What must be true whatever has happened.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::follower::Follower;
use crate::foreign_follower::ForeignFollower;
use crate::harness::{TestServer, assert_dense, processes_of, text_of};

/// The same checks as `tokenrail doctor`.
pub(crate) fn database_is_sound(data_dir: &Path, when: &str) {
    let diagnosis = tokenrail_persistence::sqlite_doctor(data_dir).expect("it can be examined");
    assert_eq!(diagnosis.faults, [], "{when}");
}

/// The reader has seen and recorded exactly the events that are saved, byte for byte.
pub(crate) fn saw_what_is_there(follower: &Follower, history: &Path, there: &[Box<RawValue>]) {
    let written = std::fs::read_to_string(history).expect("a history");
    let there: Vec<&str> = there.iter().map(|event| event.get()).collect();
    for (index, (seen, there)) in written.lines().zip(&there).enumerate() {
        assert_eq!(&seen, there, "event {} was seen as it is not", index + 1);
    }
    assert_eq!(written.lines().count(), there.len(), "{}", history.display());
    assert!(follower.bytes() == there);
}

/// The reader has the whole text, and gets the same if it reads again.
pub(crate) async fn read_what_was_said(reader: &ForeignFollower, there: &[Box<RawValue>]) {
    let events = parsed(there);
    let deltas = events.iter().filter(|event| event["metadata"]["eventType"] == "content_delta");
    let said: String = deltas.map(|event| event["content"].as_str().expect("a text")).collect();
    assert_eq!(reader.text(), said);
    reader.sees_the_same_again().await;
}

pub(crate) fn parsed(events: &[Box<RawValue>]) -> Vec<Value> {
    let events: Vec<Value> =
        events.iter().map(|event| serde_json::from_str(event.get()).expect("JSON")).collect();
    assert_dense(&events);
    events
}

/// What clients requested, and so how each turn must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The whole turn, with a server that runs throughout.
    Whole,
    /// The whole turn, with a server that is killed. If the agent had not begun by then, the turn is not run again.
    WholeOverKills,
    /// A cancel that was accepted while the agent could not end by itself.
    CancelledInTime,
    /// A cancel that may have come too late, because the agent ends by itself as well.
    CancelledInARace,
}

/// Each turn ended as it must, with the requested text. A cancelled turn has the beginning of it.
pub(crate) fn said_what_was_asked(events: &[Box<RawValue>], texts: &[String], asked: Asked) {
    let events = parsed(events);
    let is_result = |event: &Value| event["metadata"]["eventType"] == "result";
    let turns: Vec<&[Value]> = events.split_inclusive(is_result).collect();
    assert_eq!(turns.len(), texts.len(), "as many turns");
    for (turn, expected) in turns.iter().zip(texts) {
        let text = text_of(turn);
        let outcome = turn.last().expect("a result")["metadata"]["outcome"].as_str().expect("an outcome");
        match (asked, outcome) {
            (Asked::Whole | Asked::WholeOverKills | Asked::CancelledInARace, "completed") => {
                assert_eq!(&text, expected);
            }
            (Asked::CancelledInTime | Asked::CancelledInARace, "cancelled") => {
                assert!(expected.starts_with(&text), "{outcome}: {text}");
            }
            (Asked::WholeOverKills | Asked::CancelledInARace, "interrupted") => {
                assert_eq!(text, "", "an agent that has begun goes on without its server");
            }
            _ => panic!("{asked:?}, but {outcome}: {:?}", turn.last()),
        }
    }
}

/// No process of the server's agents is left after a short wait.
pub(crate) fn no_process_is_left(server: &TestServer, own: usize) {
    let started = Instant::now();
    loop {
        let left = processes_of(&server.data_dir());
        if left.len() <= own {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(15), "they are left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The log of the server contains no panic.
pub(crate) fn nothing_panicked(log: &Path) {
    let said = std::fs::read_to_string(log).unwrap_or_default();
    assert!(!said.contains("panicked"), "{said}");
}
