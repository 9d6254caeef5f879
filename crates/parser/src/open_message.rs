//! One message that arrives in pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;

use serde_json::value::RawValue;
use tokenrail_domain::{
    ContentBlock, EventBody, JsonText, MessageOrdinal, MessageOutcome, Part, Said, ToolCall,
};

use crate::emitter::Emitter;
use crate::text::SurrogateJoiner;

mod part;

use part::OpenPart;
pub(crate) use part::PartKind;

/// One message that arrives in pieces: what was emitted of it, and which of its blocks also arrived whole.
///
/// The agent's whole blocks are authoritative. The pieces only show the text early. When a whole block arrives, the
/// parser emits what its pieces lack. Pieces cannot be corrected. The message is abandoned and its valid blocks are
/// emitted again, whole, if the pieces contain something that the block does not, if only some of the blocks are void,
/// or if the pieces did not arrive in the order of the blocks: clients append text in the order in which it arrives.
#[derive(Debug, Default)]
pub(crate) struct OpenMessage {
    id: Option<String>,
    /// The outcome of a message that was cut, whatever its whole blocks contain.
    pub(crate) cut: Option<MessageOutcome>,
    ordinal: Option<MessageOrdinal>,
    /// By the agent's block number, except for moved parts.
    parts: BTreeMap<u32, OpenPart>,
    /// The latest part of each block that continued after a later block of the same kind had emitted a piece.
    moved: BTreeMap<u32, u32>,
    /// The parts that no whole block has repeated yet: by kind, block and number.
    unrepeated: BTreeSet<(PartKind, u32, u32)>,
    /// A whole block differed from its pieces.
    diverged: bool,
}

impl OpenMessage {
    pub(crate) fn new(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    /// Whether a line about message `id` concerns this message. If either has no id, it does.
    pub(crate) fn is_of(&self, id: Option<&str>) -> bool {
        match (self.id.as_deref(), id) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        }
    }

    /// Whether the message has shown something that no whole block has repeated.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.unrepeated.iter().any(|(.., number)| self.parts.get(number).is_some_and(|part| part.shown))
    }

    pub(crate) fn awaits_repetition(&self) -> bool {
        !self.unrepeated.is_empty()
    }

    /// The text so far, in the order of the agent's blocks.
    pub(crate) fn text(&self) -> String {
        let blocks = self.blocks();
        blocks.iter().filter_map(ContentBlock::as_text).collect()
    }

    /// A block begins.
    pub(crate) fn start(&mut self, index: u32, block: ContentBlock) {
        if self.parts.contains_key(&index) {
            return;
        }
        let part = self.part(index, index, PartKind::of(&block));
        if matches!(block, ContentBlock::ToolUse { .. } | ContentBlock::Other(_)) {
            part.whole = Some(block);
        }
    }

    /// A piece of a block arrives. `raw` is a JSON string.
    pub(crate) fn say(&mut self, index: u32, piece: PartKind, raw: &str, emitter: &mut Emitter<'_>) {
        let number = self.speaking(index, piece);
        let part = self.part(number, index, piece);
        // A repeated block is complete, and a piece of another kind is invalid.
        if part.repeated || part.piece != piece {
            return;
        }
        let Some(text) = part.joiner.push(raw) else { return };
        // The first piece of a tool's input is always empty. It is emitted, because it names the tool.
        if !text.is_empty() || (piece == PartKind::ToolInput && !part.shown) {
            let text = text.into_owned();
            self.show(number, text, emitter);
        }
    }

    /// The part that a piece of a block belongs to. It is a new part if a later part of the same kind has emitted a
    /// piece. The parts of a kind are thus emitted one after the other, even if the message is cut.
    fn speaking(&mut self, index: u32, piece: PartKind) -> u32 {
        let number = self.number(index);
        let is_of_other_kind =
            self.parts.get(&number).is_some_and(|part| part.piece != piece || part.repeated);
        let Some(later) =
            self.followed_by(number, piece).filter(|_| piece != PartKind::ToolInput && !is_of_other_kind)
        else {
            return number;
        };
        let Some(next) = (later..u32::MAX).find(|free| !self.parts.contains_key(free)) else { return number };
        // Half of a character may be waiting for its other half.
        let joiner = self.parts.get_mut(&number).map(|part| mem::take(&mut part.joiner));
        self.part(next, index, piece).joiner = joiner.unwrap_or_default();
        self.moved.insert(index, next);
        self.diverged = true;
        next
    }

    fn number(&self, index: u32) -> u32 {
        self.moved.get(&index).copied().unwrap_or(index)
    }

    /// The last part of the same kind after this one that has emitted a piece.
    fn followed_by(&self, number: u32, piece: PartKind) -> Option<u32> {
        let later = self.parts.range((Bound::Excluded(number), Bound::Unbounded));
        later.rev().find(|(_, part)| part.piece == piece && part.shown).map(|(later, _)| *later)
    }

    /// A block ends.
    pub(crate) fn stop(&mut self, index: u32, emitter: &mut Emitter<'_>) {
        self.end_part(self.number(index), emitter);
    }

    fn end_part(&mut self, number: u32, emitter: &mut Emitter<'_>) {
        let Some(part) = self.parts.get_mut(&number) else { return };
        let (block, piece) = (part.block, part.piece);
        if let Some(lone) = part.joiner.finish() {
            let number = self.speaking(block, piece);
            self.show(number, lone.to_string(), emitter);
        }
    }

    /// Ends all blocks.
    pub(crate) fn flush(&mut self, emitter: &mut Emitter<'_>) {
        let unrepeated: Vec<u32> = self.unrepeated.iter().map(|(.., number)| *number).collect();
        for number in unrepeated {
            self.end_part(number, emitter);
        }
    }

    /// Handles a whole block that repeats a part.
    pub(crate) fn repeat(&mut self, block: ContentBlock, emitter: &mut Emitter<'_>) {
        let number = self.repeated_part(&block);
        self.repeat_numbered(number, block, emitter);
    }

    /// Handles a whole block that repeats this part. If the part was repeated before, nothing changes.
    pub(crate) fn repeat_part(&mut self, index: u32, block: ContentBlock, emitter: &mut Emitter<'_>) {
        self.repeat_numbered(self.number(index), block, emitter);
    }

    fn repeat_numbered(&mut self, number: u32, block: ContentBlock, emitter: &mut Emitter<'_>) {
        let piece = PartKind::of(&block);
        let part = self.part(number, number, piece);
        if part.repeated || part.piece != piece {
            return;
        }
        part.repeated = true;
        part.joiner = SurrogateJoiner::default();
        let of = part.block;
        self.unrepeated.remove(&(piece, of, number));
        let (ContentBlock::Text(text) | ContentBlock::Reasoning(text)) = &block else {
            self.part(number, of, piece).whole = Some(block);
            return;
        };
        let has_others = self.supersede_others(number, of);
        match text.strip_prefix(&self.part(number, of, piece).said) {
            Some("") if !has_others => {}
            Some(missing) if !has_others && self.followed_by(number, piece).is_none() => {
                let missing = missing.to_owned();
                self.show(number, missing, emitter);
            }
            _ => {
                self.diverged = true;
                self.part(number, of, piece).whole = Some(block);
            }
        }
    }

    /// Empties the other parts of a block that has several parts, because the whole block replaces all of them. Returns
    /// whether the block has several parts.
    fn supersede_others(&mut self, number: u32, block: u32) -> bool {
        if !self.moved.contains_key(&block) {
            return false;
        }
        for (other, part) in
            self.parts.iter_mut().filter(|(other, part)| **other != number && part.block == block)
        {
            self.unrepeated.remove(&(part.piece, block, *other));
            part.said.clear();
            part.joiner = SurrogateJoiner::default();
            part.repeated = true;
        }
        true
    }

    /// Whether nothing of the part has arrived.
    pub(crate) fn has_said_nothing(&self, index: u32) -> bool {
        self.parts.get(&self.number(index)).is_none_or(|part| part.said.is_empty() && !part.repeated)
    }

    /// Returns the tool call once, after all of its input has arrived in pieces.
    pub(crate) fn complete_call(&mut self, index: u32, emitter: &mut Emitter<'_>) -> Option<ToolCall> {
        self.stop(index, emitter);
        let part = self.parts.get_mut(&index).filter(|part| !part.repeated)?;
        let Some(ContentBlock::ToolUse { call, tool, input }) = &mut part.whole else { return None };
        if !part.said.trim().is_empty() {
            // A call that began with a string takes free text, even if the text is valid JSON.
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
        self.unrepeated.remove(&(PartKind::ToolInput, index, index));
        Some(whole)
    }

    /// Whether a late block repeats a part. Each part is repeated once.
    pub(crate) fn has_said(&mut self, block: &ContentBlock) -> bool {
        let piece = PartKind::of(block);
        let found = self.unrepeated_parts(piece).find(|(_, part)| part.block().as_ref() == Some(block));
        let by_call = || self.unrepeated_parts(piece).find(|(_, part)| part.is_call_of(block));
        let Some(index) = found.or_else(by_call).map(|(index, _)| index) else { return false };
        self.unrepeated.retain(|(.., number)| *number != index);
        true
    }

    /// Ends the message. The parts from `abandoned` on that were not repeated whole are void.
    pub(crate) fn finish(&mut self, abandoned: Option<u32>, emitter: &mut Emitter<'_>) {
        let is_void = |part: &OpenPart| !part.repeated && abandoned.is_some_and(|from| from <= part.block);
        let any_shown_is_void = self.parts.values().any(|part| part.shown && is_void(part));
        self.parts.retain(|_, part| !is_void(part));
        self.unrepeated.retain(|(.., number)| self.parts.contains_key(number));
        self.flush(emitter);
        let outcome = self.cut.unwrap_or(MessageOutcome::Complete);
        match self.ordinal {
            Some(message) if !any_shown_is_void && !self.diverged => {
                let unsaid = self.parts.iter().filter(|(_, part)| !part.shown);
                let rest = unsaid.filter_map(|(number, part)| Some((Part(*number), part.block()?))).collect();
                emitter.said.push(Said::End { message, outcome, rest });
            }
            ordinal => {
                if let Some(message) = ordinal {
                    emitter.event(EventBody::Abandoned { message });
                }
                emitter.whole(self.blocks(), outcome, None);
            }
        }
    }

    /// All blocks, in the agent's order.
    fn blocks(&self) -> Vec<ContentBlock> {
        let mut blocks: BTreeMap<u32, ContentBlock> = BTreeMap::new();
        for part in self.parts.values() {
            match (blocks.get_mut(&part.block), part.block()) {
                (Some(ContentBlock::Text(so_far)), Some(ContentBlock::Text(more)))
                | (Some(ContentBlock::Reasoning(so_far)), Some(ContentBlock::Reasoning(more))) => {
                    so_far.push_str(&more);
                }
                (None, Some(block)) => {
                    blocks.insert(part.block, block);
                }
                _ => {}
            }
        }
        blocks.into_values().collect()
    }

    /// Emits one piece, and opens the message and the part if it is their first piece.
    fn show(&mut self, number: u32, text: String, emitter: &mut Emitter<'_>) {
        let Some(part) = self.parts.get_mut(&number) else { return };
        let message = *self.ordinal.get_or_insert_with(|| emitter.ordinal());
        let first = !mem::replace(&mut part.shown, true);
        part.said.push_str(&text);
        let (part_number, piece) = (Part(number), part.piece);
        emitter.event(match piece {
            PartKind::Text | PartKind::Other => EventBody::TextDelta { message, part: part_number, text },
            PartKind::Reasoning => EventBody::ReasoningDelta { message, part: part_number, text },
            PartKind::ToolInput => {
                let (call, tool) = part.tool();
                let tool = first.then(|| tool.to_owned());
                let call = call.to_owned();
                EventBody::ToolInputDelta { message, part: part_number, call, tool, fragment: text }
            }
        });
    }

    fn part(&mut self, number: u32, block: u32, piece: PartKind) -> &mut OpenPart {
        self.parts.entry(number).or_insert_with(|| {
            self.unrepeated.insert((piece, block, number));
            OpenPart::new(piece, block)
        })
    }

    /// The part that a whole block repeats. Blocks are repeated in order, without their index. A block that did not
    /// arrive in pieces gets a new part.
    fn repeated_part(&self, block: &ContentBlock) -> u32 {
        let piece = PartKind::of(block);
        let same_call = self.unrepeated_parts(piece).find(|(_, part)| part.is_call_of(block));
        let first = || self.unrepeated_parts(piece).next().filter(|_| piece != PartKind::ToolInput);
        let next = || self.parts.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        same_call.or_else(first).map_or_else(next, |(index, _)| index)
    }

    fn unrepeated_parts(&self, piece: PartKind) -> impl Iterator<Item = (u32, &OpenPart)> {
        self.unrepeated
            .range((piece, 0, 0)..=(piece, u32::MAX, u32::MAX))
            .filter_map(|(.., number)| Some((*number, self.parts.get(number)?)))
    }
}
