//! The parsers of agents other than Claude Code, from the outside: cases, recordings of real agents, and hostile input.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "where a test cannot go on, it must panic")]

mod acp;
mod codex;
mod fixtures;
mod gemini;
mod hostile;
mod jsonl;
mod key_order;
mod model_api;
mod opencode;
mod plain_text;
#[path = "../claude/pump.rs"]
mod pump;
#[path = "../claude/recorded.rs"]
mod recorded;
#[path = "../claude/recording.rs"]
mod recording;
mod recordings;
#[path = "../claude/rendering.rs"]
mod rendering;
mod tool_inputs;
mod truth;
mod whole_messages;

use tokenrail_domain::Said;
use tokenrail_parser::JsonlMapping;
use tokenrail_ports::{Activity, IMessageParser};

use self::rendering::Rendering;

/// The tested formats. Claude Code has its own tests, and only takes part in those that apply to all formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Acp,
    Anthropic,
    Claude,
    Codex,
    Gemini,
    OpenAiChat,
    OpenAiResponses,
    Opencode,
    Jsonl,
    Text,
}

impl Format {
    const ALL: [Self; 10] = [
        Self::Acp,
        Self::Anthropic,
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Opencode,
        Self::Jsonl,
        Self::Text,
    ];

    /// Whether it is the stream of a model API: one turn, with lines that the process adds.
    fn is_of_model_api(self) -> bool {
        matches!(self, Self::Anthropic | Self::OpenAiChat | Self::OpenAiResponses)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Anthropic => "anthropic",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Opencode => "opencode",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
        }
    }

    fn parser(self) -> Box<dyn IMessageParser> {
        let format = tokenrail_parser::Format::from_name(self.name()).expect("each format has a parser");
        format.parser(&JsonlMapping::default())
    }

    /// Everything that the parser says about some lines.
    fn parse<'a>(self, lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<Said> {
        pump::read(&mut *self.parser(), lines)
    }

    /// The agent's activity after the lines.
    fn activity<'a>(self, lines: impl IntoIterator<Item = &'a [u8]>) -> Activity {
        let mut parser = self.parser();
        pump::read(&mut *parser, lines);
        parser.activity()
    }

    /// Checks everything that the parser says about the lines, in the words of [`Rendering`].
    #[track_caller]
    fn check<L: AsRef<str>>(self, lines: &[L], expected: &[&str]) {
        let said = self.parse(lines.iter().map(|line| line.as_ref().as_bytes()));
        assert_eq!(Rendering { text_max: 1000 }.each(&said), expected);
        pump::pump(&said);
    }
}

#[test]
fn every_format_has_a_name_and_these_tests() {
    let mut names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    // These formats are parsed like those after which they are named.
    names.extend(["claude-two-way", "codex-app-server"]);
    names.sort_unstable();
    assert_eq!(tokenrail_parser::formats().map(|format| format.name).collect::<Vec<_>>(), names);
    assert!(tokenrail_parser::Format::from_name("no such format").is_none());
}
