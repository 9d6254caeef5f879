//! Writes an agent as one file while it is read. Each turn and each event has a line of its own.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokenrail_application::{AgentService, Refusal, StoreError};
use tokenrail_domain::{Agent, Sequence, Turn, TurnImage, TurnNumber};

use crate::vocabularies::native::dto::archive::{ArchivedAgent, ArchivedEvent, ArchivedTurn, VERSION};

/// Number of turns that are read at once.
const TURNS: usize = 100;
/// A chunk of the file has at most this many bytes, and one turn or page of events. Turns with images are large.
const CHUNK_BYTES: usize = 1 << 20;

/// The part of a file that is still to be written.
pub(crate) struct Export {
    service: AgentService,
    agent: Agent,
    next: Section,
    /// Turns that were read, but not written.
    turns: VecDeque<Turn>,
    /// Whether a turn was written.
    has_turns: bool,
}

#[derive(Debug, Clone, Copy)]
enum Section {
    Agent,
    /// The turns after this one. With 0, the first turn is still to be written.
    Turns(TurnNumber),
    Events(Sequence),
    Done,
}

impl Export {
    /// The file of an agent up to its head, which must be the end of a turn.
    pub(crate) fn new(service: AgentService, agent: Agent) -> Self {
        Self { service, agent, next: Section::Agent, turns: VecDeque::new(), has_turns: false }
    }

    /// The bytes of the file, generated as the client reads them.
    pub(crate) fn bytes(self) -> impl Stream<Item = Result<Bytes, Refusal>> {
        stream::try_unfold(self, |mut export| async move {
            let bytes = export.next().await?;
            Ok(bytes.map(|bytes| (Bytes::from(bytes), export)))
        })
    }

    async fn next(&mut self) -> Result<Option<String>, Refusal> {
        match self.next {
            Section::Agent => {
                let agent = json(&ArchivedAgent::from(&self.agent));
                self.next = Section::Turns(TurnNumber::default());
                Ok(Some(format!("{{\"tokenrail\":{VERSION},\n\"agent\":{agent},\n\"turns\":[")))
            }
            Section::Turns(after) => self.turns(after).await.map(Some),
            Section::Events(after) => self.events(after).await.map(Some),
            Section::Done => Ok(None),
        }
    }

    async fn turns(&mut self, after: TurnNumber) -> Result<String, Refusal> {
        if self.turns.is_empty() {
            self.turns = self.service.turns(self.agent.id, after, TURNS).await?.into();
        }
        if self.turns.is_empty() {
            self.next = Section::Events(Sequence::START);
            return Ok("\n],\n\"events\":[".to_owned());
        }
        let mut lines = String::new();
        while let Some(turn) = self.turns.pop_front() {
            self.next = Section::Turns(turn.number);
            // Turns that ended after the export began are not in the file.
            if turn.last_sequence.is_none_or(|last| self.agent.head < last) {
                continue;
            }
            let images = self.images(&turn).await?;
            if let Some(turn) = ArchivedTurn::of(&turn, &images) {
                lines = separated(lines, !self.has_turns, &json(&turn));
                self.has_turns = true;
            }
            if CHUNK_BYTES <= lines.len() {
                break;
            }
        }
        // An empty chunk would end the response body early.
        Ok(if lines.is_empty() { "\n".to_owned() } else { lines })
    }

    /// The images of a turn. An image that is lost or corrupt must not keep the rest from being exported. The images of
    /// a replay are lost if its original was purged.
    async fn images(&self, turn: &Turn) -> Result<Vec<TurnImage>, Refusal> {
        let mut images = Vec::new();
        for (position, summary) in (0..).zip(&turn.images) {
            images.push(match self.service.prompt_image(self.agent.id, turn.number, position).await {
                Ok(image) => TurnImage::File(image),
                Err(Refusal::ImageUnknown | Refusal::Store(StoreError::Corrupt(_))) => {
                    tracing::warn!(agent = %self.agent.id, turn = %turn.number, position, "an export lacks an image");
                    TurnImage::Lost(*summary)
                }
                Err(refusal) => return Err(refusal),
            });
        }
        Ok(images)
    }

    async fn events(&mut self, after: Sequence) -> Result<String, Refusal> {
        if self.agent.head <= after {
            self.next = Section::Done;
            return Ok("\n]}\n".to_owned());
        }
        let (events, _) = self.service.events(self.agent.id, after, None).await?;
        let events = events.iter().take_while(|event| event.sequence <= self.agent.head);
        let mut out = String::new();
        let mut last = after;
        for event in events {
            last = event.sequence;
            out = separated(out, after == Sequence::START, &json(&ArchivedEvent::from(event)));
        }
        if last == after {
            // The agent was purged meanwhile. A truncated file must not look complete.
            return Err(Refusal::NotFound(self.agent.id));
        }
        self.next = Section::Events(last);
        Ok(out)
    }
}

/// Appends a line, after a comma unless it is the first. `begins` says that nothing was written before `out`.
fn separated(mut out: String, begins: bool, line: &str) -> String {
    out.push_str(if begins && out.is_empty() { "\n" } else { ",\n" });
    out.push_str(line);
    out
}

fn json(value: &impl Serialize) -> String {
    // Serializing could fail only for a map whose keys are not strings. There is none here.
    serde_json::to_string(value).unwrap_or_default()
}
