//! Throttles text: it joins text that arrives in quick succession, and limits the bytes that are sent at once.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

use crate::vocabularies::native::ws::wishes::Pace;
use crate::vocabularies::native::{Piece, TextPiece};

/// Waiting text of the dialect `stream`, and the frames that must not overtake it.
pub(crate) struct Throttle {
    pace: Pace,
    waiting: VecDeque<Piece>,
    text_bytes: usize,
    frame_bytes: usize,
    due: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, waiting: VecDeque::new(), text_bytes: 0, frame_bytes: 0, due: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether as much text waits as may be sent at once.
    pub(crate) fn is_full(&self) -> bool {
        self.pace.bytes <= self.text_bytes
    }

    /// Bytes of the frames that wait behind text.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// When the next text is sent.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Adds text, which waits. It is joined to the preceding text of the same message, up to the number of bytes that
    /// may be sent at once.
    pub(crate) fn text(&mut self, text: TextPiece) {
        self.text_bytes += text.text.len();
        self.due.get_or_insert_with(|| Instant::now() + self.pace.wait);
        let rest = match self.waiting.back_mut() {
            Some(Piece::Text(last)) if last.text.len() + text.text.len() <= self.pace.bytes => {
                last.join(text)
            }
            _ => Some(text),
        };
        self.waiting.extend(rest.map(Piece::Text));
    }

    /// Adds frames that must not overtake the text.
    pub(crate) fn frames(&mut self, frames: Bytes) {
        self.frame_bytes += frames.len();
        self.waiting.push_back(Piece::Frames(frames));
    }

    /// Returns the frames to send now: as much text as may be sent at once, and the frames between.
    pub(crate) fn let_out(&mut self) -> Vec<Bytes> {
        self.due = None;
        let (mut out, mut room) = (Vec::new(), self.pace.bytes);
        while let Some(piece) = self.waiting.pop_front() {
            match piece {
                Piece::Frames(frames) => {
                    self.frame_bytes -= frames.len();
                    out.push(frames);
                }
                Piece::Text(text) if text.text.len() <= room => {
                    room -= text.text.len();
                    self.text_bytes -= text.text.len();
                    out.push(text.into_frame());
                }
                Piece::Text(mut text) => {
                    if room == self.pace.bytes {
                        // The text of a single event is longer than what may be sent at once, so split it.
                        let bytes = text.text.floor_char_boundary(room);
                        self.text_bytes -= bytes;
                        out.push(text.split(bytes));
                    }
                    self.waiting.push_front(Piece::Text(text));
                    self.due = Some(Instant::now() + self.pace.wait);
                    break;
                }
            }
        }
        out
    }

    /// Returns all that waits.
    pub(crate) fn let_all_out(&mut self) -> Vec<Bytes> {
        self.due = None;
        (self.text_bytes, self.frame_bytes) = (0, 0);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let frames = waiting.map(|piece| match piece {
            Piece::Frames(frames) => frames,
            Piece::Text(text) => text.into_frame(),
        });
        frames.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;
    use tokenrail_domain::{Event, EventBody, Sequence, TurnNumber};
    use tokenrail_ports::testing::samples;

    use super::*;
    use crate::fold::Fold as _;
    use crate::frames::payloads;
    use crate::vocabularies::native::{Detail, Dialect, DialectFold};

    fn throttle(texts: &[(u32, &str)]) -> Throttle {
        let (agent, _) = samples::launch(1);
        let mut fold = DialectFold::new(Dialect::Stream, agent.id, Detail::Plain);
        let mut pieces = Vec::new();
        for (index, (message, text)) in texts.iter().enumerate() {
            let body: EventBody = samples::text_delta(*message, text);
            let sequence = Sequence(index as u64 + 1);
            let (at, turn) = (samples::LAUNCHED_AT, TurnNumber::FIRST);
            fold.event(&Event { sequence, at, turn, body, raw: None }, &mut pieces);
        }
        let mut throttle = Throttle::new(Pace { wait: Duration::from_millis(4), bytes: 16 });
        for piece in pieces {
            match piece {
                Piece::Text(text) => throttle.text(text),
                Piece::Frames(frames) => throttle.frames(frames),
            }
        }
        throttle
    }

    fn payload_list(frames: &[Bytes]) -> Vec<(String, u64, bool)> {
        let frames = frames.iter().flat_map(|frames| payloads(frames));
        frames
            .map(|json| {
                let frame: Value = serde_json::from_slice(json).unwrap();
                let payload = &frame["payload"];
                let text = payload["text"].as_str().unwrap_or("frame").to_owned();
                (text, payload["sequence"].as_u64().unwrap_or(0), payload["more"] == true)
            })
            .collect()
    }

    #[test]
    fn what_comes_in_quick_succession_is_one_frame_with_the_newest_number() {
        let mut throttle = throttle(&[(0, "a"), (0, "b"), (0, "c"), (1, "d")]);
        assert!(throttle.due().is_some() && !throttle.is_full());
        let out = payload_list(&throttle.let_out());
        assert_eq!(out, [("abc".to_owned(), 3, false), ("d".to_owned(), 4, false)]);
        assert!(throttle.due().is_none() && throttle.is_empty());
    }

    #[test]
    fn no_more_goes_at_once_than_was_asked_for_and_nothing_overtakes_it() {
        let long = "0123456789🦀🦀abcd";
        let mut throttle = throttle(&[(0, "0123456789"), (0, "abcdefg"), (0, long)]);
        throttle.frames(crate::frames::json(&serde_json::json!({"payload": {}})));
        assert!(throttle.is_full());
        let mut rounds = Vec::new();
        while !throttle.is_empty() {
            assert!(throttle.due().is_some());
            rounds.push(payload_list(&throttle.let_out()));
        }
        let round = |text: &str, sequence, more| vec![(text.to_owned(), sequence, more)];
        assert_eq!(
            rounds[..3],
            [
                round("0123456789", 1, false),
                round("abcdefg", 2, false),
                // Not in the middle of a character.
                round("0123456789🦀", 3, true),
            ]
        );
        assert_eq!(rounds[3], [round("🦀abcd", 3, false), round("frame", 0, false)].concat());
        assert_eq!((rounds.len(), throttle.text_bytes, throttle.frame_bytes), (4, 0, 0));
    }
}
