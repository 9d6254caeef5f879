//! Sample agents and events for tests.

mod tool_results;

use std::sync::Arc;

use bytes::Bytes;
use tokenrail_domain::{
    Agent, AgentError, AgentId, Assembler, CompleteMessage, ContentBlock, ErrorClass, Event, EventBody,
    ImageFile, ImageType, JsonText, MessageOrdinal, MessageOutcome, Notice, Part, PromptImage, Sequence,
    Timestamp, ToolCall, Turn, TurnNumber, TurnOutcome, TurnResult, TurnState, Usage,
};

use crate::{Append, Epoch, ListBounds, PageLimit, TurnOrder, TurnStep};

/// When the first sample agent was launched.
pub const LAUNCHED_AT: Timestamp = Timestamp(1_795_299_000_000);

/// A limit that no test reaches.
pub const WHOLE: PageLimit = PageLimit { events: usize::MAX, bytes: usize::MAX };

/// A list in which nothing is cut.
pub const WHOLE_LIST: ListBounds = ListBounds { bytes: usize::MAX, field_bytes: usize::MAX };

/// A page of at most `events` events.
pub fn page_of(events: usize) -> PageLimit {
    PageLimit { events, ..WHOLE }
}

/// An order of the first turn of an agent, with this prompt and nothing else.
pub fn turn_order(prompt: &str) -> TurnOrder {
    TurnOrder {
        agent: AgentId::new(Timestamp(1), [1; 10]),
        run: TurnNumber::FIRST,
        prompt: prompt.to_owned(),
        model: None,
        cwd: "/".into(),
        session: None,
        options: None,
        images: Vec::new(),
        history: Vec::new(),
    }
}

/// The `n`th sample agent as it is launched, with its first turn. The ids of the sample agents grow with `n`.
pub fn launch(n: u8) -> (Agent, Turn) {
    let at = Timestamp(LAUNCHED_AT.0 + i64::from(n));
    let agent = Agent {
        name: Some("Ada".into()),
        prompt: "count to three".into(),
        model: Some("opus".into()),
        cwd: "/home/ada/project".into(),
        metadata: Some(json(r#"{"ticket":7}"#)),
        options: Some(json(r#"{"effort":"high"}"#)),
        cancel_on_disconnect: true,
        ..Agent::new(AgentId::new(at, [n; 10]), "demo".into(), at)
    };
    let turn = queued_turn(agent.id, TurnNumber::FIRST, "count to three");
    (agent, turn)
}

/// A queued turn.
pub fn queued_turn(agent: AgentId, number: TurnNumber, prompt: &str) -> Turn {
    Turn {
        agent,
        number,
        run: number,
        prompt: prompt.into(),
        images: Vec::new(),
        state: TurnState::Queued,
        asked_at: Timestamp(LAUNCHED_AT.0 + 500),
        first_sequence: None,
        last_sequence: None,
        spool_offset: 0,
        stop: None,
        base: None,
    }
}

/// A prompt with images.
fn seen() -> EventBody {
    let image = |media_type, bytes| PromptImage { media_type, bytes };
    let images = vec![image(ImageType::Png, 68), image(ImageType::Webp, 5 << 20)];
    EventBody::UserMessage { content: "what is this?".into(), images }
}

/// A small image of this type. `mark` makes it different from others.
#[expect(clippy::expect_used, reason = "each signature is one that the domain knows")]
pub fn image(kind: ImageType, mark: &str) -> ImageFile {
    let signature: &[u8] = match kind {
        ImageType::Png => b"\x89PNG\r\n\x1a\n",
        ImageType::Jpeg => b"\xff\xd8\xff\xe0",
        ImageType::Gif => b"GIF89a",
        ImageType::Webp => b"RIFF\x04\0\0\0WEBP",
    };
    ImageFile::new([signature, mark.as_bytes()].concat().into()).expect("an image")
}

pub fn json(text: &str) -> JsonText {
    JsonText::new_unchecked(text)
}

pub fn text_delta(message: u32, text: &str) -> EventBody {
    EventBody::TextDelta { message: MessageOrdinal(message), part: Part(0), text: text.into() }
}

pub fn notice(subtype: &str) -> EventBody {
    EventBody::Notice(Box::new(Notice { subtype: subtype.into(), data: json("{}") }))
}

/// A permission request that can be answered with `yes` or `no`.
pub fn permission_request(id: &str, call: Option<&str>) -> EventBody {
    let call = call.map_or_else(String::new, |call| format!(r#""toolCallId":"{call}","#));
    let options = r#"[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]"#;
    let data = format!(
        r#"{{"requestId":"{id}",{call}"toolName":"Bash","input":{{"command":"ls"}},"options":{options}}}"#
    );
    let subtype = Notice::PERMISSION_REQUEST.to_owned();
    EventBody::Notice(Box::new(Notice { subtype, data: json(&data) }))
}

/// The event that the permission request is no longer open.
pub fn settled(id: &str, option: Option<&str>, by: &str) -> EventBody {
    let option = option.map_or_else(String::new, |option| format!(r#""optionId":"{option}","#));
    let data = format!(r#"{{"requestId":"{id}",{option}"by":"{by}"}}"#);
    let subtype = Notice::PERMISSION_RESOLVED.to_owned();
    EventBody::Notice(Box::new(Notice { subtype, data: json(&data) }))
}

pub fn result(outcome: TurnOutcome) -> TurnResult {
    TurnResult {
        outcome,
        text: "one two three".into(),
        duration_ms: 1234,
        num_turns: Some(2),
        cost_usd: Some(0.1 + 0.2),
        usage: Some(json(r#"{"output_tokens":3}"#)),
        message_count: 1,
        error: None,
        origin: None,
    }
}

/// An error in which every field is set.
pub fn error() -> AgentError {
    AgentError {
        class: ErrorClass::RateLimit,
        code: Some("idle_timeout".into()),
        text: "slow down".into(),
        retry_after_ms: Some(1500),
        recoverable: true,
    }
}

/// Writes the journal of one agent: numbers the events and tracks the open messages.
#[derive(Clone)]
pub struct Scribe {
    agent: AgentId,
    turn: TurnNumber,
    head: Sequence,
    epoch: Epoch,
    spool_offset: u64,
    open: Assembler,
}

impl Scribe {
    pub fn new(agent: &Agent) -> Self {
        Self {
            agent: agent.id,
            turn: agent.turn,
            head: agent.head,
            epoch: Epoch::FIRST,
            spool_offset: 0,
            open: Assembler::default(),
        }
    }

    /// Continues with another turn, without starting it.
    #[must_use]
    pub fn at_turn(mut self, turn: TurnNumber) -> Self {
        self.turn = turn;
        self
    }

    /// Continues as the owner of this epoch.
    #[must_use]
    pub fn at_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    /// Starts the turn: its user message.
    pub fn start(&mut self, turn: &Turn) -> Append {
        self.turn = turn.number;
        self.spool_offset = 0;
        let asked = EventBody::UserMessage { content: turn.prompt.clone(), images: turn.images.clone() };
        self.write(vec![asked], TurnStep::Start(Box::new(turn.clone())))
    }

    pub fn say(&mut self, bodies: Vec<EventBody>) -> Append {
        self.write(bodies, TurnStep::Continue)
    }

    /// Ends the turn with this outcome.
    pub fn end(&mut self, outcome: TurnOutcome) -> Append {
        self.end_with(result(outcome))
    }

    pub fn end_with(&mut self, result: TurnResult) -> Append {
        self.write(vec![EventBody::TurnResult(Box::new(result))], TurnStep::End)
    }

    /// The complete event of a message that was said in deltas.
    #[expect(clippy::expect_used, reason = "a test that completes what is not open is wrong")]
    pub fn complete(&self, message: u32) -> EventBody {
        let complete = self.open.complete(MessageOrdinal(message), MessageOutcome::Complete);
        EventBody::Message(Box::new(complete.expect("it is open")))
    }

    /// The append that [`Scribe::say`] would return, without writing it.
    pub fn rehearse(&self, bodies: Vec<EventBody>) -> Append {
        self.clone().say(bodies)
    }

    fn write(&mut self, bodies: Vec<EventBody>, step: TurnStep) -> Append {
        let events: Vec<Event> = bodies.into_iter().map(|body| self.number(body)).collect();
        self.spool_offset += 100;
        Append {
            agent: self.agent,
            epoch: self.epoch,
            events: Arc::from(events),
            step,
            spool_offset: self.spool_offset,
            session: None,
            open_from: self.open.first_open_sequence(),
            then: None,
        }
    }

    fn number(&mut self, body: EventBody) -> Event {
        self.head = self.head.next();
        self.open.record(self.head, &body);
        let raw = match self.head.0 % 3 {
            0 => None,
            // Agents print invalid UTF-8, and lines that display nothing are joined to the next line.
            1 => Some(Bytes::from_static(b"{\"type\":\"ping\"}\n{\"broken\":\"\xff\xfe\"}")),
            _ => Some(Bytes::from(format!("{{\"line\":{}}}", self.head))),
        };
        let at = Timestamp(LAUNCHED_AT.0 + 1000 + i64::try_from(self.head.0 * 7).unwrap_or(0));
        Event { sequence: self.head, at, turn: self.turn, body, raw }
    }
}

/// A message of which nothing is there.
fn interrupted(message: MessageOrdinal) -> CompleteMessage {
    CompleteMessage {
        message,
        blocks: Vec::new(),
        first_sequence: None,
        outcome: MessageOutcome::Interrupted,
        parent_call: Some("call_0".into()),
    }
}

/// Bodies of every kind except the turn result, with every optional field both present and absent. The messages 0 and 1
/// are completed.
pub fn every_body() -> Vec<EventBody> {
    let (first, second, part) = (MessageOrdinal(0), MessageOrdinal(1), Part(2));
    let [failed, edited] = tool_results::both();
    let fragment = |tool: Option<&str>, fragment: &str| EventBody::ToolInputDelta {
        message: first,
        part,
        call: "call_1".into(),
        tool: tool.map(str::to_owned),
        fragment: fragment.into(),
    };
    vec![
        text_delta(0, "Grüße 🦀 \u{0} \u{2028} \" \\ "),
        text_delta(0, ""),
        EventBody::ReasoningDelta { message: first, part: Part(1), text: "hm".into() },
        fragment(Some("Bash"), "{\"command\":"),
        fragment(None, "\"ls\"}"),
        EventBody::Message(Box::new(CompleteMessage {
            message: first,
            blocks: vec![
                ContentBlock::Text("Grüße 🦀 \u{0} \u{2028} \" \\ ".into()),
                ContentBlock::Reasoning("hm".into()),
                ContentBlock::ToolUse {
                    call: "call_1".into(),
                    tool: "Bash".into(),
                    input: json(r#"{ "command" : "ls" }"#),
                },
                ContentBlock::Other(json(r#"{"type":"image","n":1.50}"#)),
            ],
            first_sequence: Some(Sequence(2)),
            outcome: MessageOutcome::Complete,
            parent_call: None,
        })),
        EventBody::Message(Box::new(interrupted(second))),
        EventBody::ToolCall(Box::new(ToolCall {
            call: "call_1".into(),
            tool: "Bash".into(),
            input: json(r#"{"z":1,"a":[1.0,1e2]}"#),
            parent_call: Some("call_0".into()),
        })),
        failed,
        edited,
        EventBody::Usage(Box::new(Usage {
            stop_reason: Some("end_turn".into()),
            usage: json(r#"{"output_tokens":3}"#),
        })),
        EventBody::Usage(Box::new(Usage { stop_reason: None, usage: json("{}") })),
        notice("init"),
        EventBody::Abandoned { message: MessageOrdinal(9) },
        EventBody::Error(Box::new(error())),
        EventBody::Error(Box::new(AgentError {
            class: ErrorClass::Unknown,
            code: None,
            text: String::new(),
            retry_after_ms: None,
            recoverable: false,
        })),
        EventBody::UserMessage { content: "and then?".into(), images: Vec::new() },
        seen(),
    ]
}
