//! Gives what a parser says its place in the journal: numbers, times, raw lines, complete messages. Pure.

mod mark;
mod offsets;
mod pending;
mod turn;
mod turn_end;

use std::mem;
use std::sync::Arc;

use tokenrail_domain::{
    AgentError, AgentId, Assembler, ErrorClass, Event, EventBody, Said, Sequence, SessionId, SessionIdError,
    Timestamp, TurnClose, TurnNumber,
};
use tokenrail_ports::{Append, ExitStatus, IMessageParser, Line, OutputLine, TurnStep};

pub(crate) use self::mark::Mark;
use self::offsets::Offsets;
use self::pending::Pending;
use self::turn::RecordedTurn;
use crate::planted;
use crate::questions::Questions;

/// How many bytes of an overlong line its error shows.
const SHOWN_BYTES: usize = 200;

/// Turns lines into numbered events, and keeps those that wait for their commit.
pub(crate) struct Recorder {
    agent: AgentId,
    turn: RecordedTurn,
    /// The number of the next event.
    next: Sequence,
    assembler: Assembler,
    parser: Box<dyn IMessageParser>,
    /// What the parser says of one line. Empty between two lines; kept for its memory.
    said: Vec<Said>,
    /// The rest of a line, after the end of a turn in its middle.
    rest: RestOfLine,
    pending: Pending,
    offsets: Offsets,
    session: Option<SessionId>,
    questions: Questions,
}

/// What a line says after it has begun another turn: it belongs to that turn.
#[derive(Default)]
struct RestOfLine {
    said: Vec<Said>,
    /// The raw line, if no event of the turn before it has it.
    raw: Vec<u8>,
}

/// What a line did, apart from adding pending events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Line,
    /// The agent has begun a turn by itself. The caller calls [`Recorder::take_end`] and then
    /// [`Recorder::take_own_turn`]. Nothing of the line is lost.
    OwnTurn,
}

impl Recorder {
    /// Goes on after `head`, with the events of the turn so far folded into `assembler`.
    pub(crate) fn new(start: RecorderStart, parser: Box<dyn IMessageParser>) -> Self {
        let RecorderStart { agent, turn, started_at, head, assembler, committed, message_count } = start;
        Self {
            agent,
            turn: RecordedTurn::new(turn, started_at, message_count),
            next: head.next(),
            assembler,
            parser,
            said: Vec::new(),
            rest: RestOfLine::default(),
            pending: Pending::default(),
            offsets: Offsets::new(committed),
            session: None,
            questions: Questions::default(),
        }
    }

    /// Reads one line of output.
    pub(crate) fn line(&mut self, line: &OutputLine, now: Timestamp) -> Recorded {
        let mut said = mem::take(&mut self.said);
        let raw = match &line.line {
            Line::Whole(bytes) | Line::Cut(bytes) => {
                self.parser.parse(bytes, &mut said);
                bytes
            }
            Line::TooLong { head, length_bytes } => {
                said.push(Said::Event(too_long(head, *length_bytes)));
                head
            }
        };
        let length = self.pending.raw_bytes();
        let is_new = self.offsets.parse(line.end_offset);
        if is_new {
            self.pending.line(raw);
        }
        let recorded = self.hear(&mut said, is_new, line.end_offset, now);
        self.said = said;
        if recorded == Recorded::OwnTurn && self.pending.take_back(length) {
            self.rest.raw.clear();
            self.rest.raw.extend_from_slice(raw);
        }
        recorded
    }

    /// The process has ended. What the parser says to that is saved together with the end of the turn. So none of it is in
    /// the journal yet when this is called, even after a restart.
    pub(crate) fn output_ended(&mut self, status: ExitStatus, now: Timestamp) {
        let mut said = mem::take(&mut self.said);
        self.parser.end(status, &mut said);
        // No turn begins in a process that has ended.
        said.retain(|said| *said != Said::OwnTurn);
        self.hear(&mut said, true, self.offsets.read, now);
        self.said = said;
    }

    /// Records what the parser says. If that is not new, the journal has its events already, and only the state of the
    /// turn and of its questions follows from it.
    fn hear(&mut self, said: &mut Vec<Said>, is_new: bool, end_offset: u64, now: Timestamp) -> Recorded {
        let mut heard = said.drain(..);
        while let Some(said) = heard.next() {
            match said {
                Said::Close(close) => self.turn.close = Some(*close),
                Said::OwnTurn if is_new => {
                    self.rest.said.extend(heard);
                    return Recorded::OwnTurn;
                }
                Said::OwnTurn => self.turn.close = None,
                // Even if it is not new: a question stays open when the server restarts.
                Said::Asked { question, options } if is_new || planted::questions_are_read_again() => {
                    self.questions.ask(question, options);
                }
                Said::Settled { question, option } => self.questions.settle(question, option, is_new),
                Said::Session(session) => self.hear_session(&session, is_new, end_offset, now),
                Said::Event(body) if is_new => self.record(body, end_offset, now),
                Said::End { message, outcome, rest } if is_new => {
                    if let Some(complete) = self.assembler.complete_with(message, outcome, rest) {
                        self.record(EventBody::Message(Box::new(complete)), end_offset, now);
                    }
                }
                Said::Event(_) | Said::End { .. } | Said::Asked { .. } => {}
            }
        }
        Recorded::Line
    }

    fn hear_session(&mut self, session: &str, is_new: bool, end_offset: u64, now: Timestamp) {
        let heard = SessionId::new(session);
        self.session = heard.as_ref().ok().filter(|_| is_new).cloned();
        if heard.is_err() && is_new {
            self.record(session_invalid("the agent reported a session with"), end_offset, now);
        }
    }

    /// Records an event that does not come from the agent's output.
    pub(crate) fn note(&mut self, body: EventBody, now: Timestamp) {
        self.record(body, self.offsets.read, now);
    }

    /// Records an event of another journal, with its raw lines.
    pub(crate) fn copy(&mut self, event: &Event, now: Timestamp) {
        self.pending.joined_lines(event.raw.as_deref().unwrap_or_default());
        self.note(event.body.clone(), now);
    }

    /// Takes what is pending, to be saved in one transaction. `None` if nothing is.
    pub(crate) fn take(&mut self, step: TurnStep) -> Option<Append> {
        if self.pending.events() == 0 {
            return None;
        }
        Some(Append {
            agent: self.agent,
            events: Arc::from(self.pending.take()),
            step,
            spool_offset: planted::saved_offset(self.offsets.accounted, self.offsets.read),
            session: self.session.take(),
            open_from: self.assembler.first_open_sequence(),
            then: None,
        })
    }

    pub(crate) fn parser(&self) -> &dyn IMessageParser {
        &*self.parser
    }

    /// Whether all output of this run that the journal has was parsed again. Only then is it known what is asked.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.offsets.has_caught_up() || !planted::answers_wait_for_replay()
    }

    pub(crate) fn questions(&mut self) -> &mut Questions {
        &mut self.questions
    }

    /// The agent's own account of the end of its turn, once it has given one.
    pub(crate) fn close(&self) -> Option<&TurnClose> {
        self.turn.close.as_ref()
    }

    pub(crate) fn has_open_message(&self) -> bool {
        self.assembler.first_open_sequence().is_some()
    }

    pub(crate) fn open_bytes(&self) -> usize {
        self.assembler.bytes()
    }

    pub(crate) fn pending_events(&self) -> usize {
        self.pending.events()
    }

    /// About how many bytes wait for their commit.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// Bytes of raw lines that wait for an event to go with.
    pub(crate) fn unshown_bytes(&self) -> usize {
        self.pending.unshown_bytes()
    }

    pub(crate) fn turn(&self) -> TurnNumber {
        self.turn.number
    }

    pub(crate) fn next_sequence(&self) -> Sequence {
        self.next
    }

    fn record(&mut self, body: EventBody, offset: u64, now: Timestamp) {
        let sequence = self.next;
        self.next = sequence.next();
        self.assembler.record(sequence, &body);
        if matches!(body, EventBody::Message(_)) {
            self.turn.message_count += 1;
        }
        self.offsets.account(offset);
        self.pending.push(Event { sequence, at: now, turn: self.turn.number, body, raw: None });
    }
}

/// Where a recorder begins.
pub(crate) struct RecorderStart {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
    pub(crate) started_at: Timestamp,
    pub(crate) head: Sequence,
    pub(crate) assembler: Assembler,
    /// How many bytes of the run's output are in the journal.
    pub(crate) committed: u64,
    pub(crate) message_count: u32,
}

/// The id itself is not shown: it stands in the raw line, and may be of any length.
pub(crate) fn session_invalid(what: &str) -> EventBody {
    let rule = SessionIdError::RULE;
    let text = format!("{what} an invalid id, so later turns cannot resume the session; a session id {rule}");
    EventBody::Error(Box::new(AgentError::new(ErrorClass::Protocol, Some("session_invalid"), text)))
}

fn too_long(head: &[u8], length_bytes: u64) -> EventBody {
    let head = String::from_utf8_lossy(&head[..head.len().min(SHOWN_BYTES)]);
    let text = format!("a line of {length_bytes} bytes exceeds limits.line_bytes; it begins with {head}");
    EventBody::Error(Box::new(AgentError::new(ErrorClass::Protocol, Some("line_too_long"), text)))
}
