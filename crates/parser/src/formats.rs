//! The formats by name: the only place that knows all parsers.

use tokenrail_ports::IMessageParser;

use crate::{
    ClaudeParser, CodexParser, GeminiParser, JsonlMapping, JsonlParser, OpencodeParser, PlainTextParser,
};

/// One agent format: a name, and who reads it.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub name: &'static str,
    make: fn(&JsonlMapping) -> Box<dyn IMessageParser>,
}

/// Each format with its parser, in alphabetical order: a new one is one more row.
const FORMATS: [Format; 6] = [
    Format { name: "claude", make: |_| Box::new(ClaudeParser::new()) },
    Format { name: "codex", make: |_| Box::new(CodexParser::new()) },
    Format { name: "gemini", make: |_| Box::new(GeminiParser::new()) },
    Format { name: "jsonl", make: |mapping| Box::new(JsonlParser::new(mapping.clone())) },
    Format { name: "opencode", make: |_| Box::new(OpencodeParser::new()) },
    Format { name: "text", make: |_| Box::new(PlainTextParser::new()) },
];

impl Format {
    /// The format of that name; none where there is no such format.
    pub fn named(name: &str) -> Option<Self> {
        FORMATS.into_iter().find(|format| format.name == name)
    }

    /// A new parser for one process. Only `jsonl` needs the mapping.
    pub fn parser(self, mapping: &JsonlMapping) -> Box<dyn IMessageParser> {
        (self.make)(mapping)
    }
}

/// The formats that have a parser, in alphabetical order.
pub fn formats() -> impl Iterator<Item = Format> {
    FORMATS.into_iter()
}
