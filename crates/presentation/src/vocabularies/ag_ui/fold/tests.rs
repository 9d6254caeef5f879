//! Runs for every kind of turn.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{AgUiFold, Scope, WantedRun};
use crate::fold::Fold as _;
use crate::tests::stories::{CASES, Story, story};
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::unsent_writer::UnsentWriter;
use tokenrail_domain::{ContentBlock, EventBody, TurnNumber};

fn cases() -> impl Iterator<Item = &'static str> {
    CASES.into_iter().chain(["two_questions", "other_arguments", "plans"])
}

fn stream(story: &Story, scope: Scope, after: ThreadCursor) -> String {
    let mut fold = AgUiFold::new(story.agent, TurnNumber::FIRST, "thread".into(), scope);
    let mut out = UnsentWriter::new(after);
    for event in &story.events {
        fold.event(event, &mut out);
    }
    assert!(fold.is_over() && fold.waits_for().is_none());
    String::from_utf8(out.take().to_vec()).unwrap()
}

fn run(after: Option<&str>) -> Scope {
    runs(after, &[])
}

fn runs(after: Option<&str>, answered: &[&str]) -> Scope {
    let answered = answered.iter().copied().map(str::to_owned).collect();
    Scope::Run(WantedRun { id: "r1".into(), after: after.map(str::to_owned), answered, is_before_v1: false })
}

fn events(text: &str) -> Vec<Value> {
    let data = text.split_terminator("\n\n").map(|block| block.strip_prefix("data: ").unwrap());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn cursor(event: &Value) -> ThreadCursor {
    event["metadata"]["tokenrail"]["cursor"].as_str().unwrap().parse().unwrap()
}

/// Checks the rules that clients enforce.
fn check(events: &[Value]) {
    let mut open: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut is_open = false;
    for event in events {
        let kind = event["type"].as_str().unwrap();
        assert_eq!(is_open, kind != "RUN_STARTED", "{kind}");
        let id = ["messageId", "toolCallId", "subagentRunId"].iter().find_map(|name| event[name].as_str());
        let (begins, what) = match kind.rsplit_once('_').unwrap_or_default() {
            (what, "START" | "STARTED") => (true, what),
            (what, "END" | "FINISHED" | "CONTENT" | "ARGS" | "ERROR") => (false, what),
            _ => continue,
        };
        if what == "RUN" {
            assert!(open.is_empty(), "{open:?} at {kind}");
            is_open = begins;
            used.clear();
            continue;
        }
        let key = (what, id.unwrap());
        if begins {
            assert!(used.insert(key) && open.insert(key), "{key:?} twice");
        } else {
            assert!(open.contains(&key), "{kind} of {key:?}");
        }
        if matches!(kind.rsplit_once('_').unwrap().1, "END" | "FINISHED" | "ERROR") {
            open.remove(&key);
        }
    }
    assert!(!is_open);
}

#[test]
fn every_kind_of_turn_has_its_events() {
    for case in cases() {
        let told = stream(&story(case), Scope::Thread, ThreadCursor::START);
        check(&events(&told));
        insta::assert_snapshot!(format!("{case}"), told);
    }
}

#[test]
fn after_every_cursor_comes_exactly_the_rest() {
    for case in cases() {
        let story = story(case);
        for scope in [Scope::Thread, run(None), run(Some("q1")), runs(Some("q1"), &["q2"])] {
            let whole = events(&stream(&story, scope.clone(), ThreadCursor::START));
            check(&whole);
            assert!(whole.is_sorted_by(|one, other| cursor(one) < cursor(other)));
            for (index, event) in whole.iter().enumerate() {
                let rest = events(&stream(&story, scope.clone(), cursor(event)));
                assert_eq!(rest, whole[index + 1..], "{case} after {index}");
            }
        }
    }
}

#[test]
fn a_permission_request_ends_a_run_and_the_next_one_goes_on() {
    let story = story("questions");
    let of = |after| events(&stream(&story, run(after), ThreadCursor::START));
    let runs = [of(None), of(Some("q1")), of(Some("q2"))];
    let last: Vec<_> = runs.iter().map(|run| &run.last().unwrap()["outcome"]).collect();
    let interrupt = |at: usize| &last[at]["interrupts"][0];
    assert_eq!((&interrupt(0)["id"], &interrupt(0)["toolCallId"]), (&json!("1:q1"), &json!("1:call_1")));
    assert_eq!((&interrupt(1)["id"], &interrupt(1)["toolCallId"]), (&json!("1:q2"), &Value::Null));
    assert_eq!(interrupt(0)["responseSchema"]["properties"]["optionId"]["enum"], json!(["yes", "no"]));
    assert_eq!(last[2]["type"], "success");
    let named = |event: &Value| [&event["threadId"], &event["runId"]] == ["thread", "r1"];
    assert!(runs.iter().all(|run| named(&run[0]) && named(run.last().unwrap())));

    let all = events(&stream(&story, Scope::Thread, ThreadCursor::START));
    let without_names = |mut event: Value| {
        event.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "runId" | "input"));
        event
    };
    let all: Vec<_> = all.into_iter().map(without_names).collect();
    let one_by_one: Vec<_> = runs.into_iter().flatten().map(without_names).collect();
    assert_eq!(all, one_by_one, "the thread is its runs");
    // A client that waits for an answer that nobody knows gets the end.
    let none = of(Some("q9"));
    let kinds: Vec<_> = none.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["RUN_STARTED", "RUN_FINISHED"]);
}

#[test]
fn requests_that_are_answered_together_end_their_runs_but_not_the_stream() {
    for case in ["questions", "two_questions"] {
        let story = story(case);
        let of = |scope| events(&stream(&story, scope, ThreadCursor::START));
        let one_by_one = [of(run(Some("q1"))), of(run(Some("q2")))].concat();
        assert_eq!(of(runs(Some("q1"), &["q2"])), one_by_one, "{case}");
        assert_eq!(of(runs(Some("q2"), &["q1"])), of(run(Some("q2"))), "{case}: an earlier one");
    }
}

#[test]
fn a_client_ends_with_the_arguments_of_the_complete_call() {
    let all = events(&stream(&story("other_arguments"), run(None), ThreadCursor::START));
    let of = |kind: &str| all.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let arguments = |id: &str| -> Value {
        let deltas = of("TOOL_CALL_ARGS").into_iter().filter(|event| event["toolCallId"] == id);
        let text: String = deltas.map(|event| event["delta"].as_str().unwrap().to_owned()).collect();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(arguments("1:call_1"), json!({"command": "ls"}));
    assert_eq!(arguments("1:call_2"), json!({"é": 1, "n": 2.0}));
    assert_eq!(arguments("1:call_3#3"), json!({"n": 2}));
    let results: Vec<_> = of("TOOL_CALL_RESULT").iter().map(|event| event["toolCallId"].clone()).collect();
    assert_eq!(json!(results), json!(["1:call_3", "1:call_1", "1:call_2", "1:call_3#3"]));
    let discarded = &of("CUSTOM")[0];
    assert_eq!(discarded["name"], "tokenrail.abandoned");
    assert_eq!(discarded["value"], json!({"messageIds": [], "toolCallIds": ["1:call_3"]}));
}

#[test]
fn a_call_whose_id_is_used_again_after_its_result_is_another_call() {
    let all = events(&stream(&story("id_used_after_result"), run(None), ThreadCursor::START));
    let of = |kind: &str, field: &str| -> Vec<_> {
        let found = all.iter().filter(|event| event["type"] == kind);
        found.map(|event| (event["toolCallId"].clone(), event[field].clone())).collect()
    };
    let [first, second] = ["1:call_1", "1:call_1#1"].map(|id| json!(id));
    let arguments = [(first.clone(), json!(r#"{"n":0}"#)), (second.clone(), json!(r#"{"n":1}"#))];
    assert_eq!(of("TOOL_CALL_ARGS", "delta"), arguments);
    assert_eq!(of("TOOL_CALL_RESULT", "content"), [(first, json!("one")), (second, json!("two"))]);
}

#[test]
fn a_text_that_follows_an_abandoned_one_only_with_the_result_is_sent() {
    let all = events(&stream(&story("abandoned_text"), run(None), ThreadCursor::START));
    check(&all);
    let said = all.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    let said: Vec<_> = said.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hel", "Hello"]);
    let discarded = all.iter().find(|event| event["name"] == "tokenrail.abandoned").unwrap();
    let last = all.iter().rfind(|event| event["type"] == "TEXT_MESSAGE_END").unwrap();
    let ids = discarded["value"]["messageIds"].as_array().unwrap();
    assert!(ids.len() == 1 && !ids.contains(&last["messageId"]), "only the first one is to be discarded");
}

/// Every reader of a stream has a fold, and an agent may make thousands of calls in a turn.
#[test]
fn long_ids_and_names_of_an_agent_are_short_for_clients_and_are_not_kept() {
    let long = "x".repeat(10_000);
    let mut story = story("id_used_after_result");
    for event in &mut story.events {
        match &mut event.body {
            EventBody::ToolCall(made) => (made.call, made.tool) = (long.clone(), long.clone()),
            EventBody::ToolResult(result) => result.call.clone_from(&long),
            EventBody::Message(message) => {
                for block in &mut message.blocks {
                    let ContentBlock::ToolUse { call, tool, .. } = block else { panic!("{block:?}") };
                    (*call, *tool) = (long.clone(), long.clone());
                }
            }
            _ => {}
        }
    }
    let mut fold = AgUiFold::new(story.agent, TurnNumber::FIRST, "thread".into(), run(None));
    let mut out = UnsentWriter::new(ThreadCursor::START);
    for event in &story.events {
        fold.event(event, &mut out);
        let kept = format!("{:?}{:?}", fold.calls, fold.sub_agents);
        assert!(kept.len() < 4000, "{} bytes are kept", kept.len());
    }
    let all = events(str::from_utf8(&out.take()).unwrap());
    check(&all);
    let of = |kind: &str| all.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let ids = |kind: &str| of(kind).iter().map(|event| event["toolCallId"].clone()).collect::<Vec<_>>();
    let first = ids("TOOL_CALL_START")[0].as_str().unwrap().to_owned();
    assert!(first.starts_with("1:call-") && first.len() < 50, "{first}");
    let expected = [json!(first), json!(format!("{first}#1"))];
    assert_eq!((ids("TOOL_CALL_START"), ids("TOOL_CALL_RESULT")), (expected.to_vec(), expected.to_vec()));
    assert!(of("TOOL_CALL_START").iter().all(|event| event["toolCallName"].as_str().unwrap().len() == 200));
}

/// The text of a stream is needed only to complete it.
#[test]
fn long_arguments_are_not_kept_while_they_are_streamed() {
    let story = story("cancel");
    let mut fold = AgUiFold::new(story.agent, TurnNumber::FIRST, "thread".into(), run(None));
    let mut out = UnsentWriter::new(ThreadCursor::START);
    for mut event in story.events {
        if let EventBody::ToolInputDelta { fragment, .. } = &mut event.body {
            fragment.push_str(&"x".repeat(900 << 10));
        }
        fold.event(&event, &mut out);
        let kept = format!("{:?}", fold.calls).len();
        assert!(kept < 4000, "{kept} bytes are kept");
    }
}

#[test]
fn each_end_has_its_event() {
    for (case, kind, outcome) in [
        ("thinking_and_tools", "RUN_FINISHED", json!({"type": "success"})),
        ("cancel", "RUN_FINISHED", json!({"type": "cancelled"})),
        ("error", "RUN_ERROR", Value::Null),
        ("interrupted", "RUN_ERROR", Value::Null),
    ] {
        let last = events(&stream(&story(case), run(None), ThreadCursor::START)).pop().unwrap();
        assert_eq!((&last["type"], &last["outcome"]), (&json!(kind), &outcome), "{case}");
    }
    let old =
        Scope::Run(WantedRun { id: "r1".into(), after: None, answered: Vec::new(), is_before_v1: true });
    let last = events(&stream(&story("cancel"), old, ThreadCursor::START)).pop().unwrap();
    assert_eq!((&last["type"], last.get("outcome")), (&json!("RUN_FINISHED"), None), "an older client");
}

/// Clients refuse a run with an event that is too long.
#[test]
fn a_long_error_is_cut() {
    let error = story("error").events.pop().unwrap().body;
    let mut story = story("sub_agent");
    // It ends while the sub-agent runs.
    let inside =
        story.events.iter().position(|event| matches!(event.body, EventBody::ToolResult(_))).unwrap();
    story.events.truncate(inside + 1);
    story.events[inside].body = error;
    story.events[inside - 1].body = EventBody::Error(Box::new(tokenrail_ports::testing::samples::error()));
    for event in &mut story.events {
        match &mut event.body {
            EventBody::Error(error) => error.text = "é".repeat(1 << 20),
            EventBody::TurnResult(result) => result.error.as_mut().unwrap().text = "é".repeat(1 << 20),
            _ => {}
        }
    }
    let events = events(&stream(&story, run(None), ThreadCursor::START));
    for kind in ["SUBAGENT_ERROR", "RUN_ERROR"] {
        let told = events.iter().rfind(|event| event["type"] == kind).unwrap();
        assert_eq!(told["message"].as_str().unwrap().len(), 256 << 10, "{kind}");
    }
    let told = events.iter().find(|event| event["name"] == "tokenrail.error").unwrap();
    assert_eq!(told["value"]["message"].as_str().unwrap().len(), 256 << 10, "{told}");
    assert!(events.iter().all(|event| event.to_string().len() < 300 << 10));
}
