//! The text of patches.

use std::fmt::Write as _;

use memchr::memmem;
use tokenrail_ports::Patch;

use super::git::Output;

/// The beginning of each file in a patch. Lines of a file have a mark before them, so none begins in this way.
const FILE: &[u8] = b"diff --git ";

/// A patch without the file in whose middle it was cut off.
pub(super) fn complete_files(output: Output) -> Patch {
    let Output { bytes: mut text, complete, .. } = output;
    if !complete {
        let next = memmem::rfind(&text, &[b"\n", FILE].concat()).map_or(0, |at| at + 1);
        text.truncate(next);
    }
    Patch { text, truncated: !complete }
}

/// A path in the header of a file, as git writes it. `side` is `a/` or `b/`.
pub(super) fn quoted(side: &str, path: &[u8]) -> Vec<u8> {
    let is_special = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\\');
    if !path.iter().any(is_special) {
        return [side.as_bytes(), path].concat();
    }
    let mut out = [b"\"", side.as_bytes()].concat();
    for byte in path {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            control if control.is_ascii_control() => {
                let mut octal = String::new();
                let _ = write!(octal, "\\{control:03o}");
                out.extend(octal.as_bytes());
            }
            other => out.push(*other),
        }
    }
    out.push(b'"');
    out
}
