//! One event stream for two vocabularies: Letta's frames have no name and Kelpie's all have one, and the clients of
//! each overlook what is not theirs.

use tokenrail_domain::{AgentId, Event, EventBody, Sequence, TurnNumber};

use super::blocks::BlockWriter;
use super::kelpie::KelpieFold;
use super::letta::{LettaFold, LettaFrame};
use crate::dto::letta::ErrorMessage;

/// Whose frames a stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LettaFormat {
    Letta,
    Kelpie,
    Both,
}

impl LettaFormat {
    /// The format of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "letta" => Some(Self::Letta),
            "kelpie" => Some(Self::Kelpie),
            "both" => Some(Self::Both),
            _ => None,
        }
    }
}

/// The stream of one turn.
pub(crate) struct LettaStreamFold {
    letta: LettaFold,
    kelpie: KelpieFold,
    format: LettaFormat,
    frames: Vec<LettaFrame>,
}

impl LettaStreamFold {
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, format: LettaFormat, tokens: bool) -> Self {
        let letta = LettaFold::new(agent, turn, tokens);
        Self { letta, kelpie: KelpieFold::new(agent), format, frames: Vec::new() }
    }

    /// The id of the run.
    pub(crate) fn run(&self) -> &str {
        self.letta.run()
    }

    /// Takes in the next event of the turn. What it says is appended where the event comes after `after`.
    pub(crate) fn event(&mut self, event: &Event, after: Sequence, out: &mut BlockWriter) {
        let mut named = BlockWriter::default();
        self.letta.event(event, &mut self.frames);
        self.kelpie.event(event, &mut named);
        let ends = matches!(event.body, EventBody::TurnResult(_));
        let mut failed = false;
        for frame in self.frames.drain(..) {
            if event.sequence <= after || self.format == LettaFormat::Kelpie {
                continue;
            }
            match frame {
                LettaFrame::Message(message) => out.unnamed(&message),
                LettaFrame::Stop(stop) => out.unnamed(&stop),
                LettaFrame::Usage(usage) => out.unnamed(&usage),
                LettaFrame::Error { kind, message, detail } => {
                    failed = true;
                    let run_id = self.letta.run();
                    out.named("error", None, &ErrorMessage::new(run_id, &kind, &message, detail.as_deref()));
                }
            }
        }
        // Both have the same name for a failure: one frame says it to both.
        if after < event.sequence && self.format != LettaFormat::Letta && !failed {
            out.append(&mut named);
        }
        if ends {
            out.done();
        }
    }
}

#[cfg(test)]
mod tests;
