//! The text of patches.

use std::fmt::Write as _;

use memchr::memmem;
use tokenrail_ports::{FileChoice, Patch};

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

/// The part of a patch that is about one file.
pub(super) fn only(mut patch: Patch, file: &FileChoice) -> Patch {
    let names = [Some(&file.path), file.old_path.as_ref()];
    let names: Vec<&[u8]> = names.into_iter().flatten().map(String::as_bytes).collect();
    // If the file is no longer taken for a renamed one, it has two parts.
    let headers = names.iter().flat_map(|old| names.iter().map(move |new| header(old, new)));
    let headers: Vec<Vec<u8>> = headers.collect();
    let is_wanted = |part: &[u8]| {
        let line = part.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        headers.iter().any(|header| line.as_bytes() == header)
    };
    let begins = memmem::find_iter(&patch.text, FILE).filter(|at| *at == 0 || patch.text[at - 1] == b'\n');
    let begins: Vec<usize> = begins.collect();
    let ends = begins.iter().skip(1).copied().chain([patch.text.len()]);
    let parts = begins.iter().zip(ends).map(|(begin, end)| &patch.text[*begin..end]);
    patch.text = parts.filter(|part| is_wanted(part)).collect::<Vec<_>>().concat();
    patch
}

/// The first line of a file in a patch.
pub(super) fn header(old: &[u8], new: &[u8]) -> Vec<u8> {
    [FILE, &quoted("a/", old), b" ", &quoted("b/", new), b"\n"].concat()
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
            b'\r' => out.extend(b"\\r"),
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            0x0b => out.extend(b"\\v"),
            0x0c => out.extend(b"\\f"),
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
