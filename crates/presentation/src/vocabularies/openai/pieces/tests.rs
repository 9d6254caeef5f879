//! Texts that are read again, in pages of any length, and what a client that takes nothing holds meanwhile.

use serde_json::{Value, json};
use tokenrail_domain::{EventBody, MessageOrdinal, Part, TurnOutcome};
use tokenrail_ports::testing::samples::{self, Scribe, text_delta};

use super::*;
use crate::fold::Fold as _;
use crate::vocabularies::openai::chunks::Chunks;
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::openai::unsent_writer::UnsentWriter;
use crate::vocabularies::openai::writer::Writer;

/// The events of a page.
const PAGE: usize = 64;
const DELTA_BYTES: usize = 300;
const DELTAS: usize = 20_000;

impl Pieces {
    /// Everything, with texts from these events, which are read in small pages.
    pub(crate) fn filled(&mut self, events: &[Event]) -> String {
        self.filled_by(events, 2)
    }

    /// The same, with pages of this many events.
    pub(crate) fn filled_by(&mut self, events: &[Event], page: usize) -> String {
        let mut taken = Vec::new();
        while let Some(piece) = self.taken(events, page) {
            taken.extend_from_slice(&piece);
        }
        String::from_utf8(taken).unwrap()
    }

    /// The next piece.
    fn taken(&mut self, events: &[Event], page: usize) -> Option<Bytes> {
        while let Some(wanted) = self.advance() {
            let begin = (wanted.0 - events[0].sequence.0) as usize;
            self.read(&events[begin..events.len().min(begin.saturating_add(page))]);
        }
        Some(self.take()).filter(|piece| !piece.is_empty())
    }

    /// The bytes that it holds.
    fn held(&self) -> usize {
        let rest = self.rest.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.capacity(),
            Piece::Text(_) | Piece::List { .. } => size_of::<Piece>(),
        });
        self.ready.capacity() + rest.sum::<usize>() + self.blocks.len()
    }
}

/// A turn that says, thinks and does much: each a few megabytes.
fn long_turn() -> Vec<Event> {
    let (agent, turn) = samples::launch(7);
    let mut scribe = Scribe::new(&agent);
    let mut events = scribe.start(&turn).events.to_vec();
    let text = "\"é\n".repeat(DELTA_BYTES / 4);
    let (message, part) = (MessageOrdinal(1), Part(0));
    let mut said = vec![text_delta(0, &text); DELTAS];
    said.extend(vec![EventBody::ReasoningDelta { message, part, text: text.clone() }; DELTAS]);
    let fragment = |index: usize| EventBody::ToolInputDelta {
        message: MessageOrdinal(1),
        part: Part(1),
        call: "call_1".into(),
        tool: (index == 0).then(|| "Bash".into()),
        fragment: text.clone(),
    };
    said.extend((0..DELTAS).map(fragment));
    events.extend_from_slice(&scribe.say(said).events);
    events.extend_from_slice(&scribe.end_with(samples::result(TurnOutcome::Completed)).events);
    events
}

/// Streams a turn to a client that may stop anywhere. Returns what it takes, and the most that it held.
fn streamed(events: &[Event], mut out: impl Writer) -> (Vec<u8>, usize) {
    let (agent, turn) = samples::launch(7);
    let mut fold = ResponsesFold::new(&agent, &turn, 0);
    let (mut taken, mut most) = (Vec::new(), 0);
    fold.open(&mut out);
    for page in events.chunks(PAGE) {
        for event in page {
            fold.event(event, &mut out);
        }
        while !out.unsent().is_taken() {
            most = most.max(out.unsent_mut().out.held());
            let piece = out.unsent_mut().out.taken(events, PAGE).unwrap();
            most = most.max(out.unsent_mut().out.held() + piece.len());
            taken.extend_from_slice(&piece);
        }
    }
    (taken, most)
}

#[test]
fn a_client_that_stops_anywhere_in_a_long_turn_holds_a_page() {
    let events = long_turn();
    let (agent, turn) = samples::launch(7);
    let id = ResponseId { agent: agent.id, turn: turn.number };
    let text = DELTAS * "\"é\n".len() * (DELTA_BYTES / 4);
    // Two chunks, and the frames of a page.
    let bound = 2 * CHUNK_BYTES + PAGE * 4 * DELTA_BYTES;
    for (writes_chunks, from, repeats) in [(false, 0, 4), (true, 0, 1), (false, u64::MAX, 0)] {
        let (taken, most) = if writes_chunks {
            streamed(&events, Chunks::new(id, from, false))
        } else {
            streamed(&events, UnsentWriter::new(from))
        };
        assert!(most < bound && bound < text, "{most} bytes are held, and {bound} are allowed");
        assert!(repeats * text < taken.len() || repeats == 0, "{} bytes are taken", taken.len());
    }
    let (taken, _) = streamed(&events, UnsentWriter::new(0));
    let blocks = String::from_utf8(taken).unwrap();
    let last: Value = serde_json::from_str(blocks.trim_end().rsplit_once("data: ").unwrap().1).unwrap();
    assert_eq!(last["type"], "response.completed");
    let whole = "\"é\n".repeat(DELTA_BYTES / 4).repeat(DELTAS);
    let output = &last["response"]["output"];
    assert_eq!(output.as_array().map(Vec::len), Some(3));
    assert!(output[0]["content"][0]["text"] == json!(whole), "what was said");
    assert!(output[1]["summary"][0]["text"] == json!(whole), "what was thought");
    assert!(output[2]["arguments"] == json!(whole), "what was done");
}

#[test]
fn a_document_of_a_long_turn_is_written_piece_by_piece() {
    let events = long_turn();
    let (agent, turn) = samples::launch(7);
    let mut fold = ResponsesFold::new(&agent, &turn, 0);
    for event in &events {
        fold.event(event, &mut crate::fold::Silence);
    }
    let mut document = Pieces::document(fold.response(), fold.items());
    let (mut taken, mut most) = (0, 0);
    while let Some(piece) = document.taken(&events, PAGE) {
        taken += piece.len();
        most = most.max(document.held() + piece.len());
    }
    assert!(3 * DELTAS * DELTA_BYTES < taken, "{taken} bytes are taken");
    assert!(most < 2 * CHUNK_BYTES, "{most} bytes are held");
}
