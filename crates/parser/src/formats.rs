//! The formats by name: the only place that knows all parsers.

use tokenrail_ports::IMessageParser;

use crate::{
    ClaudeParser, CodexParser, GeminiParser, JsonlMapping, JsonlParser, OpencodeParser, PlainTextParser,
};

/// Makes a parser for one process.
type Make = fn(&JsonlMapping) -> Box<dyn IMessageParser>;

/// Each format with its parser: a new one is one more row.
const PARSERS: [(&str, Make); 6] = [
    ("claude", |_| Box::new(ClaudeParser::new())),
    ("codex", |_| Box::new(CodexParser::new())),
    ("gemini", |_| Box::new(GeminiParser::new())),
    ("jsonl", |mapping| Box::new(JsonlParser::new(mapping.clone()))),
    ("opencode", |_| Box::new(OpencodeParser::new())),
    ("text", |_| Box::new(PlainTextParser::new())),
];

/// The names of the formats that have a parser, in alphabetical order.
pub fn formats() -> impl Iterator<Item = &'static str> {
    PARSERS.iter().map(|(name, _)| *name)
}

/// A new parser for one process; none where no format has that name. Only `jsonl` needs the mapping.
pub fn parser(format: &str, mapping: &JsonlMapping) -> Option<Box<dyn IMessageParser>> {
    PARSERS.iter().find(|(name, _)| *name == format).map(|(_, make)| make(mapping))
}
