//! An open message, and which parts of it were sent.

use tokenrail_domain::{ContentBlock, Part};

use crate::vocabularies::letta::dto::{LettaSaid, redacted};

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
    Input,
}

impl Kind {
    /// A message with text of this kind.
    pub(super) fn said(self, text: String) -> LettaSaid {
        match self {
            Self::Text | Self::Input => LettaSaid::Assistant { content: text },
            Self::Reasoning => LettaSaid::Reasoning { reasoning: text, source: "reasoner_model" },
        }
    }
}

/// A message that is not complete yet.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenMessage(Vec<OpenPart>);

#[derive(Debug, Clone)]
struct OpenPart {
    part: Part,
    kind: Kind,
    bytes: usize,
    /// The text that was not sent yet.
    text: String,
    sent: bool,
}

impl OpenMessage {
    /// Takes in a delta. `sent` means that its text is sent at once. Otherwise, the text is kept.
    pub(super) fn say(&mut self, part: Part, kind: Kind, text: &str, sent: bool) {
        let index = self.0.iter().position(|open| open.part == part).unwrap_or_else(|| {
            let at = self.0.partition_point(|open| open.part < part);
            let sent = sent || kind == Kind::Input;
            self.0.insert(at, OpenPart { part, kind, bytes: 0, text: String::new(), sent });
            at
        });
        if let Some(open) = self.0.get_mut(index) {
            open.bytes += text.len();
            if !sent {
                open.text.push_str(text);
            }
        }
    }

    /// Finishes the parts before this one. Returns their kept text.
    pub(super) fn finish_before(&mut self, part: Part) -> Vec<(Part, LettaSaid)> {
        let finished = self.0.iter_mut().filter(|open| open.part < part && !open.sent);
        let said = finished.map(|open| {
            open.sent = true;
            (open.part, open.kind.said(std::mem::take(&mut open.text)))
        });
        said.collect()
    }

    /// Removes the next part if it has this kind and, unless it is an input, this number of bytes. Returns its number,
    /// and whether it was sent.
    pub(super) fn take(&mut self, kind: Kind, bytes: usize) -> Option<(Part, bool)> {
        let next =
            self.0.first().filter(|next| next.kind == kind && (kind == Kind::Input || next.bytes == bytes));
        let taken = next.map(|next| (next.part, next.sent));
        if taken.is_some() {
            self.0.remove(0);
        }
        taken
    }

    /// Returns what was not sent yet of a block of the complete message. The blocks must be passed in their order.
    pub(super) fn rest_of(&mut self, index: Part, block: &ContentBlock) -> Option<(Part, LettaSaid)> {
        let (kind, text) = match block {
            ContentBlock::Text(text) => (Kind::Text, text),
            ContentBlock::Reasoning(text) => (Kind::Reasoning, text),
            ContentBlock::Other(given) => return redacted(given).map(|said| (index, said)),
            ContentBlock::ToolUse { .. } => return None,
        };
        let (part, sent) = self.take(kind, text.len()).unwrap_or((index, false));
        (!sent && !text.is_empty()).then(|| (part, kind.said(text.clone())))
    }
}
