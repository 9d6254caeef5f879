//! What the tests of all recordings share.

use std::fmt::Write;

use insta::Settings;
use tokenrail_ports::IMessageParser;

use crate::rendering::Rendering;

/// The lines of a recording.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.split(|&byte| byte == b'\n')
}

/// What the parser says, each after the number of its line; a run of deltas after the number of its first line.
pub(crate) fn account<'a>(parser: &mut dyn IMessageParser, lines: impl Iterator<Item = &'a [u8]>) -> String {
    let (mut said, mut line_of) = (Vec::new(), Vec::new());
    for (number, line) in lines.enumerate() {
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

/// Snapshots whose names are those of the recordings alone.
pub(crate) fn named_by_recording(check: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(check);
}

/// The bytes with other bytes in some places.
pub(crate) fn damaged(bytes: &[u8], damage: Vec<(proptest::sample::Index, u8)>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, byte) in damage {
        let at = at.index(bytes.len());
        bytes[at] = byte;
    }
    bytes
}
