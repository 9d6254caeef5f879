//! What happens to a session after its turn has ended, and if it is lost.

use serde_json::{Value, json};
use tokenrail_ports::AddedLine;

use super::{Talk, opening, yes_and_no};
use crate::converse::acp::LOGIN_REQUIRED;
use crate::converse::conversation::Conversation as _;
use crate::run_folder::Opening;

/// An agent without capabilities. The agent of [`loads`] can load a session.
fn forgetful() -> Value {
    json!({ "protocolVersion": 1 })
}

fn loads() -> Value {
    json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } })
}

/// An agent that got its first prompt, and the request with the prompt.
fn prompted(agent: &Value) -> (Talk, Value) {
    let mut talk = Talk::begin(opening(), agent);
    let new = talk.only();
    talk.answer(&new, &json!({ "sessionId": "s" }));
    let prompt = talk.expect_prompt();
    (talk, prompt)
}

fn chunk() -> Value {
    let update =
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
    json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

#[test]
fn a_further_prompt_goes_to_the_same_session() {
    let (mut talk, prompt) = prompted(&forgetful());
    talk.answer(&prompt, &json!({ "stopReason": "end_turn" }));
    assert!(talk.out.idle && !talk.out.over);
    talk.conversation.further_turn("And now?".to_owned().into(), &mut talk.out);
    let further = talk.only();
    assert_eq!(further["method"], "session/prompt");
    let text = json!([{ "type": "text", "text": "And now?" }]);
    assert_eq!(further["params"], json!({ "sessionId": "s", "prompt": text }));
    assert_ne!(further["id"], prompt["id"]);
    talk.line(&chunk());
    assert!(!talk.out.over, "it was asked");
}

#[test]
fn a_further_turn_says_which_agent_it_is_before_it_is_asked() {
    let mut agent = forgetful();
    agent["agentInfo"] = json!({ "name": "an-agent", "version": "1" });
    let (mut talk, prompt) = prompted(&agent);
    talk.answer(&prompt, &json!({ "stopReason": "end_turn" }));
    talk.out.added.clear();
    talk.conversation.further_turn("And now?".to_owned().into(), &mut talk.out);
    let added = serde_json::to_value(&talk.out.added).unwrap();
    let sent = json!({ "tokenrail": "sent", "id": 4, "method": "session/prompt" });
    assert_eq!(added, json!([{ "tokenrail": "agent", "name": "an-agent" }, sent]));
}

#[test]
fn an_agent_that_has_failed_rests_only_where_no_other_process_could_go_on() {
    for (agent, code, idle) in
        [(forgetful(), -32603, true), (forgetful(), LOGIN_REQUIRED, false), (loads(), -32603, false)]
    {
        let (mut talk, prompt) = prompted(&agent);
        talk.refuse(&prompt, code, "Overloaded");
        assert_eq!((talk.out.idle, talk.out.over), (idle, !idle), "{agent} {code}");
    }
}

#[test]
fn an_agent_that_speaks_unasked_does_not_become_idle_unless_its_session_would_be_lost() {
    let usage =
        json!({ "method": "session/update", "params": { "update": { "sessionUpdate": "usage_update" } } });
    for (agent, ends) in [(forgetful(), false), (loads(), true)] {
        let (mut talk, prompt) = prompted(&agent);
        talk.answer(&prompt, &json!({ "stopReason": "end_turn" }));
        talk.line(&usage);
        assert!(!talk.out.over, "that is no speech");
        talk.line(&chunk());
        assert_eq!(talk.out.over, ends, "{agent}");
        talk.ask(&json!(7), &yes_and_no());
        assert_eq!(talk.only()["result"]["outcome"]["outcome"], "cancelled");
    }
}

#[track_caller]
fn expect_new_session(talk: &mut Talk, lost: &str) {
    let Some(AddedLine::SessionLost { session_id, text }) =
        talk.out.added.iter().find(|line| matches!(line, AddedLine::SessionLost { .. }))
    else {
        panic!("{:?}", talk.out.added)
    };
    assert!(session_id == lost && text.contains("without the earlier conversation"), "{text}");
    let new = talk.only();
    assert_eq!((&new["method"], &new["params"]["sessionId"]), (&json!("session/new"), &Value::Null));
    talk.answer(&new, &json!({ "sessionId": "s" }));
    talk.expect_prompt();
}

#[test]
fn where_the_session_is_gone_another_one_is_begun_and_that_is_told() {
    let go_on = || Opening { session: Some("old".to_owned()), ..opening() };
    expect_new_session(&mut Talk::begin(go_on(), &forgetful()), "old");
    for (code, reason) in
        [(-32002, "Resource not found"), (-32603, "No previous sessions found for this project.")]
    {
        let mut talk = Talk::begin(go_on(), &loads());
        let load = talk.only();
        talk.refuse(&load, code, reason);
        expect_new_session(&mut talk, "old");
    }
}

#[test]
fn a_session_that_may_still_be_there_or_was_asked_for_by_name_is_not_replaced() {
    let go_on = || Opening { session: Some("old".to_owned()), ..opening() };
    let first = || Opening { run: 1, ..go_on() };
    Talk::begin(first(), &forgetful()).expect_failure("resume_unsupported");
    for (opening, code) in [(go_on(), -32603), (first(), -32002)] {
        let mut talk = Talk::begin(opening, &loads());
        let load = talk.only();
        talk.refuse(&load, code, "no");
        talk.expect_failure("resume_refused");
    }
}
