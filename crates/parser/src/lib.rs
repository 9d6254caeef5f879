//! Reads what agents print and tells it as Tokenrail's events.
//!
//! One parser for each agent format, each an [`IMessageParser`](tokenrail_ports::IMessageParser): total,
//! deterministic, without I/O. Nothing here knows of servers, stores or clients, so the crate works alone.
//! Read in this order:
//!
//! 1. [`formats()`], [`Format`]: the formats by name;
//! 2. [`GeminiParser`]: a small one, to see how a parser is made;
//! 3. [`ClaudeParser`]: the stream-json of Claude Code, versions 1.0 to 2.1, with or without partial messages;
//! 4. [`AcpParser`]: any agent that speaks the Agent Client Protocol; [`CodexParser`], [`OpencodeParser`]: two more
//!    agents; [`JsonlParser`], [`PlainTextParser`]: programs of your own;
//! 5. [`ModelApiParser`]: the streams of model APIs;
//! 6. `own_lines`: what is added where an agent is spoken with;
//! 7. `conversation`, `open_message`, `errors`, `fields`, `text`: what parsers are made of.
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
mod claude;
mod codex;
mod conversation;
mod errors;
mod fields;
mod formats;
mod gemini;
mod jsonl;
mod line;
mod model_api;
mod open_message;
mod opencode;
mod own_lines;
mod plain_text;
mod text;
mod voice;

pub use acp::AcpParser;
pub use claude::ClaudeParser;
pub use codex::CodexParser;
pub use formats::{Format, formats};
pub use gemini::GeminiParser;
pub use jsonl::{JsonlMapping, JsonlParser};
pub use model_api::ModelApiParser;
pub use opencode::OpencodeParser;
pub use plain_text::PlainTextParser;
