//! Journals as agents leave them: one for each case that a vocabulary must handle.

use tokenrail_domain::{
    Agent, AgentError, CompleteMessage, ContentBlock, ErrorClass, Event, EventBody, MessageOrdinal,
    MessageOutcome, Part, TurnNumber, TurnOutcome, TurnResult, Usage,
};
use tokenrail_ports::testing::samples::{self, Scribe, notice, text_delta};
use tokenrail_ports::testing::{MemoryStore, samples::queued_turn};
use tokenrail_ports::{Append, IAgentRepository as _, IJournal as _, Idempotency};

use super::stories;

/// What an agent prints, and how its turn ends; `None` if the turn is still running.
type Story = fn(&mut Scribe) -> (Vec<EventBody>, Option<TurnResult>);

/// The stories by name.
pub(crate) const STORIES: [(&str, Story); 12] = [
    ("plain text", |scribe| {
        let mut said = vec![notice("init"), text_delta(0, "Hel"), text_delta(0, "lo"), text_delta(0, " 🦀")];
        said.push(heard(scribe, &said, 0));
        said.push(stopped("end_turn"));
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("thinking and a tool", |scribe| {
        let mut said =
            vec![reasoning(0, "hm"), text_delta(0, "I look. "), input(0, 2, "c1", "{\"command\":\"ls\"}")];
        said.extend([heard(scribe, &said, 0), call("c1", None), stopped("tool_use")]);
        said.extend([stories::result("c1", r#""a.txt""#, false, None), text_delta(1, "One file.")]);
        said.push(heard(scribe, &said, 1));
        said.push(stopped("end_turn"));
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("parallel tools", |scribe| {
        let mut said = vec![input(0, 0, "c1", "{}"), input(0, 1, "c2", "{}")];
        said.extend([heard(scribe, &said, 0), call("c1", None), call("c2", None)]);
        said.extend([stories::result("c2", r#"[{"type":"text","text":"2"}]"#, false, None)]);
        said.extend([stories::result("c1", r#""no such file""#, true, None), text_delta(1, "Done.")]);
        said.push(heard(scribe, &said, 1));
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("sub-agent", |scribe| {
        let mut said = vec![text_delta(0, "I ask. "), input(0, 1, "c1", "{}")];
        said.extend([heard(scribe, &said, 0), call("c1", None)]);
        said.push(whole(1, "its own words", MessageOutcome::Complete, Some("c1")));
        said.extend([call("c2", Some("c1")), stories::result("c2", r#""7""#, false, Some("c1"))]);
        said.extend([stories::result("c1", r#""seven""#, false, None), text_delta(2, "Seven.")]);
        said.push(heard(scribe, &said, 2));
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("retry with an abandoned stream", |scribe| {
        let mut said = vec![text_delta(0, "Hel"), EventBody::Abandoned { message: MessageOrdinal(0) }];
        said.extend([notice("api_retry"), text_delta(1, "Hello")]);
        said.push(heard(scribe, &said, 1));
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("error", |_| {
        let error = AgentError { code: None, ..samples::error() };
        let said = vec![EventBody::Error(Box::new(error.clone()))];
        (said, Some(TurnResult { error: Some(error), ..result(TurnOutcome::Failed) }))
    }),
    ("message without an end in time", |scribe| {
        let error = AgentError {
            class: ErrorClass::Timeout,
            code: Some("stream_timeout".into()),
            text: "the agent stalled in the middle of a message for 60 s (limits.stream_timeout_s) and was terminated".into(),
            retry_after_ms: None,
            recoverable: true,
        };
        let mut said = vec![text_delta(0, "Hel"), EventBody::Error(Box::new(error.clone()))];
        said.push(broken(scribe, &said, MessageOutcome::Failed));
        (said, Some(TurnResult { error: Some(error), ..result(TurnOutcome::Failed) }))
    }),
    ("cancel", |scribe| {
        let mut said = vec![text_delta(0, "Hel")];
        said.push(broken(scribe, &said, MessageOutcome::Cancelled));
        (said, Some(result(TurnOutcome::Cancelled)))
    }),
    ("interrupted by a crash", |scribe| {
        let error = AgentError {
            class: ErrorClass::Process,
            code: Some("interrupted".into()),
            text: "the server and the supervisor of the agent ended in the middle of the turn".into(),
            retry_after_ms: None,
            recoverable: true,
        };
        let mut said = vec![text_delta(0, "Hel")];
        said.push(broken(scribe, &said, MessageOutcome::Interrupted));
        (said, Some(TurnResult { error: Some(error), ..result(TurnOutcome::Interrupted) }))
    }),
    ("no partial messages", |_| {
        let said = vec![
            whole(0, "I look. ", MessageOutcome::Complete, None),
            tool_message(1, "c1"),
            call("c1", None),
            stories::result("c1", r#""a.txt""#, false, None),
            whole(2, "One file.", MessageOutcome::Complete, None),
        ];
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("text that comes whole at the end of a streamed message", |scribe| {
        let mut said = vec![text_delta(0, "Hello")];
        let mut complete = completed(scribe, &said, 0);
        complete.blocks.push(ContentBlock::Text(", you".into()));
        said.push(EventBody::Message(Box::new(complete)));
        (said, Some(result(TurnOutcome::Completed)))
    }),
    ("two messages that are being said", |_| {
        (vec![text_delta(0, "Hel"), reasoning(1, "hm"), text_delta(0, "lo"), text_delta(1, "you")], None)
    }),
];

/// How often the agent of the long turn begins anew.
pub(crate) const ROUNDS: u32 = 16;

/// A long turn that has everything: reasoning, two tools, a sub-agent, an abandoned retry and emoji.
pub(crate) const LONG: (&str, Story) = ("a long turn with everything", |scribe| {
    let mut said = Vec::new();
    for round in 0..ROUNDS {
        let (first, inner, lost, last) = (4 * round, 4 * round + 1, 4 * round + 2, 4 * round + 3);
        let [list, ask, deep] = ["list", "ask", "deep"].map(|name| format!("{name}_{round}"));
        said.extend([reasoning(first, "hm 🤔"), text_delta(first, "I look 🦀"), text_delta(first, ". ")]);
        said.extend([input(first, 2, &list, "{\"command\":"), more_input(first, 2, &list, "\"ls\"}")]);
        said.extend([input(first, 3, &ask, "{}"), call(&list, None), call(&ask, None)]);
        said.push(heard(scribe, &said, first));
        said.extend([stopped("tool_use"), stories::result(&list, r#""a 🦀.txt""#, false, None)]);
        said.push(whole(inner, "its own words", MessageOutcome::Complete, Some(&ask)));
        said.extend([call(&deep, Some(&ask)), stories::result(&deep, r#""7""#, false, Some(&ask))]);
        said.extend([stories::result(&ask, r#""no such file 🕳️""#, true, None), text_delta(lost, "Hel")]);
        said.extend([EventBody::Abandoned { message: MessageOrdinal(lost) }, notice("api_retry")]);
        said.extend([text_delta(last, "Hello 🦀"), text_delta(last, "!\n")]);
        said.push(heard(scribe, &said, last));
    }
    said.push(stopped("end_turn"));
    (said, Some(result(TurnOutcome::Completed)))
});

/// A journal that no store would accept: more of a message after its end.
pub(crate) const ORPHANS: (&str, Story) = ("orphans: what comes after the end of a message", |scribe| {
    let mut said = vec![text_delta(0, "Hello")];
    said.push(heard(scribe, &said, 0));
    said.extend([text_delta(0, "late"), whole(0, "late", MessageOutcome::Complete, None)]);
    (said, Some(result(TurnOutcome::Completed)))
});

/// What the user says in each turn.
pub(crate) const PROMPT: &str = "count to three";

/// The story as a journal: its agent and the appends.
pub(crate) fn written(story: Story) -> (Agent, Vec<Append>) {
    written_in_turns(1, &[story])
}

/// Several stories as the turns of the `n`th sample agent.
pub(crate) fn written_in_turns(n: u8, stories: &[Story]) -> (Agent, Vec<Append>) {
    let (agent, _) = samples::launch(n);
    let mut scribe = Scribe::new(&agent);
    let mut appends = Vec::new();
    for (index, story) in stories.iter().enumerate() {
        let turn = queued_turn(agent.id, TurnNumber(index as u32 + 1), PROMPT);
        appends.push(scribe.start(&turn));
        let (said, end) = story(&mut scribe);
        appends.extend(said.into_iter().map(|body| scribe.say(vec![body])));
        appends.extend(end.map(|result| scribe.end_with(result)));
    }
    (agent, appends)
}

/// The events of appends, in order.
pub(crate) fn events(appends: &[Append]) -> Vec<Event> {
    appends.iter().flat_map(|append| append.events.iter().cloned()).collect()
}

/// Stores a journal as if its agent had run here.
pub(crate) async fn keep(store: &MemoryStore, agent: &Agent, appends: Vec<Append>) {
    keep_with_keys(store, agent, appends, |_| None).await;
}

/// The same. The messages that its turns were had these keys.
pub(crate) async fn keep_with_keys(
    store: &MemoryStore,
    agent: &Agent,
    appends: Vec<Append>,
    key: impl Fn(TurnNumber) -> Option<Idempotency>,
) {
    let turns = appends.iter().filter_map(|append| match &append.step {
        tokenrail_ports::TurnStep::Start(turn) => Some(turn),
        _ => None,
    });
    for turn in turns {
        let key = key(turn.number);
        if turn.number == TurnNumber::FIRST {
            store.create(agent.clone(), (**turn).clone().into(), key).await.unwrap();
        } else {
            store.enqueue((**turn).clone().into(), 16, key).await.unwrap();
        }
    }
    for append in appends {
        store.append(append).await.unwrap();
    }
}

fn result(outcome: TurnOutcome) -> TurnResult {
    samples::result(outcome)
}

/// The complete event of a message after all its deltas so far.
fn heard(scribe: &Scribe, said: &[EventBody], message: u32) -> EventBody {
    EventBody::Message(Box::new(completed(scribe, said, message)))
}

/// The end of the first message, which is cut short.
fn broken(scribe: &Scribe, said: &[EventBody], outcome: MessageOutcome) -> EventBody {
    EventBody::Message(Box::new(CompleteMessage { outcome, ..completed(scribe, said, 0) }))
}

fn completed(scribe: &Scribe, said: &[EventBody], message: u32) -> CompleteMessage {
    let mut ahead = scribe.clone();
    ahead.say(said.to_vec());
    let EventBody::Message(complete) = ahead.complete(message) else { unreachable!() };
    *complete
}

fn whole(message: u32, text: &str, outcome: MessageOutcome, parent: Option<&str>) -> EventBody {
    EventBody::Message(Box::new(CompleteMessage {
        message: MessageOrdinal(message),
        blocks: vec![ContentBlock::Text(text.into())],
        first_sequence: None,
        outcome,
        parent_call: parent.map(str::to_owned),
    }))
}

fn tool_message(message: u32, call: &str) -> EventBody {
    let block = ContentBlock::ToolUse { call: call.into(), tool: "Bash".into(), input: samples::json("{}") };
    EventBody::Message(Box::new(CompleteMessage {
        message: MessageOrdinal(message),
        blocks: vec![block],
        first_sequence: None,
        outcome: MessageOutcome::Complete,
        parent_call: None,
    }))
}

fn reasoning(message: u32, text: &str) -> EventBody {
    EventBody::ReasoningDelta { message: MessageOrdinal(message), part: Part(1), text: text.into() }
}

fn input(message: u32, part: u32, call: &str, fragment: &str) -> EventBody {
    stories::input(message, part, call, Some("Bash"), fragment)
}

/// The fragments after the first do not name the tool.
fn more_input(message: u32, part: u32, call: &str, fragment: &str) -> EventBody {
    stories::input(message, part, call, None, fragment)
}

fn call(call: &str, parent: Option<&str>) -> EventBody {
    stories::call(call, r#"{"command":"ls"}"#, parent)
}

fn stopped(reason: &str) -> EventBody {
    let usage = samples::json(r#"{"output_tokens":3}"#);
    EventBody::Usage(Box::new(Usage { stop_reason: Some(reason.into()), usage }))
}
