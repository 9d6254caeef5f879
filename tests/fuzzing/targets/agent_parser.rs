//! The parser accepts any input and is deterministic. Its messages keep the rules, and their text is that of their
//! deltas.

use tokenrail_domain::{EventBody, PermissionReply, Said};
use tokenrail_parser::ClaudeParser;
use tokenrail_ports::IMessageParser;

use super::said_messages;

pub(crate) const WORDS: &[&str] = &[
    "4294967295",
    "0",
    "\r\n",
    "\"subtype\":",
    "\"session_id\":\"s\",",
    "\"index\":1",
    "\"content\":",
    "\"aborted\":true",
    "\"parent_tool_use_id\":\"c\"",
    "stream_event",
    "assistant",
    "user",
    "system",
    "result",
    "message",
    "init",
    "api_retry",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "text_delta",
    "thinking_delta",
    "input_json_delta",
    "tool_use",
    "tool_result",
    "error",
    "control_request",
    "thinking",
    "\"abandoned_blocks\":{\"from_block_index\":0}",
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}}\n",
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}}\n",
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_stop\"}}\n",
    "{\"type\":\"result\",\"subtype\":\"success\"}\n",
];

/// The results of a parser may be longer than its lines, but only up to these factors.
const LONGER: usize = 40;
const MORE_PER_LINE: usize = 4096;

pub(crate) fn run(data: &[u8]) {
    check(data, || Box::new(ClaudeParser::new()));
}

/// Checks the results of a parser for these lines.
pub(crate) fn check(data: &[u8], parser: impl Fn() -> Box<dyn IMessageParser>) {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let said = parsed(&lines, parser());
    // A cost may be NaN, which is not equal to itself.
    assert_eq!(format!("{said:?}"), format!("{:?}", parsed(&lines, parser())), "the same lines say the same");
    said_messages::check(&said);
    let bytes: usize = said.iter().map(size).sum();
    let bound = LONGER * data.len() + MORE_PER_LINE * lines.len();
    assert!(bytes <= bound, "{} bytes say {bytes}", data.len());
}

fn parsed(lines: &[&[u8]], mut parser: Box<dyn IMessageParser>) -> Vec<Said> {
    let mut said = Vec::new();
    for line in lines {
        parser.parse(line, &mut said);
        let _ = parser.activity();
    }
    said
}

fn size(said: &Said) -> usize {
    match said {
        Said::Event(body) => body.text_bytes() + size_of::<EventBody>(),
        Said::End { rest, .. } => rest.len() * size_of_val(&rest[..]).min(64),
        Said::Session(session) => session.len(),
        Said::Close(close) => close.text.len(),
        Said::Asked(request) => {
            let options = request.options.iter().map(|option| option.id.len() + option.name.len());
            request.id.len() + request.tool.len() + request.input.as_str().len() + options.sum::<usize>()
        }
        Said::Settled { request_id: question, reply } => {
            let PermissionReply { options, text, note } = reply;
            let texts = options.iter().chain(text).chain(note);
            question.len() + texts.map(String::len).sum::<usize>()
        }
        Said::OwnTurn => 1,
    }
}
