//! The stream of a run. Letta's frames have no name, except `error`. The stream can also carry a guest: another
//! vocabulary whose frames all have a name. The clients of each vocabulary ignore the frames of the other one.

use std::fmt;

use tokenrail_domain::{AgentId, Event, EventBody, Sequence, TurnNumber};

use super::dto::ErrorMessage;
use super::fold::{LettaFold, LettaFrame};
use crate::blocks::{BlockFold, BlockWriter};
use crate::fold::{Fold, Frames, Vocabulary};

/// A second vocabulary that the streams of these routes can carry.
#[derive(Clone, Copy)]
pub(crate) struct Guest {
    /// The name with which a client selects it.
    pub(crate) name: &'static str,
    /// Creates the fold of a turn.
    pub(crate) blocks: fn(AgentId) -> Box<dyn BlockFold>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guest").field(&self.name).finish()
    }
}

/// The vocabularies that a stream carries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Voices {
    letta: bool,
    guest: Option<Guest>,
}

impl Voices {
    /// Only Letta's frames.
    pub(crate) const LETTA: Self = Self { letta: true, guest: None };

    /// Letta's frames and the guest's.
    pub(crate) fn both(guest: Guest) -> Self {
        Self { letta: true, guest: Some(guest) }
    }

    /// The vocabularies with this name. `None` if the name is unknown.
    pub(crate) fn from_name(name: &str, guest: Guest) -> Option<Self> {
        match name {
            "letta" => Some(Self::LETTA),
            "both" => Some(Self::both(guest)),
            name if name == guest.name => Some(Self { letta: false, guest: Some(guest) }),
            _ => None,
        }
    }
}

/// The vocabulary of a run's stream.
#[derive(Debug)]
pub(crate) enum RunStream {}

impl Vocabulary for RunStream {
    type Frame<'f> = RunFrame<'f>;
}

/// A frame of a run's stream.
pub(crate) enum RunFrame<'f> {
    Letta {
        run: &'f str,
        frame: LettaFrame,
    },
    /// The guest's blocks for one event.
    Guest(BlockWriter),
    /// The end of the stream.
    Done,
}

/// The fold of one run's stream.
pub(crate) struct RunStreamFold {
    letta: LettaFold,
    guest: Option<Box<dyn BlockFold>>,
    /// Whether the client wants Letta's frames.
    tells_letta: bool,
    /// The client already has the events up to this one.
    after: Sequence,
    frames: Vec<LettaFrame>,
}

impl RunStreamFold {
    /// Creates the fold of a turn. It takes in the events up to `after`, but does not send their frames.
    pub(crate) fn new(
        agent: AgentId,
        turn: TurnNumber,
        voices: Voices,
        tokens: bool,
        after: Sequence,
    ) -> Self {
        let Voices { letta: tells_letta, guest } = voices;
        let guest = guest.map(|guest| (guest.blocks)(agent));
        let letta = LettaFold::new(agent, turn, tokens);
        Self { letta, guest, tells_letta, after, frames: Vec::new() }
    }

    /// The id of the run.
    pub(crate) fn run(&self) -> &str {
        self.letta.run()
    }
}

impl Fold for RunStreamFold {
    type Vocabulary = RunStream;

    fn event<T: Frames<RunStream>>(&mut self, event: &Event, out: &mut T) {
        let Self { letta, guest, tells_letta, after, frames } = self;
        let is_new = *after < event.sequence;
        letta.event(event, frames);
        let mut has_failed = false;
        for frame in frames.drain(..) {
            if is_new && *tells_letta {
                has_failed |= matches!(frame, LettaFrame::Error { .. });
                out.frame(RunFrame::Letta { run: letta.run(), frame });
            }
        }
        if let Some(guest) = guest {
            let mut named = BlockWriter::default();
            guest.blocks(event, &mut named);
            // Both vocabularies name a failure `error`, so one frame reports it to the clients of both.
            if is_new && !has_failed {
                out.frame(RunFrame::Guest(named));
            }
        }
        if matches!(event.body, EventBody::TurnResult(_)) {
            out.frame(RunFrame::Done);
        }
    }
}

impl Frames<RunStream> for BlockWriter {
    fn frame(&mut self, frame: RunFrame<'_>) {
        match frame {
            RunFrame::Letta { frame: LettaFrame::Message(message), .. } => self.unnamed(&message),
            RunFrame::Letta { frame: LettaFrame::Stop(stop), .. } => self.unnamed(&stop),
            RunFrame::Letta { frame: LettaFrame::Usage(usage), .. } => self.unnamed(&usage),
            RunFrame::Letta { run, frame: LettaFrame::Error { kind, message, detail } } => {
                self.named("error", None, &ErrorMessage::new(run, &kind, &message, detail.as_deref()));
            }
            RunFrame::Guest(mut named) => self.append(&mut named),
            RunFrame::Done => self.done(),
        }
    }
}

#[cfg(test)]
mod tests;
