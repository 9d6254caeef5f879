//! The dialects of the native WebSocket, of which the client chooses one, and all of them as one fold.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`agent`], [`message`], [`stream`] | the three dialects: one fold each |
//! | [`spoken`] | which messages of a turn are open, for the dialects `message` and `stream` |

pub(super) mod agent;
mod message;
mod spoken;
mod stream;

use tokenrail_application::RenderingKey;
use tokenrail_domain::{AgentId, Assembler, Event};

use self::agent::AgentFold;
use self::message::MessageFold;
use self::stream::StreamFold;
use super::native_frame::Native;
use super::{Detail, Dialect};
use crate::fold::{Begins, Fold, Frames};

/// The state of a dialect for one follower.
#[derive(Debug)]
pub(crate) enum DialectFold {
    Agent(AgentFold),
    Message(MessageFold),
    Stream(StreamFold),
}

impl DialectFold {
    /// Creates the fold of a dialect. Only the dialect `agent` uses `detail`.
    pub(crate) fn new(dialect: Dialect, agent: AgentId, detail: Detail) -> Self {
        match dialect {
            Dialect::Agent => Self::Agent(AgentFold::new(agent, detail)),
            Dialect::Message => Self::Message(MessageFold::new(agent)),
            Dialect::Stream => Self::Stream(StreamFold::new(agent)),
        }
    }

    /// The dialect `agent` for Socket.IO's clients.
    pub(crate) fn for_socket_io(agent: AgentId, detail: Detail) -> Self {
        Self::Agent(AgentFold::number_last(agent, detail))
    }

    /// Whether a follower that starts in the middle of a message gets the text before that point.
    pub(crate) fn tells_what_was_said(&self) -> bool {
        matches!(self, Self::Message(_))
    }

    /// Sends the text of the open messages up to the event `last`.
    pub(crate) fn so_far<T: Frames<Native>>(&self, open: &Assembler, last: &Event, out: &mut T) {
        if let Self::Message(fold) = self {
            fold.so_far(open, last, out);
        }
    }
}

impl Fold for DialectFold {
    type Vocabulary = Native;

    fn begins(&self) -> Begins {
        match self {
            Self::Agent(fold) => fold.begins(),
            Self::Message(fold) => fold.begins(),
            Self::Stream(fold) => fold.begins(),
        }
    }

    fn shared(&self, form: u8) -> Option<RenderingKey> {
        match self {
            Self::Agent(fold) => fold.shared(form),
            Self::Message(fold) => fold.shared(form),
            Self::Stream(fold) => fold.shared(form),
        }
    }

    fn event<T: Frames<Native>>(&mut self, event: &Event, out: &mut T) {
        match self {
            Self::Agent(fold) => fold.event(event, out),
            Self::Message(fold) => fold.event(event, out),
            Self::Stream(fold) => fold.event(event, out),
        }
    }

    fn deltas<T: Frames<Native>>(&mut self, run: &[Event], out: &mut T) {
        match self {
            Self::Agent(fold) => fold.deltas(run, out),
            Self::Message(fold) => fold.deltas(run, out),
            Self::Stream(fold) => fold.deltas(run, out),
        }
    }
}
