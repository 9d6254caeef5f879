//! Every recording, and what the parser says.

use insta::assert_snapshot;
use tokenrail_domain::{CompleteMessage, MessageOutcome, Said};
use tokenrail_parser::ClaudeParser;

use crate::fixtures::recordings;
use crate::parse;
use crate::pump::pump;
use crate::recorded::{account, named_by_recording};

#[test]
fn every_recording_says_what_it_said_before() {
    named_by_recording(|| {
        for recording in recordings() {
            let account = account(&mut ClaudeParser::new(), recording.lines());
            assert_snapshot!(recording.name.replace('/', "__"), account);
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

/// A turn that began before an upgrade of Tokenrail may have the output of the other mode.
#[test]
fn in_both_modes_a_recording_says_the_same() {
    for recording in recordings() {
        let two_way = crate::pump::read(&mut ClaudeParser::two_way(), recording.lines());
        assert_eq!(parse(recording.lines()), two_way, "{}", recording.name);
    }
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
