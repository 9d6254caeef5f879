//! Gives what a parser says its place in the journal: numbers, times, raw lines, complete messages. Pure.

mod mark;

use std::mem;
use std::sync::Arc;

use bytes::BytesMut;
use tokenrail_domain::{
    AgentError, AgentId, Assembler, ErrorClass, Event, EventBody, MessageOutcome, Said, Sequence, SessionId,
    SessionIdError, Timestamp, TurnClose, TurnNumber, TurnOutcome, TurnResult,
};
#[cfg(planted_bugs)]
use tokenrail_ports::planted::{Bug, is_planted};
use tokenrail_ports::{Append, ExitStatus, IMessageParser, Line, OutputLine, TurnStep};

pub(crate) use self::mark::Mark;
use crate::questions::Questions;

/// How many bytes of an overlong line are shown in its error.
const SHOWN_BYTES: usize = 200;

/// Turns lines into numbered events and keeps those that wait for their commit.
pub(crate) struct Recorder {
    agent: AgentId,
    turn: TurnNumber,
    started_at: Timestamp,
    next: Sequence,
    assembler: Assembler,
    parser: Box<dyn IMessageParser>,
    said: Vec<Said>,
    /// A line has been read since the last event: it waits for the next one, also where it is empty.
    line_waits: bool,
    /// What the line that began another turn says after that.
    of_next_turn: Vec<Said>,
    pending: Vec<Event>,
    /// The raw lines of all pending events, one after the other, and behind them those of the next event. They
    /// are copied here so that what is kept in memory is what was counted, not the reader's whole buffer.
    raw: BytesMut,
    /// Where the raw lines of each pending event end in `raw`.
    raw_ends: Vec<usize>,
    /// Bytes of text of the pending events.
    text_bytes: usize,
    /// The raw line that began another turn: it goes with that turn's first event.
    raw_of_next_turn: BytesMut,
    /// Output up to here is accounted for by the pending events and those before them.
    offset: u64,
    /// Output up to here has been read.
    read: u64,
    /// Output up to here was in the journal when this recorder began.
    committed: u64,
    /// Output up to here has been heard, be it for the second time.
    heard: u64,
    session: Option<SessionId>,
    questions: Questions,
    close: Option<TurnClose>,
    message_count: u32,
}

/// What a line did, beyond adding to what is pending.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Line,
    /// The agent has begun a turn by itself; the one before it is to be ended first, and then
    /// [`Recorder::begin_next_turn`] called. Nothing of the line is lost.
    NextTurn,
}

impl Recorder {
    /// Goes on after `head`, with the events of the turn so far folded into `assembler`.
    pub(crate) fn new(start: RecorderStart, parser: Box<dyn IMessageParser>) -> Self {
        let RecorderStart { agent, turn, started_at, head, assembler, committed, message_count } = start;
        #[cfg(planted_bugs)]
        let committed = if is_planted(Bug::LinesTwiceAfterRestart) { 0 } else { committed };
        Self {
            agent,
            turn,
            started_at,
            next: head.next(),
            assembler,
            parser,
            said: Vec::new(),
            line_waits: false,
            of_next_turn: Vec::new(),
            pending: Vec::new(),
            raw: BytesMut::new(),
            raw_ends: Vec::new(),
            text_bytes: 0,
            raw_of_next_turn: BytesMut::new(),
            offset: committed,
            read: committed,
            committed,
            heard: 0,
            session: None,
            questions: Questions::default(),
            close: None,
            message_count,
        }
    }

    /// Reads one line of output.
    pub(crate) fn line(&mut self, line: &OutputLine, now: Timestamp) -> Recorded {
        #[cfg(planted_bugs)]
        if is_planted(Bug::ParserNotReplayed) && line.end_offset <= self.committed {
            return Recorded::Line;
        }
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
        let raw_before = self.raw.len();
        self.heard = line.end_offset;
        let fresh = self.committed < line.end_offset;
        if fresh {
            if mem::replace(&mut self.line_waits, true) {
                self.raw.extend_from_slice(b"\n");
            }
            self.raw.extend_from_slice(raw);
            self.read = line.end_offset;
        }
        let recorded = self.hear(&mut said, fresh, line.end_offset, now);
        self.said = said;
        if recorded == Recorded::NextTurn && self.attached_bytes() <= raw_before {
            self.raw_of_next_turn.clear();
            self.raw_of_next_turn.extend_from_slice(raw);
            self.raw.truncate(raw_before);
        }
        recorded
    }

    /// The process has ended. What its parser says to that is saved together with the end of the turn: where this is
    /// asked, also after a restart, none of it is in the journal yet.
    pub(crate) fn output_ended(&mut self, status: ExitStatus, now: Timestamp) {
        let mut said = mem::take(&mut self.said);
        self.parser.end(status, &mut said);
        // No turn begins in a process that has ended.
        said.retain(|said| *said != Said::NextTurn);
        self.hear(&mut said, true, self.read, now);
        self.said = said;
    }

    /// Of what is not `fresh`, only whether the agent has closed matters: it is in the journal already.
    fn hear(&mut self, said: &mut Vec<Said>, fresh: bool, end_offset: u64, now: Timestamp) -> Recorded {
        let mut heard = said.drain(..);
        while let Some(said) = heard.next() {
            match said {
                Said::Close(close) => self.close = Some(*close),
                Said::NextTurn if fresh => {
                    self.of_next_turn.extend(heard);
                    return Recorded::NextTurn;
                }
                Said::NextTurn => self.close = None,
                #[cfg(planted_bugs)]
                Said::Asked { .. } if !fresh && is_planted(Bug::QuestionsNotReadAgain) => {}
                // Also what is in the journal already: a question outlives the server that it was told first.
                Said::Asked { question, options } => self.questions.ask(question, options),
                Said::Settled { question, option } => self.questions.settle(question, option, fresh),
                Said::Session(session) => self.hear_session(&session, fresh, end_offset, now),
                Said::Event(body) if fresh => self.record(body, end_offset, now),
                Said::End { message, outcome, rest } if fresh => {
                    if let Some(complete) = self.assembler.complete_with(message, outcome, rest) {
                        self.record(EventBody::Message(Box::new(complete)), end_offset, now);
                    }
                }
                Said::Event(_) | Said::End { .. } => {}
            }
        }
        Recorded::Line
    }

    fn hear_session(&mut self, session: &str, fresh: bool, end_offset: u64, now: Timestamp) {
        let heard = SessionId::new(session);
        self.session = heard.as_ref().ok().filter(|_| fresh).cloned();
        if heard.is_err() && fresh {
            self.record(session_invalid("the agent names its session by"), end_offset, now);
        }
    }

    /// Records something that did not come from the agent's output.
    pub(crate) fn note(&mut self, body: EventBody, now: Timestamp) {
        self.record(body, self.read, now);
    }

    /// Records an event of another journal, with its raw lines.
    pub(crate) fn copy(&mut self, event: &Event, now: Timestamp) {
        self.raw.extend_from_slice(event.raw.as_deref().unwrap_or_default());
        self.record(event.body.clone(), self.read, now);
    }

    /// Ends the turn: completes what is open, and closes it with a result.
    pub(crate) fn end(&mut self, outcome: TurnOutcome, error: Option<AgentError>, now: Timestamp) {
        let open: Vec<_> = self.assembler.open_messages().collect();
        for message in open {
            let outcome = MessageOutcome::of_open_message(outcome);
            if let Some(complete) = self.assembler.complete(message, outcome) {
                self.note(EventBody::Message(Box::new(complete)), now);
            }
        }
        let close = self.close.take().unwrap_or_default();
        let result = TurnResult {
            outcome,
            text: close.text,
            duration_ms: now.ms_since(self.started_at),
            num_turns: close.num_turns,
            cost_usd: close.cost_usd,
            usage: close.usage,
            message_count: self.message_count,
            error,
            origin: close.origin,
        };
        self.note(EventBody::TurnResult(Box::new(result)), now);
    }

    /// After the end of a turn: the agent goes on with one that it began by itself. Records what the line that
    /// began it says, up to the beginning of yet another turn.
    pub(crate) fn begin_next_turn(&mut self, turn: TurnNumber, end_offset: u64, now: Timestamp) -> Recorded {
        self.turn = turn;
        self.started_at = now;
        self.message_count = 0;
        self.raw.extend_from_slice(&self.raw_of_next_turn);
        self.raw_of_next_turn.clear();
        let mut said = mem::take(&mut self.of_next_turn);
        self.hear(&mut said, true, end_offset, now)
    }

    /// Takes what is pending, to be saved in one transaction; none where nothing is.
    pub(crate) fn take(&mut self, step: TurnStep) -> Option<Append> {
        if self.pending.is_empty() {
            return None;
        }
        let mut raw = self.raw.split_to(self.attached_bytes()).freeze();
        let mut begin = 0;
        for (event, end) in self.pending.iter_mut().zip(self.raw_ends.drain(..)) {
            event.raw = (begin < end).then(|| raw.split_to(end - begin));
            begin = end;
        }
        #[cfg(planted_bugs)]
        if is_planted(Bug::OffsetAheadOfEvents) {
            self.offset = self.read;
        }
        self.text_bytes = 0;
        let capacity = self.pending.len();
        let pending = mem::replace(&mut self.pending, Vec::with_capacity(capacity));
        Some(Append {
            agent: self.agent,
            events: Arc::from(pending),
            step,
            spool_offset: self.offset,
            session: self.session.take(),
            open_from: self.assembler.first_open_sequence(),
            then: None,
        })
    }

    pub(crate) fn parser(&self) -> &dyn IMessageParser {
        &*self.parser
    }

    /// Whether all that is in the journal of this run has been heard again: only then is it known what is asked.
    pub(crate) fn has_caught_up(&self) -> bool {
        #[cfg(planted_bugs)]
        if is_planted(Bug::AnswersBeforeReplay) {
            return true;
        }
        self.committed <= self.heard
    }

    pub(crate) fn questions(&mut self) -> &mut Questions {
        &mut self.questions
    }

    /// The agent's own account of the end of its turn, once it has given one.
    pub(crate) fn close(&self) -> Option<&TurnClose> {
        self.close.as_ref()
    }

    pub(crate) fn has_open_message(&self) -> bool {
        self.assembler.first_open_sequence().is_some()
    }

    pub(crate) fn open_bytes(&self) -> usize {
        self.assembler.bytes()
    }

    pub(crate) fn pending_events(&self) -> usize {
        self.pending.len()
    }

    /// About how many bytes wait for their commit.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.raw.len() + self.text_bytes + self.pending.len() * size_of::<Event>()
    }

    /// Bytes of raw lines that wait for an event to go with.
    pub(crate) fn unshown_bytes(&self) -> usize {
        self.raw.len() - self.attached_bytes()
    }

    fn attached_bytes(&self) -> usize {
        self.raw_ends.last().copied().unwrap_or(0)
    }

    pub(crate) fn turn(&self) -> TurnNumber {
        self.turn
    }

    pub(crate) fn next_sequence(&self) -> Sequence {
        self.next
    }

    fn record(&mut self, body: EventBody, offset: u64, now: Timestamp) {
        let sequence = self.next;
        self.next = sequence.next();
        self.assembler.record(sequence, &body);
        if matches!(body, EventBody::Message(_)) {
            self.message_count += 1;
        }
        self.line_waits = false;
        self.raw_ends.push(self.raw.len());
        self.text_bytes += body.text_bytes();
        self.offset = self.offset.max(offset);
        self.pending.push(Event { sequence, at: now, turn: self.turn, body, raw: None });
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
    EventBody::Error(Box::new(AgentError {
        class: ErrorClass::Protocol,
        code: Some("session_invalid".to_owned()),
        text: format!(
            "{what} an id that is not kept, and no turn goes on with it: a session id {}",
            SessionIdError::RULE
        ),
        retry_after_ms: None,
        recoverable: false,
    }))
}

fn too_long(head: &[u8], length_bytes: u64) -> EventBody {
    let head = String::from_utf8_lossy(&head[..head.len().min(SHOWN_BYTES)]);
    EventBody::Error(Box::new(AgentError {
        class: ErrorClass::Protocol,
        code: Some("line_too_long".to_owned()),
        text: format!(
            "a line of {length_bytes} bytes is longer than limits.line_bytes; it begins with {head}"
        ),
        retry_after_ms: None,
        recoverable: false,
    }))
}
