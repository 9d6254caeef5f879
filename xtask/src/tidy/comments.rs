//! Comments that do not fit on the screen: rustfmt wraps code only.

use crate::workspace::Source;

/// In bytes and not in characters, because `awk` counts bytes too.
const LINE_BYTES_MAX: usize = 120;

/// A longer line of a comment is a fault, unless it is a row of a table, which cannot be wrapped.
pub(super) fn check(source: &Source, faults: &mut Vec<String>) {
    if !source.has_extension("rs")
        || source.path.contains("/generated/")
        || source.path.contains("/fixtures/")
    {
        return;
    }
    for (number, line) in source.lines() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let is_row = comment.trim_start_matches(['/', '!', ' ']).starts_with('|');
        if LINE_BYTES_MAX < line.len() && !is_row {
            faults.push(format!(
                "{}:{number}: a line of a comment has {} bytes, at most {LINE_BYTES_MAX}",
                source.path,
                line.len()
            ));
        }
    }
}
