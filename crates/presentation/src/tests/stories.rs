//! Turns of every kind, as an agent would produce them. They belong to no vocabulary.

use tokenrail_domain::{
    AgentError, AgentId, CompleteMessage, ContentBlock, ErrorClass, Event, EventBody, MessageOrdinal,
    MessageOutcome, Notice, Part, ToolCall, ToolResult, TurnOutcome, TurnResult, Usage,
};
use tokenrail_ports::testing::samples::{self, Scribe, json, notice, text_delta};

/// One turn.
pub(crate) struct Story {
    scribe: Scribe,
    pub(crate) agent: AgentId,
    pub(crate) events: Vec<Event>,
}

impl Story {
    fn new() -> Self {
        let (agent, turn) = samples::launch(7);
        let mut scribe = Scribe::new(&agent);
        let events = scribe.start(&turn).events.to_vec();
        Self { scribe, agent: agent.id, events }
    }

    fn say(mut self, bodies: Vec<EventBody>) -> Self {
        self.events.extend_from_slice(&self.scribe.say(bodies).events);
        self
    }

    /// Completes a message after its deltas.
    fn done(self, message: u32) -> Self {
        let complete = self.scribe.complete(message);
        self.say(vec![complete])
    }

    /// The same, if its turn ended first.
    fn broken(self, message: u32, outcome: MessageOutcome) -> Self {
        let EventBody::Message(complete) = self.scribe.complete(message) else { unreachable!() };
        self.say(vec![EventBody::Message(Box::new(CompleteMessage { outcome, ..*complete }))])
    }

    fn end(mut self, outcome: TurnOutcome, error: Option<AgentError>) -> Self {
        let result = TurnResult { error, num_turns: None, usage: None, ..samples::result(outcome) };
        self.events.extend_from_slice(&self.scribe.end_with(result).events);
        self
    }
}

fn thought(message: u32, text: &str) -> EventBody {
    EventBody::ReasoningDelta { message: MessageOrdinal(message), part: Part(0), text: text.into() }
}

fn text_in(message: u32, part: u32, text: &str) -> EventBody {
    EventBody::TextDelta { message: MessageOrdinal(message), part: Part(part), text: text.into() }
}

pub(crate) fn input(message: u32, part: u32, call: &str, tool: Option<&str>, fragment: &str) -> EventBody {
    EventBody::ToolInputDelta {
        message: MessageOrdinal(message),
        part: Part(part),
        call: call.into(),
        tool: tool.map(str::to_owned),
        fragment: fragment.into(),
    }
}

pub(crate) fn call(call: &str, input: &str, parent: Option<&str>) -> EventBody {
    let parent_call = parent.map(str::to_owned);
    EventBody::ToolCall(Box::new(ToolCall {
        call: call.into(),
        tool: "Bash".into(),
        input: json(input),
        parent_call,
    }))
}

pub(crate) fn result(call: &str, content: &str, is_error: bool, parent: Option<&str>) -> EventBody {
    let parent_call = parent.map(str::to_owned);
    EventBody::ToolResult(Box::new(ToolResult {
        call: call.into(),
        content: json(content),
        is_error,
        parent_call,
        patch: None,
    }))
}

fn plan(data: &str) -> EventBody {
    EventBody::Notice(Box::new(Notice { subtype: "todo_list".into(), data: json(data) }))
}

fn used(stop_reason: &str) -> EventBody {
    let usage = r#"{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":5}"#;
    EventBody::Usage(Box::new(Usage { stop_reason: Some(stop_reason.into()), usage: json(usage) }))
}

fn whole(message: u32, blocks: Vec<ContentBlock>, parent: Option<&str>) -> EventBody {
    EventBody::Message(Box::new(CompleteMessage {
        message: MessageOrdinal(message),
        blocks,
        first_sequence: None,
        outcome: MessageOutcome::Complete,
        parent_call: parent.map(str::to_owned),
    }))
}

fn tool_use(call: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { call: call.into(), tool: "Bash".into(), input: json(input) }
}

fn error() -> AgentError {
    AgentError {
        class: ErrorClass::Overloaded,
        text: "the model is \"overloaded\"".into(),
        ..samples::error()
    }
}

/// The turns for which most vocabularies show their frames.
pub(crate) const CASES: [&str; 11] = [
    "plain_text",
    "thinking_and_tools",
    "parallel_tools",
    "sub_agent",
    "retry",
    "error",
    "cancel",
    "interrupted",
    "no_partial_messages",
    "redacted_and_cut_short",
    "questions",
];

/// The turn with that name.
pub(crate) fn story(case: &str) -> Story {
    let story = Story::new();
    match case {
        "plain_text" => story
            .say(vec![
                notice("init"),
                text_delta(0, "Grüße, "),
                text_delta(0, ""),
                text_delta(0, "Welt 🦀\n"),
            ])
            .done(0)
            .say(vec![used("max_tokens")])
            .end(TurnOutcome::Completed, None),
        "retry" => story
            .say(vec![
                text_delta(0, "Hel"),
                EventBody::Abandoned { message: MessageOrdinal(0) },
                notice("api_retry"),
            ])
            .say(vec![text_delta(1, "Hello"), EventBody::Error(Box::new(error())), text_delta(1, "!")])
            .done(1)
            .end(TurnOutcome::Completed, None),
        "redacted_and_cut_short" => {
            let redacted = json(r#"{"type":"redacted_thinking","data":"EmwK"}"#);
            let blocks =
                vec![ContentBlock::Other(redacted), ContentBlock::Other(json(r#"{"type":"image"}"#))];
            let refused = vec![whole(0, blocks, None), used("refusal")];
            story.say(refused).end(TurnOutcome::Completed, None)
        }
        "plans" => story
            .say(vec![
                plan(r#"{"entries":[{"content":"Look","status":"in_progress","priority":"medium"}]}"#),
                text_delta(0, "Seen."),
                samples::permission_request("q1", None),
                samples::settled("q1", Some("yes"), "user"),
                plan(r#"{"entries":[{"content":"Look","status":"completed","priority":"medium"}]}"#),
                plan(r#"{"type":"plan","text":"1. Look"}"#),
            ])
            .done(0)
            .end(TurnOutcome::Completed, None),
        "questions" | "two_questions" => with_questions(case),
        other => with_tools(other),
    }
}

/// Turns with permission requests.
fn with_questions(case: &str) -> Story {
    let story = Story::new();
    match case {
        "questions" => story
            .say(vec![
                input(0, 0, "call_1", Some("Bash"), r#"{"command":"l"#),
                samples::permission_request("q1", Some("call_1")),
                samples::settled("q1", Some("yes"), "user"),
                samples::permission_request("q2", None),
                samples::settled("q2", None, "timeout"),
                samples::settled("q0", None, "agent"),
                text_in(0, 1, "Well."),
            ])
            .done(0)
            .end(TurnOutcome::Completed, None),
        _ => story
            .say(vec![
                samples::permission_request("q1", None),
                text_in(0, 0, "Meanwhile. "),
                samples::permission_request("q2", None),
                text_in(0, 0, "And now. "),
                samples::settled("q2", Some("no"), "user"),
                samples::settled("q1", Some("yes"), "user"),
                text_in(0, 1, "Well."),
            ])
            .done(0)
            .end(TurnOutcome::Completed, None),
    }
}

/// Turns with tools.
fn with_tools(case: &str) -> Story {
    let story = Story::new();
    match case {
        "thinking_and_tools" => story
            .say(vec![
                thought(0, "I should "),
                thought(0, "look."),
                text_in(0, 1, "Let me "),
                text_in(0, 1, "look."),
            ])
            .say(vec![
                input(0, 2, "call_1", Some("Bash"), "{\"command\":"),
                input(0, 2, "call_1", None, "\"ls\"}"),
            ])
            .say(vec![call("call_1", r#"{"command":"ls"}"#, None), used("tool_use")])
            .done(0)
            .say(vec![
                result("call_1", r#""a\nb""#, false, None),
                text_delta(1, "Two "),
                text_delta(1, "files."),
            ])
            .say(vec![used("end_turn")])
            .done(1)
            .end(TurnOutcome::Completed, None),
        "parallel_tools" => story
            .say(vec![input(0, 0, "call_1", Some("Bash"), "{}"), call("call_1", "{}", None)])
            .say(vec![input(0, 1, "call_2", Some("Bash"), "{\"n\":2}"), call("call_2", r#"{"n":2}"#, None)])
            .done(0)
            .say(vec![result(
                "call_2",
                r#"[{"type":"text","text":"one"},{"type":"text","text":"two"}]"#,
                false,
                None,
            )])
            .say(vec![result("call_1", r#"{"odd":1}"#, true, None)])
            .end(TurnOutcome::Completed, None),
        "sub_agent" => story
            .say(vec![input(0, 0, "task", Some("Agent"), "{}"), call("task", "{}", None)])
            .done(0)
            .say(vec![whole(
                1,
                vec![ContentBlock::Text("inside".into()), tool_use("inner", "{}")],
                Some("task"),
            )])
            .say(vec![call("inner", "{}", Some("task")), result("inner", "\"x\"", false, Some("task"))])
            .say(vec![result("task", "\"done\"", false, None), text_delta(2, "All done.")])
            .done(2)
            .end(TurnOutcome::Completed, None),
        "no_partial_messages" => story
            .say(vec![whole(
                0,
                vec![ContentBlock::Reasoning("Hm.".into()), ContentBlock::Text("Look:".into())],
                None,
            )])
            .say(vec![whole(1, vec![tool_use("call_1", "{}")], None), call("call_1", "{}", None)])
            .say(vec![call("call_2", "{}", None), result("call_1", "\"x\"", false, None)])
            .say(vec![whole(2, vec![ContentBlock::Text("Done.".into())], None)])
            .end(TurnOutcome::Completed, None),
        other => cut_short(other),
    }
}

/// Turns that are cut short, and arguments that are cut short or streamed wrong.
fn cut_short(case: &str) -> Story {
    let story = Story::new();
    match case {
        "error" => story
            .say(vec![text_delta(0, "Half a ")])
            .broken(0, MessageOutcome::Failed)
            .end(TurnOutcome::Failed, Some(error())),
        "cancel" => story
            .say(vec![thought(0, "Hm"), text_in(0, 1, "One "), input(0, 2, "call_1", Some("Bash"), "{\"a")])
            .broken(0, MessageOutcome::Cancelled)
            .end(TurnOutcome::Cancelled, None),
        "interrupted" => story
            .say(vec![text_delta(0, "One ")])
            .broken(0, MessageOutcome::Interrupted)
            .end(TurnOutcome::Interrupted, None),
        "other_arguments" => story
            .say(vec![
                text_in(0, 0, "Look:"),
                input(0, 1, "call_1", Some("Bash"), r#"{"command":"l"#),
                call("call_1", r#"{"command":"ls"}"#, None),
                input(0, 2, "call_2", Some("Bash"), r#"{"n": 2.0, "é":1"#),
                call("call_2", r#"{"\u00e9":1,"n":2.0}"#, None),
                input(0, 3, "call_3", Some("Bash"), r#"{"n":1}"#),
                call("call_3", r#"{"n":2}"#, None),
            ])
            .done(0)
            .say(["call_1", "call_2", "call_3"].map(|id| result(id, "\"x\"", false, None)).to_vec())
            .end(TurnOutcome::Completed, None),
        // The agent sends the text again only with the result.
        "abandoned_text" => {
            let abandoned = EventBody::Abandoned { message: MessageOrdinal(0) };
            let mut story =
                story.say(vec![text_delta(0, "Hel"), abandoned]).end(TurnOutcome::Completed, None);
            if let Some(EventBody::TurnResult(result)) = story.events.last_mut().map(|event| &mut event.body)
            {
                result.text = "Hello".into();
            }
            story
        }
        "id_used_again" => story
            .say(vec![input(0, 0, "call_1", Some("Bash"), "{}"), call("call_1", "{}", None)])
            .say(vec![input(1, 0, "call_1", Some("Bash"), "{}"), call("call_1", "{}", None)])
            .end(TurnOutcome::Completed, None),
        "id_used_after_result" => ["one", "two"]
            .into_iter()
            .zip(0..)
            .fold(story, |story, (output, message)| {
                let input = format!(r#"{{"n":{message}}}"#);
                story
                    .say(vec![whole(message, vec![tool_use("call_1", &input)], None)])
                    .say(vec![
                        call("call_1", &input, None),
                        result("call_1", &format!("{output:?}"), false, None),
                    ])
                    // The agent repeats the whole message.
                    .say(vec![whole(message, vec![tool_use("call_1", &input)], None)])
            })
            .end(TurnOutcome::Completed, None),
        other => panic!("{other} is no case"),
    }
}
