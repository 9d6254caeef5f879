use proptest::prelude::*;

use super::*;

const LIMITS: FramerLimits = FramerLimits { line_bytes: 8, head_bytes: 3 };

fn lines<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<OutputLine> {
    let mut framer = LineFramer::new(LIMITS);
    let mut lines = Vec::new();
    for chunk in chunks {
        framer.feed(Bytes::copy_from_slice(chunk));
        lines.extend(std::iter::from_fn(|| framer.next_line()));
    }
    lines.extend(framer.finish());
    lines
}

fn check(output: &[u8], expected: &[(Line, u64)]) {
    let expected =
        expected.iter().map(|(line, end_offset)| OutputLine { line: line.clone(), end_offset: *end_offset });
    assert_eq!(lines([output]), expected.collect::<Vec<_>>(), "{:?}", String::from_utf8_lossy(output));
}

fn whole(text: &'static str) -> Line {
    Line::Whole(Bytes::from_static(text.as_bytes()))
}

fn cut(text: &'static str) -> Line {
    Line::Cut(Bytes::from_static(text.as_bytes()))
}

fn too_long(head: &'static str, length_bytes: u64) -> Line {
    Line::TooLong { head: Bytes::from_static(head.as_bytes()), length_bytes }
}

#[test]
fn lines_end_at_a_line_feed_and_nowhere_else() {
    check(b"", &[]);
    check(b"a\nb\n", &[(whole("a"), 2), (whole("b"), 4)]);
    check(b"\n\n", &[(whole(""), 1), (whole(""), 2)]);
    check(b"a\r\nb\rc\n", &[(whole("a"), 3), (whole("b\rc"), 7)]);
    check("x\u{2028}\u{85}y\n".as_bytes(), &[(whole("x\u{2028}\u{85}y"), 8)]);
}

#[test]
fn a_line_without_its_end_is_cut() {
    check(b"a\nbc", &[(whole("a"), 2), (cut("bc"), 4)]);
    check(b"bc\r", &[(cut("bc\r"), 3)]);
}

#[test]
fn a_line_over_the_limit_is_skipped_and_the_next_one_is_read() {
    check(b"12345678\n", &[(whole("12345678"), 9)]);
    check(b"123456789\nb\n", &[(too_long("123", 9), 10), (whole("b"), 12)]);
    check(b"1234567890", &[(too_long("123", 10), 10)]);
}

/// The expected lines, computed in the simplest way.
fn told_simply(output: &[u8]) -> Vec<OutputLine> {
    let mut end_offset = 0;
    let mut lines = Vec::new();
    for piece in output.split_inclusive(|byte| *byte == b'\n') {
        end_offset += piece.len() as u64;
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        let line = if text.len() > LIMITS.line_bytes {
            let head = Bytes::copy_from_slice(&text[..LIMITS.head_bytes]);
            Line::TooLong { head, length_bytes: text.len() as u64 }
        } else if text.len() == piece.len() {
            Line::Cut(Bytes::copy_from_slice(text))
        } else {
            Line::Whole(Bytes::copy_from_slice(text.strip_suffix(b"\r").unwrap_or(text)))
        };
        lines.push(OutputLine { line, end_offset });
    }
    lines
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_the_output_is_cut_into_chunks(
        chunks in prop::collection::vec("[ab\r\n\u{2028}]{0,12}", 0..12),
    ) {
        let output = chunks.concat();
        let expected = told_simply(output.as_bytes());
        prop_assert_eq!(lines(chunks.iter().map(String::as_bytes)), expected.clone());
        prop_assert_eq!(lines(output.as_bytes().chunks(1)), expected);
    }
}
