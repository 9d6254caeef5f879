//! Every recording, and what the parser says.

use std::fmt::Write;

use insta::{Settings, assert_snapshot};
use tokenrail_domain::{CompleteMessage, MessageOutcome, Said};
use tokenrail_parser::ClaudeParser;
use tokenrail_ports::IMessageParser;

use crate::fixtures::{Recording, recordings};
use crate::parse;
use crate::pump::pump;
use crate::rendering::Rendering;

/// Each result of the parser with its line number. Consecutive deltas have the number of the first one.
fn account(recording: &Recording) -> String {
    let mut parser = ClaudeParser::new();
    let (mut said, mut line_of) = (Vec::new(), Vec::new());
    for (number, line) in recording.lines().enumerate() {
        parser.parse(line, &mut said);
        line_of.resize(said.len(), number + 1);
    }
    let rendering = Rendering { text_max: 120 };
    let mut out = String::new();
    for (place, text) in rendering.runs(&said) {
        writeln!(out, "{:>4} {text}", line_of[place]).unwrap();
    }
    let activity = parser.activity();
    if activity.tool_running || activity.background {
        writeln!(out, "     {activity:?}").unwrap();
    }
    out
}

#[test]
fn every_recording_says_what_it_said_before() {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for recording in recordings() {
            assert_snapshot!(recording.name.replace('/', "__"), account(recording));
        }
    });
}

/// Text that an interrupt cut off never counts as a complete message, whatever the version prints.
#[test]
fn what_an_interrupt_cut_is_not_complete() {
    let mut cut = 0;
    for recording in recordings() {
        let lines: Vec<_> = recording.lines().map(String::from_utf8_lossy).collect();
        if !lines.iter().any(|line| line.contains(r#""terminal_reason":"aborted_streaming""#)) {
            continue;
        }
        let seen = pump(&parse(recording.lines()));
        let complete = seen.messages.iter().filter(|message| message.outcome == MessageOutcome::Complete);
        for text in complete.map(CompleteMessage::text) {
            // The long answer of the scripted model.
            assert!(!text.starts_with("# Notes on streaming"), "{}: {text}", recording.name);
        }
        cut += seen.messages.iter().filter(|message| message.outcome == MessageOutcome::Cancelled).count();
    }
    assert!(5 <= cut, "only {cut} messages were cut");
}

#[test]
fn the_same_lines_say_the_same_twice() {
    for recording in recordings() {
        assert_eq!(parse(recording.lines()), parse(recording.lines()), "{}", recording.name);
    }
}

#[test]
fn an_array_says_what_its_elements_say_line_by_line() {
    let mut arrays = 0;
    for recording in recordings() {
        let lines: Vec<_> = recording.lines().filter(|line| line.starts_with(b"{")).collect();
        if lines.iter().any(|line| !line.ends_with(b"}")) {
            continue;
        }
        let array = [b"[".as_slice(), &lines.join(b",".as_slice()), b"]"].concat();
        assert_eq!(parse([array.as_slice()]), parse(lines), "{}", recording.name);
        arrays += 1;
    }
    assert!(100 < arrays);
}

#[test]
fn every_recording_that_has_a_result_is_closed_by_it() {
    for recording in recordings() {
        let results = recording.lines().filter(|line| {
            let line = String::from_utf8_lossy(line);
            line.contains(r#""type":"result""#) && line.ends_with(['}', ']'])
        });
        let said = parse(recording.lines());
        let closed = said.iter().filter(|said| matches!(said, Said::Close(_))).count();
        assert_eq!(closed, results.count(), "{}", recording.name);
    }
}
