//! Parses the output of agents into Tokenrail events.
//!
//! There is one parser per agent format. Each implements [`IMessageParser`](tokenrail_ports::IMessageParser), accepts
//! any input, is deterministic and does no I/O. The crate does not depend on a server, a store or a client, so it can
//! be used alone. In the server, the next step after a parser is `Recorder::line` of the application crate.
//!
//! Read in this order:
//!
//! 1. [`formats()`], [`Format`]: the formats by name;
//! 2. [`GeminiParser`]: a small parser, as an example;
//! 3. [`ClaudeParser`]: the stream-json of Claude Code, versions 1.0 to 2.1, with or without partial messages;
//! 4. [`AcpParser`]: any agent that implements the Agent Client Protocol; [`CodexParser`], [`OpencodeParser`]: two more
//!    agents; [`JsonlParser`], [`PlainTextParser`]: your own programs;
//! 5. [`ModelApiParser`]: the streams of model APIs;
//! 6. `added_lines`: the lines that Tokenrail adds to the output of an interactive agent;
//! 7. `patches`: the changes of files that agents report with the results of their tools;
//! 8. `conversation`, `open_message`, `errors`, `fields`, `text`: the building blocks of the parsers.
//!
//! ```
//! use tokenrail_domain::{EventBody, Said};
//! use tokenrail_parser::ClaudeParser;
//! use tokenrail_ports::IMessageParser;
//!
//! let output = br#"{"type":"system","subtype":"init","session_id":"5f1c","model":"claude-opus"}
//! {"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}}
//! {"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo!"}}}
//! {"type":"stream_event","event":{"type":"message_stop"}}
//! {"type":"result","subtype":"success","is_error":false,"result":"Hello!"}"#;
//!
//! let mut parser = ClaudeParser::new();
//! let mut said = Vec::new();
//! for line in output.split(|&byte| byte == b'\n') {
//!     parser.parse(line, &mut said);
//! }
//!
//! let text: String = said
//!     .iter()
//!     .filter_map(|said| match said {
//!         Said::Event(EventBody::TextDelta { text, .. }) => Some(text.as_str()),
//!         _ => None,
//!     })
//!     .collect();
//! assert_eq!(text, "Hello!");
//! assert_eq!(said[0], Said::Session("5f1c".into()));
//! assert!(matches!(&said[..], [.., Said::End { .. }, Said::Close(close)] if close.error.is_none()));
//! ```

mod acp;
mod added_lines;
mod claude;
mod codex;
mod conversation;
mod emitter;
mod errors;
mod fields;
mod formats;
mod gemini;
mod jsonl;
mod line;
mod model_api;
mod open_message;
mod opencode;
mod patches;
mod plain_text;
mod text;

pub use acp::AcpParser;
pub use claude::ClaudeParser;
pub use codex::CodexParser;
pub use formats::{Format, formats};
pub use gemini::GeminiParser;
pub use jsonl::{JsonlMapping, JsonlParser};
pub use model_api::ModelApiParser;
pub use opencode::OpencodeParser;
pub use plain_text::PlainTextParser;
