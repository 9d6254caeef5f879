//! `PlainTextParser`: the output of a program is its message.

use proptest::prelude::*;
use tokenrail_domain::{CompleteMessage, Said};
use tokenrail_parser::PlainTextParser;
use tokenrail_ports::{ExitStatus, IMessageParser as _};

use crate::Format::Text;
use crate::pump::{pump, read};
use crate::rendering::Rendering;

/// What the parser has said after the program has printed the lines and ended.
fn ended(lines: &[&str], status: ExitStatus) -> Vec<Said> {
    let mut parser = PlainTextParser::new();
    let mut said = read(&mut parser, lines.iter().map(|line| line.as_bytes()));
    parser.end(status, &mut said);
    said
}

#[test]
fn lines_are_deltas_of_one_message() {
    Text.check(
        &["", "{\"a\":1}", "", "  b\u{2028}c\u{1b}[0m"],
        &[r#"0.0 text "\n{\"a\":1}""#, r#"0.0 text "\n""#, "0.0 text \"\\n  b\\u{2028}c\\u{1b}[0m\""],
    );
}

#[test]
fn exit_code_zero_is_the_result_and_no_other_end_is() {
    let said = ended(&["Hello", "you"], ExitStatus::Code(0));
    let said = Rendering { text_max: 100 }.each(&said);
    assert_eq!(said[2..], ["0 end complete", r#"close "Hello\nyou""#]);
    assert_eq!(ended(&[], ExitStatus::Code(0)).len(), 1, "nothing said is a result too");
    for status in [ExitStatus::Code(1), ExitStatus::Signal(15), ExitStatus::Lost, ExitStatus::Gone] {
        let said = ended(&["Hello"], status);
        assert!(!said.iter().any(|said| matches!(said, Said::Close(_))), "{status:?}");
        assert_eq!(pump(&said).open[0].text(), "Hello", "whoever ends the turn ends the message");
    }
}

proptest! {
    #[test]
    fn the_text_is_what_was_printed(printed in "[a-z\n😀é]{0,60}") {
        let lines: Vec<&str> = printed.split('\n').collect();
        let seen = pump(&ended(&lines, ExitStatus::Code(0)));
        let texts: Vec<String> = seen.messages.iter().map(CompleteMessage::text).collect();
        prop_assert_eq!(texts.concat(), printed);
    }
}
