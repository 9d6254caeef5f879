//! The lines equal the output, whatever the chunks are.

use bytes::Bytes;
use tokenrail_ports::{Line, OutputLine};
use tokenrail_runner::{FramerLimits, LineFramer};

use super::source::{Source, pieces};

pub(crate) const WORDS: &[&str] = &["\n", "\r\n", "\r", "\n\n", "\r\r\n", "\u{2028}", "0123456789abcdef"];

pub(crate) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let (line_bytes, seed) = (usize::from(source.byte()), source.byte());
    let limits = FramerLimits { line_bytes, head_bytes: line_bytes.min(usize::from(source.byte())) };
    let output = source.rest();
    let expected = model(output, limits);
    assert_eq!(framed(&[output], limits), expected, "in one chunk");
    assert_eq!(framed(&pieces(output, seed), limits), expected, "in pieces");
    let bytes: Vec<&[u8]> = output.chunks(1).collect();
    assert_eq!(framed(&bytes, limits), expected, "byte by byte");
}

/// The lines of an output that comes in these chunks.
pub(super) fn framed(chunks: &[&[u8]], limits: FramerLimits) -> Vec<OutputLine> {
    let mut framer = LineFramer::new(limits);
    let mut lines = Vec::new();
    for chunk in chunks {
        framer.feed(Bytes::copy_from_slice(chunk));
        lines.extend(std::iter::from_fn(|| framer.next_line()));
    }
    lines.extend(framer.finish());
    lines
}

/// The lines of an output, computed from the whole output.
fn model(output: &[u8], limits: FramerLimits) -> Vec<OutputLine> {
    let mut end_offset = 0;
    let pieces = output.split_inclusive(|byte| *byte == b'\n');
    let line = |piece: &[u8]| {
        end_offset += piece.len() as u64;
        let whole = piece.strip_suffix(b"\n");
        let content = whole.unwrap_or(piece);
        let bytes = |slice: &[u8]| Bytes::copy_from_slice(slice);
        let line = if limits.line_bytes < content.len() {
            Line::TooLong { head: bytes(&content[..limits.head_bytes]), length_bytes: content.len() as u64 }
        } else if whole.is_some() {
            Line::Whole(bytes(content.strip_suffix(b"\r").unwrap_or(content)))
        } else {
            Line::Cut(bytes(content))
        };
        OutputLine { line, end_offset }
    };
    pieces.map(line).collect()
}
