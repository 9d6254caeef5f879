//! Turns what a parser reports into events of the journal: with numbers, times, raw lines and complete messages.
//! Pure.
//!
//! The methods of [`Recorder`], by file:
//!
//! | file | methods |
//! | --- | --- |
//! | this one | input: `line`, `output_ended`, `note`, `notice`, `copy`; output: `take`; the state of the turn |
//! | [`turn_end`] | the end of a turn: `conclude`, `end`, `take_end`; the agent's own turns: `take_own_turn` |
//! | [`rollback`] | output that cannot be saved: `mark`, `leave_out`, `abandon_since` |
//!
//! [`pending`], [`offsets`] and [`turn`] have types of their own.

mod offsets;
mod pending;
mod rollback;
mod turn;
mod turn_end;

use std::mem;
use std::sync::Arc;

use tokenrail_domain::{
    AgentError, AgentId, Assembler, ErrorClass, Event, EventBody, JsonText, Notice, Said, Sequence,
    SessionId, SessionIdError, Timestamp, TurnClose, TurnNumber,
};
use tokenrail_ports::{Append, Epoch, ExitStatus, IMessageParser, Line, OutputLine, TurnStep};

use self::offsets::Offsets;
use self::pending::Pending;
pub(crate) use self::rollback::Mark;
use self::turn::RecordedTurn;
use crate::planted::{self, Bug, is_planted};
use crate::requests_of_run::RunRequests;

/// How many bytes of an overlong line its error shows.
const SHOWN_BYTES: usize = 200;

/// Turns lines into numbered events, and keeps the events that wait for their commit.
pub(crate) struct Recorder {
    agent: AgentId,
    epoch: Epoch,
    turn: RecordedTurn,
    /// The number of the next event.
    next: Sequence,
    assembler: Assembler,
    parser: Box<dyn IMessageParser>,
    /// What the parser reports for one line. Empty between two lines; kept to reuse its memory.
    said: Vec<Said>,
    /// The rest of a line, if a turn ended in the middle of it.
    rest: RestOfLine,
    pending: Pending,
    offsets: Offsets,
    session: Option<SessionId>,
    requests: RunRequests,
}

/// The part of a line after the start of another turn. It belongs to that turn.
#[derive(Default)]
struct RestOfLine {
    said: Vec<Said>,
    /// The raw line, unless an event of the previous turn has it.
    raw: Vec<u8>,
}

/// What a line did, apart from adding pending events.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Recorded {
    Line,
    /// The agent has begun a turn by itself. The caller calls [`Recorder::take_end`] and then
    /// [`Recorder::take_own_turn`]. Nothing of the line is lost.
    OwnTurn,
}

impl Recorder {
    /// Continues after `head`. `assembler` has the events of the turn so far.
    pub(crate) fn new(start: RecorderStart, parser: Box<dyn IMessageParser>) -> Self {
        let RecorderStart { agent, epoch, turn, started_at, head, assembler, committed, message_count } =
            start;
        Self {
            agent,
            epoch,
            turn: RecordedTurn::new(turn, started_at, message_count),
            next: head.next(),
            assembler,
            parser,
            said: Vec::new(),
            rest: RestOfLine::default(),
            pending: Pending::default(),
            offsets: Offsets::new(committed),
            session: None,
            requests: RunRequests::default(),
        }
    }

    /// Reads one line of output.
    pub(crate) fn line(&mut self, line: &OutputLine, now: Timestamp) -> Recorded {
        let mut said = mem::take(&mut self.said);
        let raw = match &line.line {
            Line::Whole(bytes) | Line::Cut(bytes) => {
                // The next step is in the parser crate, in the file of the agent's format, such as `claude.rs`.
                // `formats.rs` there lists the formats.
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

    /// Reports the end of the process to the parser. What the parser adds is saved together with the end of the turn.
    /// So none of it is in the journal yet when this is called, even after a restart.
    pub(crate) fn output_ended(&mut self, status: ExitStatus, now: Timestamp) {
        let mut said = mem::take(&mut self.said);
        self.parser.end(status, &mut said);
        // No turn begins in a process that has ended.
        said.retain(|said| *said != Said::OwnTurn);
        let _ = self.hear(&mut said, true, self.offsets.taken_in, now);
        self.said = said;
    }

    /// Records what the parser reports. If the line is not new, the journal has its events already, and only the
    /// state of the turn and of its permission requests is updated.
    fn hear(&mut self, said: &mut Vec<Said>, is_new: bool, end_offset: u64, now: Timestamp) -> Recorded {
        let mut heard = said.drain(..);
        while let Some(said) = heard.next() {
            match said {
                Said::Close(close) => self.turn.agent_result = Some(*close),
                Said::OwnTurn if is_new => {
                    self.rest.said.extend(heard);
                    return Recorded::OwnTurn;
                }
                Said::OwnTurn => self.turn.agent_result = None,
                // Even if the line is not new: a permission request stays open when the server restarts.
                Said::Asked(request) if is_new || planted::correctly(Bug::QuestionsNotReadAgain) => {
                    self.requests.ask(request, is_new, now);
                }
                // `Pump::begin_save` takes what is settled, and `after_save` reports it.
                Said::Settled { request_id, reply } => self.requests.settle(request_id, reply, is_new),
                Said::Session(session) => self.hear_session(&session, is_new, end_offset, now),
                Said::Event(body) if is_new => self.record(body, end_offset, now),
                Said::End { message, outcome, rest } if is_new => {
                    if let Some(complete) = self.assembler.complete_with(message, outcome, rest) {
                        self.record(EventBody::Message(Box::new(complete)), end_offset, now);
                    }
                }
                Said::Event(_) | Said::End { .. } | Said::Asked(_) => {}
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
        self.record(body, self.offsets.taken_in, now);
    }

    /// Records a notice of the server.
    pub(crate) fn notice(&mut self, subtype: &str, data: &str, now: Timestamp) {
        let (subtype, data) = (subtype.to_owned(), JsonText::new_unchecked(data));
        self.note(EventBody::Notice(Box::new(Notice { subtype, data })), now);
    }

    /// Records an event of another journal, with its raw lines.
    pub(crate) fn copy(&mut self, event: &Event, now: Timestamp) {
        self.pending.joined_lines(event.raw.as_deref().unwrap_or_default());
        self.note(event.body.clone(), now);
    }

    /// Takes the pending events, to be saved in one transaction. `None` if there are none.
    pub(crate) fn take(&mut self, step: TurnStep) -> Option<Append> {
        if self.pending.events() == 0 {
            return None;
        }
        Some(Append {
            agent: self.agent,
            epoch: self.epoch,
            events: Arc::from(self.pending.take()),
            step,
            spool_offset: planted::instead(Bug::OffsetAheadOfEvents, self.offsets.accounted, || {
                self.offsets.taken_in
            }),
            session: self.session.take(),
            open_from: self.assembler.first_open_sequence(),
            then: None,
        })
    }

    pub(crate) fn parser(&self) -> &dyn IMessageParser {
        &*self.parser
    }

    /// Whether the parser has read again all output of this run that the journal has. Only then are the open
    /// permission requests known.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.offsets.has_caught_up() || is_planted(Bug::AnswersBeforeReplay)
    }

    pub(crate) fn requests(&mut self) -> &mut RunRequests {
        &mut self.requests
    }

    /// The agent's own result of the turn. `None` until the agent reports one.
    pub(crate) fn agent_result(&self) -> Option<&TurnClose> {
        self.turn.agent_result.as_ref()
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

    /// Bytes of raw lines that have no event yet.
    pub(crate) fn unshown_bytes(&self) -> usize {
        self.pending.unshown_bytes()
    }

    pub(crate) fn turn(&self) -> TurnNumber {
        self.turn.number
    }

    pub(crate) fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// Gives an event its number and adds it to the pending ones. The next step of an event in the middle of a turn is
    /// `Pump::carry` (`pump.rs`): the top of its loop takes what is pending (`take`, `begin_save`).
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

/// What a recorder starts from.
pub(crate) struct RecorderStart {
    pub(crate) agent: AgentId,
    /// The ownership under which everything is saved.
    pub(crate) epoch: Epoch,
    pub(crate) turn: TurnNumber,
    pub(crate) started_at: Timestamp,
    pub(crate) head: Sequence,
    pub(crate) assembler: Assembler,
    /// How many bytes of the run's output are in the journal.
    pub(crate) committed: u64,
    pub(crate) message_count: u32,
}

/// The text does not show the id: the raw line has it, and it may be of any length.
pub(crate) fn session_invalid(what: &str) -> EventBody {
    let rule = SessionIdError::RULE;
    let text = format!("{what} an invalid id. Later turns cannot resume the session. A session id {rule}");
    EventBody::Error(Box::new(AgentError::new(ErrorClass::Protocol, Some("session_invalid"), text)))
}

fn too_long(head: &[u8], length_bytes: u64) -> EventBody {
    let head = String::from_utf8_lossy(&head[..head.len().min(SHOWN_BYTES)]);
    let text = format!(
        "the agent printed a line of {length_bytes} bytes, more than limits.line_bytes allows; to accept such lines, \
         raise the limit; the line begins with {head}"
    );
    EventBody::Error(Box::new(AgentError::new(ErrorClass::Protocol, Some("line_too_long"), text)))
}
