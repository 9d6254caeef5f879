//! Small cases: a few lines, and what the parser says about them.

mod errors;
mod lines;
mod streams;
mod turns;
mod whole;

use tokenrail_domain::{EventBody, Notice, Said};
use tokenrail_parser::ClaudeParser;
use tokenrail_ports::{Activity, IMessageParser};

use crate::parse;
use crate::pump::pump;
use crate::rendering::Rendering;

/// Checks everything that the parser says about the lines, in the words of [`Rendering`].
#[track_caller]
fn check<L: AsRef<[u8]>>(lines: &[L], expected: &[&str]) {
    let said = parse(lines.iter().map(AsRef::as_ref));
    assert_eq!(Rendering { text_max: 1000 }.each(&said), expected);
    pump(&said);
}

/// The same for an interactive agent.
#[track_caller]
fn check_two_way<L: AsRef<[u8]>>(lines: &[L], expected: &[&str]) {
    let said = parse_two_way(lines.iter().map(AsRef::as_ref));
    assert_eq!(Rendering { text_max: 1000 }.each(&said), expected);
    pump(&said);
}

fn parse_two_way<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<Said> {
    let (mut parser, mut said) = (ClaudeParser::two_way(), Vec::new());
    for line in lines {
        parser.parse(line, &mut said);
    }
    said
}

/// The agent's activity after the lines.
fn activity(lines: &[String]) -> Activity {
    let mut parser = ClaudeParser::new();
    for line in lines {
        parser.parse(line.as_bytes(), &mut Vec::new());
    }
    parser.activity()
}

/// The only notice of a line.
fn notice(line: &str) -> Notice {
    match &parse([line.as_bytes()])[..] {
        [Said::Event(EventBody::Notice(notice))] => (**notice).clone(),
        other => panic!("{other:?}"),
    }
}

/// The only notice of a line from an interactive agent.
fn notice_two_way(line: &str) -> Notice {
    match &parse_two_way([line.as_bytes()])[..] {
        [Said::Event(EventBody::Notice(notice)), Said::Asked(_) | Said::Settled { .. }] => (**notice).clone(),
        other => panic!("{other:?}"),
    }
}

fn event(event: &str) -> String {
    format!(r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null}}"#)
}

fn start(id: &str) -> String {
    event(&format!(r#"{{"type":"message_start","message":{{"id":"{id}","content":[]}}}}"#))
}

fn block(index: u32, block: &str) -> String {
    event(&format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#))
}

fn delta(index: u32, kind: &str, field: &str, json: &str) -> String {
    let delta = format!(r#"{{"type":"{kind}","{field}":{json}}}"#);
    event(&format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#))
}

fn text(index: u32, text: &str) -> String {
    delta(index, "text_delta", "text", &format!("\"{text}\""))
}

fn stop() -> String {
    event(r#"{"type":"message_stop"}"#)
}

fn stop_abandoned(from: u32) -> String {
    let event = r#"{"type":"message_stop"}"#;
    format!(r#"{{"type":"stream_event","event":{event},"abandoned_blocks":{{"from_block_index":{from}}}}}"#)
}

fn assistant(id: &str, blocks: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{blocks}]}}{more}}}"#
    )
}

fn whole(id: &str, text: &str) -> String {
    assistant(id, &format!(r#"{{"type":"text","text":"{text}"}}"#), "")
}

fn result(more: &str) -> String {
    format!(r#"{{"duration_ms":1{more},"type":"result"}}"#)
}
