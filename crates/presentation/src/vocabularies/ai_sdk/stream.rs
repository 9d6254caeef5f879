//! The chunks of one response, as they arrive.

use bytes::Bytes;
use tokenrail_domain::TurnState;

use super::chat::Answer;
use super::fold::AiSdkFold;
use super::writer::ChunkWriter;
use crate::api::Api;
use crate::error::Problem;
use crate::fold::Fold as _;
use crate::vocabularies::turns::turn_events::{TurnEvents, TurnNext, TurnPage};

/// The chunks of one response. Its turn may be queued, running or ended.
pub(crate) struct ChatStream {
    events: TurnEvents,
    fold: AiSdkFold,
    out: ChunkWriter,
}

impl ChatStream {
    /// Starts to read the turn. `out` decides which chunks are written, and in which form.
    pub(crate) async fn open(api: &Api, answer: &Answer, out: ChunkWriter) -> Result<Self, Problem> {
        let turn = &answer.turn;
        let events = TurnEvents::follow(api, turn.agent, turn).await?;
        Ok(Self { events, fold: AiSdkFold::new(turn.agent, turn.number, answer.version), out })
    }

    /// Returns the current number of chunks.
    ///
    /// # Errors
    /// [`Problem`] if the turn cannot be read.
    pub(crate) async fn count(api: &Api, answer: &Answer) -> Result<u64, Problem> {
        let turn = &answer.turn;
        let up_to = match (turn.state, turn.last_sequence) {
            (TurnState::Queued, _) => return Ok(0),
            (_, Some(last)) => last,
            // While the turn runs, the agent's newest event belongs to it.
            (_, None) => api.service().get(turn.agent).await?.head,
        };
        let mut all = Self::open(api, answer, ChunkWriter::lines(u64::MAX)).await?;
        while let TurnNext::Events(page) = all.events.next().await? {
            all.take_in(&page);
            if page.events().last().is_some_and(|last| up_to <= last.sequence) {
                break;
            }
        }
        Ok(all.out.count())
    }

    fn take_in(&mut self, page: &TurnPage) {
        for event in page.events() {
            self.fold.event(event, &mut self.out);
        }
    }

    /// Waits for more chunks. `None` after the last one. An error says why the stream ends before the turn does. May
    /// be dropped at any await.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, &'static str> {
        while let Some(page) = self.events.page().await? {
            self.take_in(&page);
            let bytes = self.out.take();
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}
