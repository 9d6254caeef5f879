//! `JsonlParser`: the configuration names the fields.

use tokenrail_domain::Said;
use tokenrail_parser::{JsonlMapping, JsonlParser};
use tokenrail_ports::{ExitStatus, IMessageParser};

use crate::Format::Jsonl;
use crate::pump::{pump, read};
use crate::rendering::Rendering;

#[track_caller]
fn check(mapping: &JsonlMapping, lines: &[&str], end: Option<ExitStatus>, expected: &[&str]) {
    let mut parser = JsonlParser::new(mapping.clone());
    let mut said = read(&mut parser, lines.iter().map(|line| line.as_bytes()));
    if let Some(status) = end {
        parser.end(status, &mut said);
    }
    assert_eq!(Rendering { text_max: 200 }.each(&said), expected);
    pump(&said);
}

#[test]
fn every_kind_of_line_by_its_default_name() {
    let lines = [
        r#"{"type":"start","session_id":"s1"}"#,
        r#"{"type":"reasoning","text":"hm"}"#,
        r#"{"type":"delta","text":"Hel"}"#,
        r#"{"type":"message","text":"Hello"}"#,
        r#"{"type":"tool_call","id":7,"tool":"ls","input":["a"]}"#,
        r#"{"type":"tool_result","id":7,"output":"b","error":false}"#,
        r#"{"type":"tool_result","id":8,"output":[1],"error":"gone"}"#,
        r#"{"type":"error","error":{"message":"rate limit reached"}}"#,
        r#"{"type":"message","text":"Done"}"#,
        r#"{"result":"All done","usage":{"tokens":3},"error":null,"type":"result"}"#,
        r#"{"type":"delta","text":"unasked"}"#,
    ];
    Jsonl.check(
        &lines,
        &[
            "session s1",
            "notice start",
            r#"0.0 thinks "hm""#,
            r#"0.1 text "Hel""#,
            r#"0.1 text "lo""#,
            "0 end complete",
            r#"1 message complete + use 7 ls ["a"]"#,
            r#"call 7 ls ["a"]"#,
            r#"result 7 "b""#,
            "result 8 failed [1]",
            r#"error rate_limit recoverable "rate limit reached""#,
            r#"2 message complete + text "Done""#,
            r#"close "All done" usage {"tokens":3}"#,
            "next turn",
            r#"0.1 text "unasked""#,
        ],
    );
    let activity = |lines: &[&str]| Jsonl.activity(lines.iter().map(|line| line.as_bytes()));
    assert!(activity(&lines[..5]).tool_running && !activity(&lines[..6]).tool_running);
}

#[test]
fn fields_and_kinds_have_the_names_that_they_are_given() {
    let mapping = JsonlMapping {
        kind: "ev.name".into(),
        session: "meta.conversation".into(),
        text: "ev.body.t".into(),
        result: "ev.final".into(),
        error: "ev.why".into(),
        deltas: vec!["tok".into(), "chunk".into()],
        results: vec!["fin".into()],
        ..JsonlMapping::default()
    };
    let lines = [
        r#"{"meta":{"conversation":"c9"},"ev":{"name":"tok","body":{"t":"Hi "}}}"#,
        r#"{"ev":{"body":{"t":"you"},"name":"chunk"}}"#,
        r#"{"ev":{"name":"delta","body":{"t":"not mapped"}}}"#,
        r#"{"ev":{"name":"fin","final":"Hi you","why":""}}"#,
    ];
    let expected = [
        "session c9",
        r#"0.1 text "Hi ""#,
        r#"0.1 text "you""#,
        "notice delta",
        "0 end complete",
        r#"close "Hi you""#,
    ];
    check(&mapping, &lines, None, &expected);
}

#[test]
fn without_a_kind_the_fields_say_what_a_line_is() {
    let lines =
        [r#"{"text":"a","error":false}"#, r#"{"error":"timeout"}"#, r#"{"x":1}"#, r#"{"result":"a"}"#];
    let expected = [
        r#"0.1 text "a""#,
        r#"error timeout recoverable "timeout""#,
        "notice untyped",
        "0 end complete",
        r#"close "a""#,
    ];
    check(&JsonlMapping::default(), &lines, None, &expected);
}

#[test]
fn a_result_tells_why_it_failed_and_leaves_its_message_open() {
    let cut = r#"{"type":"delta","text":"a"}"#;
    for (result, expected) in [
        (r#"{"type":"result","error":"overloaded"}"#, r#"overloaded recoverable "overloaded""#),
        (
            r#"{"type":"result","error":true,"result":"invalid api key"}"#,
            r#"authentication "invalid api key""#,
        ),
        (r#"{"type":"result","error":{"message":"odd"}}"#, r#"unknown "odd""#),
        (r#"{"type":"result","error":true}"#, r#"unknown "the agent failed without giving a reason""#),
    ] {
        let mut said = Jsonl.parse([cut.as_bytes(), result.as_bytes()]);
        assert_eq!(pump(&said).open.len(), 1);
        let Some(Said::Close(mut close)) = said.pop() else { panic!("{result}") };
        close.text.clear();
        let close = Rendering { text_max: 100 }.each(&[Said::Close(close)]);
        assert_eq!(close, [format!(r#"close "" error {expected}"#)]);
    }
}

#[test]
fn exit_code_zero_is_the_result_only_where_there_are_no_others() {
    let without = JsonlMapping { results: Vec::new(), ..JsonlMapping::default() };
    let lines = [r#"{"type":"delta","text":"a"}"#];
    let text = r#"0.1 text "a""#;
    let zero = Some(ExitStatus::Code(0));
    check(&without, &lines, zero, &[text, "0 end complete", r#"close "a""#]);
    check(&without, &lines, Some(ExitStatus::Code(1)), &[text]);
    check(&JsonlMapping::default(), &lines, zero, &[text]);
    let whole = r#"0 message complete + text "a""#;
    check(&without, &[r#"{"result":"a"}"#], zero, &[whole, r#"close "a""#]);
}

#[test]
fn a_text_that_stands_in_the_result_alone_is_a_message() {
    let lines = [r#"{"type":"result","result":"One"}"#, r#"{"type":"result","result":"Two"}"#];
    let expected = [
        r#"0 message complete + text "One""#,
        r#"close "One""#,
        "next turn",
        r#"0 message complete + text "Two""#,
        r#"close "Two""#,
    ];
    Jsonl.check(&lines, &expected);
}

#[test]
fn the_whole_message_is_the_truth_about_its_deltas() {
    let lines = [r#"{"type":"delta","text":"wrong"}"#, r#"{"type":"message","text":"right"}"#];
    Jsonl.check(&lines, &[r#"0.1 text "wrong""#, "0 abandoned", r#"1 message complete + text "right""#]);
}

#[test]
fn a_mapping_without_names_keeps_everything_as_notices() {
    let empty = JsonlMapping {
        kind: String::new(),
        session: String::new(),
        text: String::new(),
        result: String::new(),
        error: String::new(),
        ..JsonlMapping::default()
    };
    let mut parser = JsonlParser::new(empty);
    let mut said = Vec::new();
    parser.parse(br#"{"type":"delta","text":"a","b":{"c":[1]}}"#, &mut said);
    assert_eq!(Rendering { text_max: 100 }.each(&said), ["notice untyped"]);
}

#[test]
fn a_mapping_is_read_with_the_defaults_for_what_is_left_out() {
    let read = |text: &str| serde_json::from_str::<JsonlMapping>(text);
    let expected = JsonlMapping { text: "t".into(), results: Vec::new(), ..JsonlMapping::default() };
    assert_eq!(read(r#"{"text":"t","results":[]}"#).unwrap(), expected);
    assert!(read(r#"{"texts":"t"}"#).is_err());
}
