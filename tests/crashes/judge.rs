//! What must be true whatever has happened.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::follower::Follower;
use crate::harness::{TestServer, assert_dense, processes_of, text_of};

/// The same examination as `tokenrail doctor`.
pub(crate) fn database_is_sound(data_dir: &Path, when: &str) {
    let diagnosis = tokenrail_persistence::doctor(data_dir).expect("it can be examined");
    assert_eq!(diagnosis.faults, [], "{when}");
}

/// What the reader has seen and has written down are the events that are there, to the last byte.
pub(crate) fn saw_what_is_there(follower: &Follower, history: &Path, there: &[Box<RawValue>]) {
    let written = std::fs::read_to_string(history).expect("a history");
    let there: Vec<&str> = there.iter().map(|event| event.get()).collect();
    for (index, (seen, there)) in written.lines().zip(&there).enumerate() {
        assert_eq!(&seen, there, "event {} was seen as it is not", index + 1);
    }
    assert_eq!(written.lines().count(), there.len(), "{}", history.display());
    assert!(follower.bytes() == there);
}

pub(crate) fn parsed(events: &[Box<RawValue>]) -> Vec<Value> {
    let events: Vec<Value> =
        events.iter().map(|event| serde_json::from_str(event.get()).expect("JSON")).collect();
    assert_dense(&events);
    events
}

/// What clients have asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    ToTheEnd,
    AndCancelled,
}

/// Each turn has said the text that was asked for. What was interrupted or cancelled has said the beginning of it: a
/// server that was killed before the agent had started, or a client that cancelled.
pub(crate) fn said_what_was_asked(events: &[Box<RawValue>], texts: &[String], asked: Asked) {
    let events = parsed(events);
    let is_result = |event: &Value| event["metadata"]["eventType"] == "result";
    let turns: Vec<&[Value]> = events.split_inclusive(is_result).collect();
    assert_eq!(turns.len(), texts.len(), "as many turns");
    for (turn, expected) in turns.iter().zip(texts) {
        let (text, outcome) = (text_of(turn), turn.last().expect("a result")["metadata"]["outcome"].clone());
        match outcome.as_str() {
            Some("completed") => assert_eq!(&text, expected),
            Some("interrupted" | "cancelled") => assert!(expected.starts_with(&text), "{outcome}: {text}"),
            // A server that is killed between the signal and the agent's end may have forgotten why there was one.
            Some("failed") if asked == Asked::AndCancelled => {
                assert!(expected.starts_with(&text), "{outcome}: {text}");
            }
            _ => panic!("{outcome}: {:?}", turn.last()),
        }
    }
}

/// No process of the server's agents is left, at the latest after a moment.
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

/// Whatever the server had to say, no thread of it has panicked.
pub(crate) fn nothing_panicked(log: &Path) {
    let said = std::fs::read_to_string(log).unwrap_or_default();
    assert!(!said.contains("panicked"), "{said}");
}
