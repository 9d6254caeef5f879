//! The formats by name. No other module knows all parsers.

use tokenrail_ports::{Abilities, IMessageParser};

use crate::{
    AcpParser, ClaudeParser, CodexParser, GeminiParser, JsonlMapping, JsonlParser, ModelApiParser,
    OpencodeParser, PlainTextParser,
};

/// One agent format: its name, the abilities of its agents, and its parser.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub name: &'static str,
    pub abilities: Abilities,
    make: fn(&JsonlMapping) -> Box<dyn IMessageParser>,
}

/// Each format with its parser, in alphabetical order. To add a format, add a row.
const FORMATS: [Format; 12] = [
    Format { name: "acp", abilities: ALL_ABILITIES, make: |_| Box::new(AcpParser::new()) },
    // Tokenrail keeps the history of the conversation and sends it with each turn.
    Format {
        name: "anthropic",
        abilities: Abilities { deltas: true, resume: true, ..NO_ABILITIES },
        make: |_| Box::new(ModelApiParser::anthropic()),
    },
    Format {
        name: "claude",
        abilities: Abilities { deltas: true, resume: true, interrupt: true, ..NO_ABILITIES },
        make: |_| Box::new(ClaudeParser::new()),
    },
    Format { name: "claude-two-way", abilities: ALL_ABILITIES, make: |_| Box::new(ClaudeParser::two_way()) },
    Format {
        name: "codex",
        abilities: Abilities { resume: true, ..NO_ABILITIES },
        make: |_| Box::new(CodexParser::new()),
    },
    Format {
        name: "codex-app-server",
        abilities: ALL_ABILITIES,
        make: |_| Box::new(CodexParser::app_server()),
    },
    Format {
        name: "gemini",
        abilities: Abilities { deltas: true, resume: true, ..NO_ABILITIES },
        make: |_| Box::new(GeminiParser::new()),
    },
    Format {
        name: "jsonl",
        abilities: Abilities { deltas: true, resume: true, ..NO_ABILITIES },
        make: |mapping| Box::new(JsonlParser::new(mapping.clone())),
    },
    Format {
        name: "openai-chat",
        abilities: Abilities { deltas: true, resume: true, ..NO_ABILITIES },
        make: |_| Box::new(ModelApiParser::openai_chat()),
    },
    Format {
        name: "openai-responses",
        abilities: Abilities { deltas: true, resume: true, ..NO_ABILITIES },
        make: |_| Box::new(ModelApiParser::openai_responses()),
    },
    Format {
        name: "opencode",
        abilities: Abilities { resume: true, ..NO_ABILITIES },
        make: |_| Box::new(OpencodeParser::new()),
    },
    Format {
        name: "text",
        abilities: Abilities { deltas: true, ..NO_ABILITIES },
        make: |_| Box::new(PlainTextParser::new()),
    },
];

/// The abilities of interactive agents.
const ALL_ABILITIES: Abilities =
    Abilities { deltas: true, resume: true, interrupt: true, permissions: true, images: true };

const NO_ABILITIES: Abilities =
    Abilities { deltas: false, resume: false, interrupt: false, permissions: false, images: false };

impl Format {
    /// The format with this name. `None` if there is no such format.
    pub fn from_name(name: &str) -> Option<Self> {
        FORMATS.into_iter().find(|format| format.name == name)
    }

    /// Creates a parser for one process. Only `jsonl` uses the mapping.
    pub fn parser(self, mapping: &JsonlMapping) -> Box<dyn IMessageParser> {
        (self.make)(mapping)
    }
}

/// The formats that have a parser, in alphabetical order.
pub fn formats() -> impl Iterator<Item = Format> {
    FORMATS.into_iter()
}
