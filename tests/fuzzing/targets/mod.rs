//! The fuzz targets. Each takes any bytes, and panics if a check fails.
//!
//! The test `fuzz` calls them with the corpus and with mutations of it; the programs of `tests/fuzz` let libFuzzer call
//! them. `docs/explanation/reliability-tests.md` says what each of them must find.

mod ag_ui;
mod ag_ui_answers;
mod agent_parser;
mod asker;
mod config;
mod cursor;
mod durable_streams;
mod event_stream;
mod format_parsers;
mod line_framer;
mod mcp;
mod message_assembler;
mod openai;
mod packed_batch;
mod request;
mod said_messages;
mod socket_io;
mod socket_io_upgrade;
mod source;
mod sse_decoder;
mod sse_model;
mod unix_server;
mod world;
mod ws_client_frame;

/// One entry point of the product, and what is known about its language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The name of its folder in the corpus.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
    /// Words of its language, which mutations insert.
    pub(crate) words: &'static [&'static [&'static str]],
}

/// Words of any JSON.
const JSON: &[&str] = &["{", "}", "[", "]", "\"", ":", ",", "null", "1e999"];

/// Words of the JSON lines that agent programs print.
const JSON_LINES: &[&str] = &["true", "-1", "\n", "\\ud83d", "\\ude00", "\\u0000", "\u{2028}", "\"type\":"];

pub(crate) const TARGETS: [Target; 18] = [
    Target { name: "line_framer", run: line_framer::run, words: &[line_framer::WORDS] },
    Target { name: "sse_decoder", run: sse_decoder::run, words: &[sse_decoder::WORDS] },
    Target { name: "agent_parser", run: agent_parser::run, words: &[JSON, JSON_LINES, agent_parser::WORDS] },
    Target {
        name: "format_parsers",
        run: format_parsers::run,
        words: &[JSON, JSON_LINES, format_parsers::WORDS],
    },
    Target { name: "message_assembler", run: message_assembler::run, words: &[] },
    Target { name: "packed_batch", run: packed_batch::run, words: &[] },
    Target { name: "config", run: config::run, words: &[config::WORDS] },
    Target { name: "cursor", run: cursor::run, words: &[cursor::WORDS] },
    Target { name: "request", run: request::run, words: &[JSON, request::WORDS] },
    Target { name: "event_stream", run: event_stream::run, words: &[JSON, JSON_LINES, agent_parser::WORDS] },
    Target { name: "socket_io", run: socket_io::run, words: &[JSON, socket_io::WORDS] },
    Target {
        name: "socket_io_upgrade",
        run: socket_io_upgrade::run,
        words: &[JSON, socket_io_upgrade::WORDS],
    },
    Target { name: "openai", run: openai::run, words: &[JSON, openai::WORDS] },
    Target { name: "ag_ui", run: ag_ui::run, words: &[JSON, ag_ui::WORDS] },
    Target { name: "ag_ui_answers", run: ag_ui_answers::run, words: &[JSON, ag_ui_answers::WORDS] },
    Target { name: "durable_streams", run: durable_streams::run, words: &[durable_streams::WORDS] },
    Target { name: "mcp", run: mcp::run, words: &[JSON, mcp::WORDS] },
    Target { name: "ws_client_frame", run: ws_client_frame::run, words: &[JSON, ws_client_frame::WORDS] },
];

/// Runs the target of that name with the bytes.
pub(crate) fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("there is such a target");
    (target.run)(data);
}
