//! The dialect `message`: each message has one start, chunks of text, and one end with all of its text.

use tokenrail_application::RenderingKey;
use tokenrail_domain::{
    AgentId, Assembler, CompleteMessage, Event, EventBody, MessageOrdinal, MessageOutcome, Timestamp,
    TurnNumber, event_id, message_id,
};

use super::spoken::{Spoken, Step};
use crate::fold::{Fold, Frames};
use crate::json::{IdText, IsoTime};
use crate::vocabularies::native::dto::message_frames::{MessageEnd, MessageNew, MessageStart};
use crate::vocabularies::native::native_frame::{Native, NativeFrame, SpokenText, TextFrame, tell};

/// The outcome of a message that the agent discarded.
const ABANDONED: &str = "abandoned";

/// The fold of the dialect `message`: the state of the current turn.
#[derive(Debug)]
pub(crate) struct MessageFold {
    agent: AgentId,
    spoken: Spoken,
}

/// The place of a frame in the journal.
#[derive(Clone, Copy)]
struct Place {
    sequence: u64,
    at: Timestamp,
    turn: TurnNumber,
    message: MessageOrdinal,
}

impl Place {
    fn of(event: &Event, message: MessageOrdinal) -> Self {
        Self { sequence: event.sequence.0, at: event.at, turn: event.turn, message }
    }
}

impl MessageFold {
    pub(crate) fn new(agent: AgentId) -> Self {
        Self { agent, spoken: Spoken::default() }
    }

    /// Sends the text of the open messages up to the event `last`, for a follower that starts after it.
    pub(crate) fn so_far<T: Frames<Native>>(&self, assembler: &Assembler, last: &Event, out: &mut T) {
        for (message, open) in self.spoken.open() {
            let begin = Place { sequence: open.first.0, at: open.at, turn: last.turn, message };
            self.start(begin, None, out);
            let said = assembler.complete(message, MessageOutcome::Interrupted);
            let text = said.map(|said| said.text()).unwrap_or_default();
            self.chunk(Place::of(last, message), &text, out);
        }
    }

    fn user<T: Frames<Native>>(&self, event: &Event, content: &str, out: &mut T) {
        let agent = self.agent.into();
        let payload = MessageNew {
            agent_id: agent,
            sequence: event.sequence.0,
            session_id: agent,
            message_id: IdText(event_id(self.agent, event)),
            role: "user",
            content: content.into(),
            timestamp: IsoTime(event.at),
        };
        tell(out, event.at, agent, "message.new", payload);
    }

    fn delta<T: Frames<Native>>(&mut self, event: &Event, message: MessageOrdinal, text: &str, out: &mut T) {
        let place = Place::of(event, message);
        match self.spoken.delta(event, message, text.len()) {
            Step::Begins => self.start(place, None, out),
            Step::GoesOn => {}
            Step::Orphan => return,
        }
        self.chunk(place, text, out);
    }

    fn complete<T: Frames<Native>>(&mut self, event: &Event, complete: &CompleteMessage, out: &mut T) {
        let (place, text) = (Place::of(event, complete.message), complete.text());
        let parent = complete.parent_call.as_deref();
        let (step, rest) = self.spoken.end(complete.message, &text);
        match step {
            Step::Begins => self.start(place, parent, out),
            Step::GoesOn => {}
            Step::Orphan => return,
        }
        self.chunk(place, rest, out);
        let outcome = match complete.outcome {
            MessageOutcome::Complete => None,
            outcome => Some(outcome.as_str()),
        };
        self.end(place, &text, outcome, parent, out);
    }

    fn start<T: Frames<Native>>(&self, place: Place, parent: Option<&str>, out: &mut T) {
        let agent = self.agent.into();
        let payload = MessageStart {
            agent_id: agent,
            sequence: place.sequence,
            session_id: agent,
            message_id: self.id(place),
            role: "agent",
            parent_tool_call_id: parent,
            timestamp: IsoTime(place.at),
        };
        tell(out, place.at, agent, "message.start", payload);
    }

    fn chunk<T: Frames<Native>>(&self, place: Place, text: &str, out: &mut T) {
        if text.is_empty() {
            return;
        }
        let Place { sequence, at, turn, message } = place;
        out.frame(NativeFrame::Text(SpokenText {
            agent: self.agent,
            turn,
            message,
            sequence,
            at,
            text,
            frame: TextFrame::Chunk,
        }));
    }

    fn end<T: Frames<Native>>(
        &self,
        place: Place,
        text: &str,
        outcome: Option<&'static str>,
        parent: Option<&str>,
        out: &mut T,
    ) {
        let agent_id = self.agent.into();
        let payload = MessageEnd {
            agent_id,
            sequence: place.sequence,
            message_id: self.id(place),
            content: text.into(),
            is_complete: outcome.is_none(),
            outcome,
            parent_tool_call_id: parent,
            timestamp: IsoTime(place.at),
        };
        tell(out, place.at, agent_id, "message.end", payload);
    }

    fn id(&self, place: Place) -> IdText {
        IdText(message_id(self.agent, place.turn, place.message))
    }
}

impl Fold for MessageFold {
    type Vocabulary = Native;

    fn shared(&self, form: u8) -> Option<RenderingKey> {
        Some(RenderingKey::of::<Self>([0, form]))
    }

    fn event<T: Frames<Native>>(&mut self, event: &Event, out: &mut T) {
        match &event.body {
            EventBody::UserMessage { content, images: _ } => self.user(event, content, out),
            EventBody::TextDelta { message, text, .. } => self.delta(event, *message, text, out),
            EventBody::ReasoningDelta { message, .. } | EventBody::ToolInputDelta { message, .. } => {
                self.delta(event, *message, "", out);
            }
            EventBody::Message(complete) => self.complete(event, complete, out),
            EventBody::Abandoned { message } => {
                if self.spoken.abandon(*message) {
                    // The text of the message is void, so its end has no text.
                    self.end(Place::of(event, *message), "", Some(ABANDONED), None, out);
                }
            }
            EventBody::TurnResult(_) => self.spoken.clear(),
            EventBody::ToolCall(_)
            | EventBody::ToolResult(_)
            | EventBody::Usage(_)
            | EventBody::Notice(_)
            | EventBody::Error(_) => {}
        }
    }
}
