//! The events that the current parser makes of a run's lines, one for each stored event. Pure.

use std::collections::VecDeque;

use bytes::Bytes;
use tokenrail_domain::{
    AgentError, Event, EventBody, MessageOutcome, Sequence, Turn, TurnNumber, TurnOutcome, TurnResult,
};
use tokenrail_ports::{Epoch, ExitStatus, IMessageParser, Line, OutputLine, TurnStep};

use crate::own_notices::is_own_notice;
use crate::recorder::{Recorded, Recorder, RecorderStart};

/// The lines no longer produce the events that are stored under these numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit(pub(super) String);

/// Reads the lines of one run again, in step with the stored events. Events that the server itself wrote stay as they
/// are. Events of the agent are made anew from its lines.
pub(super) struct Rereading {
    recorder: Recorder,
    /// Events made of the lines read so far that have not met their stored events yet.
    made: VecDeque<Event>,
    /// How many lines were read.
    lines: u64,
    end: End,
    /// The lines have begun an own turn of the agent, which the stored events have not reached yet.
    waits: bool,
    /// The turn that the stored events have reached, but the lines have not begun yet.
    expected: Option<TurnNumber>,
}

/// How the turn ended. The lines alone do not contain that.
struct End {
    outcome: TurnOutcome,
    error: Option<AgentError>,
    duration_ms: u64,
    /// The parser knows that the process has ended.
    told: bool,
    reached: bool,
}

impl End {
    fn of(outcome: TurnOutcome, result: Option<Event>) -> Self {
        match result.map(|event| event.body) {
            Some(EventBody::TurnResult(result)) => {
                let TurnResult { error, duration_ms, .. } = *result;
                Self { outcome, error, duration_ms, told: false, reached: false }
            }
            _ => Self { outcome, error: None, duration_ms: 0, told: false, reached: false },
        }
    }
}

impl Rereading {
    /// Begins with the first turn of a run, and the stored result of that turn.
    pub(super) fn new(
        parser: Box<dyn IMessageParser>,
        turn: &Turn,
        outcome: TurnOutcome,
        result: Option<Event>,
    ) -> Self {
        let first = turn.first_sequence.unwrap_or(Sequence(1));
        let start = RecorderStart {
            agent: turn.agent,
            // Nothing is appended.
            epoch: Epoch::FIRST,
            turn: turn.number,
            started_at: turn.asked_at,
            head: first.before(),
            assembler: tokenrail_domain::Assembler::default(),
            committed: 0,
            message_count: 0,
        };
        Self {
            recorder: Recorder::new(start, parser),
            made: VecDeque::new(),
            lines: 0,
            end: End::of(outcome, result),
            waits: false,
            expected: None,
        }
    }

    /// Notes that the stored events have reached the next turn of the run.
    pub(super) fn next_turn(&mut self, number: TurnNumber, outcome: TurnOutcome, result: Option<Event>) {
        self.end = End::of(outcome, result);
        self.expected = Some(number);
    }

    /// The new event under the number of this stored event.
    pub(super) fn read(&mut self, stored: &Event) -> Result<Event, Misfit> {
        self.begin_expected(stored);
        self.read_lines(stored)?;
        if self.expected.is_some() {
            return Err(Misfit(format!("turn {} would no longer begin", stored.turn)));
        }
        if self.made.is_empty() && stored.raw.is_none() && stored.body.delta_of().is_some() {
            // The end of a turn or of a message produces no delta. So an empty line produced this one: no byte of an
            // empty line is stored.
            self.read_line(Bytes::new(), stored)?;
            self.collect();
        }
        if self.made.is_empty() {
            if is_own(&stored.body) {
                self.recorder.note(stored.body.clone(), stored.at);
            } else {
                self.conclude(stored);
            }
            self.collect();
        }
        let Some(new) = self.made.pop_front() else {
            return Err(Misfit(format!("event {} would disappear", stored.sequence)));
        };
        if !same_meaning(stored, &new) {
            let (was, is) = (name(&stored.body), name(&new.body));
            return Err(Misfit(format!("event {} would change from {was} to {is}", stored.sequence)));
        }
        // The number, the turn, the time and the raw lines stay the same.
        Ok(Event { body: new.body, ..stored.clone() })
    }

    fn read_lines(&mut self, stored: &Event) -> Result<(), Misfit> {
        let raw = stored.raw.clone().unwrap_or_default();
        let mut lines: Vec<Bytes> = split(&raw);
        if is_too_long(&stored.body) {
            // Only the head of such a line is stored, and no parser has read it.
            lines.pop();
        }
        for line in lines {
            self.read_line(line, stored)?;
        }
        self.collect();
        Ok(())
    }

    fn read_line(&mut self, line: Bytes, stored: &Event) -> Result<(), Misfit> {
        if self.waits {
            return Err(Misfit(format!("a new turn would begin before event {}", stored.sequence)));
        }
        self.lines += 1;
        let line = OutputLine { line: Line::Whole(line), end_offset: self.lines };
        self.waits = self.recorder.line(&line, stored.at) == Recorded::OwnTurn;
        self.begin_expected(stored);
        Ok(())
    }

    /// Begins the turn that both the lines and the stored events have reached.
    fn begin_expected(&mut self, stored: &Event) {
        if self.waits
            && let Some(number) = self.expected.take()
        {
            let recorded = self.recorder.begin_own_turn(number, self.lines, stored.at);
            self.waits = recorded == Recorded::OwnTurn;
            self.collect();
        }
    }

    /// Ends the turn and its open messages, because its lines produce nothing more.
    fn conclude(&mut self, stored: &Event) {
        // The exit status of a process is not stored. But a turn without a result of the agent completes in one way
        // only: by exit code 0. For any other end, or if the agent was stopped, a parser adds nothing.
        let by_exit_code =
            self.end.outcome == TurnOutcome::Completed && self.recorder.agent_result().is_none();
        if by_exit_code && !std::mem::replace(&mut self.end.told, true) {
            self.recorder.output_ended(ExitStatus::Code(0), stored.at);
            if 0 < self.recorder.pending_events() {
                // The server may have written an event of its own between these events and the end.
                return;
            }
        }
        if std::mem::replace(&mut self.end.reached, true) {
            return;
        }
        let told = self.recorder.agent_result().and_then(|result| result.error.clone());
        let error = match (&self.end.error, told) {
            // An error of the agent is taken from the new parse. An error of the server stays.
            (Some(AgentError { code: None, .. }), Some(told)) => Some(told),
            (error, _) => error.clone(),
        };
        self.recorder.end(self.end.outcome, error, stored.at);
    }

    fn collect(&mut self) {
        let Some(append) = self.recorder.take(TurnStep::Continue) else { return };
        let duration_ms = self.end.duration_ms;
        self.made.extend(append.events.iter().cloned().map(|mut event| {
            if let EventBody::TurnResult(result) = &mut event.body {
                result.duration_ms = duration_ms;
            }
            event
        }));
    }
}

fn split(raw: &Bytes) -> Vec<Bytes> {
    if raw.is_empty() {
        Vec::new()
    } else {
        raw.split(|byte| *byte == b'\n').map(|line| raw.slice_ref(line)).collect()
    }
}

/// Whether the server itself wrote the event.
fn is_own(body: &EventBody) -> bool {
    match body {
        EventBody::UserMessage { .. } => true,
        EventBody::Notice(notice) => is_own_notice(&notice.subtype),
        EventBody::Error(error) => error.code.is_some(),
        _ => false,
    }
}

fn is_too_long(body: &EventBody) -> bool {
    matches!(body, EventBody::Error(error) if error.code.as_deref() == Some("line_too_long"))
}

/// Whether a client that has seen one of the events would take the other for the same: the same kind of event, of the
/// same message or tool call. A message that is complete stays complete, and one that is not stays incomplete.
fn same_meaning(stored: &Event, new: &Event) -> bool {
    let call = |body: &EventBody| match body {
        EventBody::ToolCall(made) => Some(made.call.clone()),
        EventBody::ToolResult(result) => Some(result.call.clone()),
        EventBody::ToolInputDelta { call, .. } => Some(call.clone()),
        _ => None,
    };
    let ended = |body: &EventBody| match body {
        EventBody::Message(message) => Some(message.outcome == MessageOutcome::Complete),
        EventBody::Abandoned { .. } => Some(false),
        _ => None,
    };
    let (one, other) = (&stored.body, &new.body);
    stored.sequence == new.sequence
        && std::mem::discriminant(one) == std::mem::discriminant(other)
        && one.delta_of() == other.delta_of()
        && one.completed() == other.completed()
        && call(one) == call(other)
        && ended(one) == ended(other)
}

fn name(body: &EventBody) -> &'static str {
    match body {
        EventBody::UserMessage { .. } => "user message",
        EventBody::TextDelta { .. } => "text delta",
        EventBody::ReasoningDelta { .. } => "reasoning delta",
        EventBody::ToolInputDelta { .. } => "tool input delta",
        EventBody::Message(_) => "message",
        EventBody::ToolCall(_) => "tool call",
        EventBody::ToolResult(_) => "tool result",
        EventBody::Usage(_) => "usage",
        EventBody::Notice(_) => "notice",
        EventBody::Abandoned { .. } => "abandoned message",
        EventBody::Error(_) => "error",
        EventBody::TurnResult(_) => "turn result",
    }
}
