//! One message that comes in pieces.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use tokenrail_domain::{
    ContentBlock, EventBody, JsonText, MessageOrdinal, MessageOutcome, Part, Said, ToolCall,
};

use crate::text::SurrogateJoiner;
use crate::voice::Voice;

/// One message that comes in pieces: what it has said, and which of its blocks came whole as well.
///
/// The agent's whole blocks are the truth; the pieces only show it early. What the pieces lack is said when the
/// whole block comes. Where they said what the block does not have, or where only some of the blocks are void,
/// the pieces cannot be corrected: the message is abandoned and its good blocks are said again, whole.
#[derive(Debug, Default)]
pub(crate) struct OpenMessage {
    id: Option<String>,
    /// It was cut short: how it ends, whatever its whole blocks say.
    pub(crate) cut: Option<MessageOutcome>,
    ordinal: Option<MessageOrdinal>,
    parts: BTreeMap<u32, OpenPart>,
    /// The parts that no whole block has repeated yet.
    unrepeated: BTreeSet<(Piece, u32)>,
    /// A whole block was not what its pieces had said.
    diverged: bool,
}

/// What a part is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    Text,
    Reasoning,
    ToolInput,
    /// Of something that is not shown in pieces.
    Other,
}

#[derive(Debug)]
struct OpenPart {
    piece: Piece,
    /// Text, or fragments of tool input, so far.
    said: String,
    /// Whether any event has shown it.
    shown: bool,
    repeated: bool,
    joiner: SurrogateJoiner,
    /// As it began, or as it was repeated: of text and reasoning, only where that is not what was said.
    whole: Option<ContentBlock>,
}

impl OpenMessage {
    pub(crate) fn new(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    /// Whether a line about message `id` is about this one. Where one of them has no id, it is.
    pub(crate) fn is_of(&self, id: Option<&str>) -> bool {
        match (self.id.as_deref(), id) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        }
    }

    /// Whether it has shown something that no whole block has repeated.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.unrepeated.iter().any(|(_, index)| self.parts.get(index).is_some_and(|part| part.shown))
    }

    pub(crate) fn awaits_repetition(&self) -> bool {
        !self.unrepeated.is_empty()
    }

    /// The text so far.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.values().filter(|part| part.piece == Piece::Text);
        texts.map(|part| part.whole.as_ref().and_then(ContentBlock::as_text).unwrap_or(&part.said)).collect()
    }

    /// A block begins.
    pub(crate) fn start(&mut self, index: u32, block: ContentBlock) {
        if self.parts.contains_key(&index) {
            return;
        }
        let part = self.part(index, Piece::of(&block));
        if matches!(block, ContentBlock::ToolUse { .. } | ContentBlock::Other(_)) {
            part.whole = Some(block);
        }
    }

    /// A piece of a block comes: `raw` is a JSON string.
    pub(crate) fn say(&mut self, index: u32, piece: Piece, raw: &str, voice: &mut Voice<'_>) {
        let part = self.part(index, piece);
        // A block that was repeated is complete, and a piece of another kind makes no sense.
        if part.repeated || part.piece != piece {
            return;
        }
        let Some(text) = part.joiner.push(raw) else { return };
        // The first piece of a tool's input is always empty, and shows which tool it is.
        if !text.is_empty() || (piece == Piece::ToolInput && !part.shown) {
            let text = text.into_owned();
            self.show(index, text, voice);
        }
    }

    /// A block ends.
    pub(crate) fn stop(&mut self, index: u32, voice: &mut Voice<'_>) {
        let lone = self.parts.get_mut(&index).and_then(|part| part.joiner.finish());
        if let Some(lone) = lone {
            self.show(index, lone.to_string(), voice);
        }
    }

    /// Ends all blocks.
    pub(crate) fn flush(&mut self, voice: &mut Voice<'_>) {
        let unrepeated: Vec<u32> = self.unrepeated.iter().map(|(_, index)| *index).collect();
        for index in unrepeated {
            self.stop(index, voice);
        }
    }

    /// A whole block comes that repeats a part.
    pub(crate) fn repeat(&mut self, block: ContentBlock, voice: &mut Voice<'_>) {
        let index = self.repeated_part(&block);
        self.repeat_part(index, block, voice);
    }

    /// A whole block comes that repeats this part; where it was repeated before, that stands.
    pub(crate) fn repeat_part(&mut self, index: u32, block: ContentBlock, voice: &mut Voice<'_>) {
        let piece = Piece::of(&block);
        let part = self.part(index, piece);
        if part.repeated || part.piece != piece {
            return;
        }
        part.repeated = true;
        part.joiner = SurrogateJoiner::default();
        self.unrepeated.remove(&(piece, index));
        let (ContentBlock::Text(text) | ContentBlock::Reasoning(text)) = &block else {
            self.part(index, piece).whole = Some(block);
            return;
        };
        match text.strip_prefix(&self.part(index, piece).said) {
            Some("") => {}
            Some(missing) => {
                let missing = missing.to_owned();
                self.show(index, missing, voice);
            }
            None => {
                self.diverged = true;
                self.part(index, piece).whole = Some(block);
            }
        }
    }

    /// Whether nothing was said of a part.
    pub(crate) fn has_said_nothing(&self, index: u32) -> bool {
        self.parts.get(&index).is_none_or(|part| part.said.is_empty() && !part.repeated)
    }

    /// All of a tool call's input has come in pieces: gives the call, once.
    pub(crate) fn complete_call(&mut self, index: u32, voice: &mut Voice<'_>) -> Option<ToolCall> {
        self.stop(index, voice);
        let part = self.parts.get_mut(&index).filter(|part| !part.repeated)?;
        let Some(ContentBlock::ToolUse { call, tool, input }) = &mut part.whole else { return None };
        if !part.said.trim().is_empty() {
            // A call that began with a text takes free text, also where that reads as JSON.
            let json = Some(&part.said).filter(|_| !input.as_str().starts_with('"'));
            *input = match json.map(|json| serde_json::from_str::<&RawValue>(json)) {
                Some(Ok(read)) => JsonText::new_unchecked(read.get()),
                // Free text, or a call that was cut short.
                _ => JsonText::string(&part.said),
            };
        }
        let whole =
            ToolCall { call: call.clone(), tool: tool.clone(), input: input.clone(), parent_call: None };
        part.repeated = true;
        self.unrepeated.remove(&(Piece::ToolInput, index));
        Some(whole)
    }

    /// Whether a block that comes late repeats a part; each part is repeated once.
    pub(crate) fn has_said(&mut self, block: &ContentBlock) -> bool {
        let piece = Piece::of(block);
        let found = self.unrepeated_parts(piece).find(|(_, part)| part.block().as_ref() == Some(block));
        let by_call = || self.unrepeated_parts(piece).find(|(_, part)| part.is_call_of(block));
        let Some(index) = found.or_else(by_call).map(|(index, _)| index) else { return false };
        self.unrepeated.remove(&(piece, index));
        true
    }

    /// The message ends. The parts from `abandoned` on that were not repeated whole are void.
    pub(crate) fn finish(&mut self, abandoned: Option<u32>, voice: &mut Voice<'_>) {
        let is_void =
            |index: u32, part: &OpenPart| !part.repeated && abandoned.is_some_and(|from| from <= index);
        let any_shown_is_void = self.parts.iter().any(|(index, part)| part.shown && is_void(*index, part));
        self.parts.retain(|index, part| !is_void(*index, part));
        self.unrepeated.retain(|(_, index)| self.parts.contains_key(index));
        self.flush(voice);
        let outcome = self.cut.unwrap_or(MessageOutcome::Complete);
        let blocks = |shown_too: bool| {
            let parts = self.parts.iter().filter(move |(_, part)| shown_too || !part.shown);
            parts.filter_map(|(index, part)| Some((Part(*index), part.block()?)))
        };
        match self.ordinal {
            Some(message) if !any_shown_is_void && !self.diverged => {
                voice.said.push(Said::End { message, outcome, rest: blocks(false).collect() });
            }
            ordinal => {
                if let Some(message) = ordinal {
                    voice.event(EventBody::Abandoned { message });
                }
                voice.whole(blocks(true).map(|(_, block)| block).collect(), outcome, None);
            }
        }
    }

    /// Says one piece, and opens message and part where it is their first.
    fn show(&mut self, index: u32, text: String, voice: &mut Voice<'_>) {
        let Some(part) = self.parts.get_mut(&index) else { return };
        let message = *self.ordinal.get_or_insert_with(|| voice.ordinal());
        let first = !std::mem::replace(&mut part.shown, true);
        part.said.push_str(&text);
        let (part_number, piece) = (Part(index), part.piece);
        voice.event(match piece {
            Piece::Text | Piece::Other => EventBody::TextDelta { message, part: part_number, text },
            Piece::Reasoning => EventBody::ReasoningDelta { message, part: part_number, text },
            Piece::ToolInput => {
                let (call, tool) = part.tool();
                let tool = first.then(|| tool.to_owned());
                let call = call.to_owned();
                EventBody::ToolInputDelta { message, part: part_number, call, tool, fragment: text }
            }
        });
    }

    fn part(&mut self, index: u32, piece: Piece) -> &mut OpenPart {
        self.parts.entry(index).or_insert_with(|| {
            self.unrepeated.insert((piece, index));
            OpenPart {
                piece,
                said: String::new(),
                shown: false,
                repeated: false,
                joiner: SurrogateJoiner::default(),
                whole: (piece == Piece::ToolInput).then(nameless_call),
            }
        })
    }

    /// The part that a whole block repeats: blocks are repeated in order, without their index. A block that did
    /// not come in pieces gets a place of its own.
    fn repeated_part(&self, block: &ContentBlock) -> u32 {
        let piece = Piece::of(block);
        let same_call = self.unrepeated_parts(piece).find(|(_, part)| part.is_call_of(block));
        let first = || self.unrepeated_parts(piece).next().filter(|_| piece != Piece::ToolInput);
        let next = || self.parts.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        same_call.or_else(first).map_or_else(next, |(index, _)| index)
    }

    fn unrepeated_parts(&self, piece: Piece) -> impl Iterator<Item = (u32, &OpenPart)> {
        self.unrepeated
            .range((piece, 0)..=(piece, u32::MAX))
            .filter_map(|(_, index)| Some((*index, self.parts.get(index)?)))
    }
}

impl Piece {
    fn of(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::Text(_) => Self::Text,
            ContentBlock::Reasoning(_) => Self::Reasoning,
            ContentBlock::ToolUse { .. } => Self::ToolInput,
            ContentBlock::Other(_) => Self::Other,
        }
    }
}

/// A tool call of which only the input is known.
fn nameless_call() -> ContentBlock {
    ContentBlock::ToolUse { call: String::new(), tool: String::new(), input: JsonText::new_unchecked("{}") }
}

impl OpenPart {
    /// The part as a block of a complete message; none where there is nothing in it.
    fn block(&self) -> Option<ContentBlock> {
        match &self.whole {
            Some(ContentBlock::ToolUse { call, tool, .. }) if self.shown && !self.repeated => {
                Some(ContentBlock::ToolUse {
                    call: call.clone(),
                    tool: tool.clone(),
                    input: JsonText::string(&self.said),
                })
            }
            Some(whole) => Some(whole.clone()),
            None if self.said.is_empty() => None,
            None if self.piece == Piece::Reasoning => Some(ContentBlock::Reasoning(self.said.clone())),
            None => Some(ContentBlock::Text(self.said.clone())),
        }
    }

    fn tool(&self) -> (&str, &str) {
        match &self.whole {
            Some(ContentBlock::ToolUse { call, tool, .. }) => (call, tool),
            _ => ("", ""),
        }
    }

    fn is_call_of(&self, block: &ContentBlock) -> bool {
        match block {
            ContentBlock::ToolUse { call, .. } => self.tool().0 == call,
            _ => false,
        }
    }
}
