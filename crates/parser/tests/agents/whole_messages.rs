//! What a user finally sees must equal the agent's own messages, calls and results.

use serde_json::Value;
use tokenrail_domain::CompleteMessage;

use crate::fixtures::recordings;
use crate::pump::{pump, reasoning};
use crate::truth::{Truth, Words};

fn words(messages: &[CompleteMessage]) -> Vec<Words> {
    let words = messages.iter().map(|message| (message.text(), reasoning(message)));
    words.filter(|(text, reasoning)| !(text.is_empty() && reasoning.is_empty())).collect()
}

#[test]
fn what_is_seen_is_what_the_agent_calls_its_messages() {
    let (mut compared, mut open) = (0, 0);
    for recording in recordings() {
        let truth = Truth::of(recording);
        let seen = pump(&recording.format.parse(recording.lines()));
        assert_eq!(words(&seen.messages), truth.messages, "{}", recording.name);
        assert_eq!(words(&seen.open), truth.open, "open: {}", recording.name);
        compared += truth.messages.len();
        open += truth.open.len();
    }
    assert!(80 < compared && 5 < open, "{compared} messages, {open} open");
}

#[test]
fn each_tool_call_and_result_is_said_once_as_given() {
    let mut compared = 0;
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for recording in recordings() {
        let truth = Truth::of(recording);
        let seen = pump(&recording.format.parse(recording.lines()));
        let calls = seen.calls.iter();
        let calls: Vec<_> =
            calls.map(|call| (call.call.clone(), call.tool.clone(), json(call.input.as_str()))).collect();
        assert_eq!(calls, truth.calls, "{}", recording.name);
        let results = seen.results.iter();
        let results: Vec<_> =
            results.map(|result| (result.call.clone(), json(result.content.as_str()))).collect();
        assert_eq!(results, truth.results, "{}", recording.name);
        compared += calls.len() + results.len();
    }
    assert!(80 < compared, "{compared}");
}
