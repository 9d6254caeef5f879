//! The beginning of a text, for a line or a few of the terminal.

use super::screen::counted;

/// How many characters of a line are shown.
const LINE_CHARS: usize = 160;

/// The first lines of a text, each cut if it is long, and how many lines are left out.
pub(crate) fn excerpt(text: &str, lines: usize) -> String {
    let mut shown: Vec<String> = text
        .lines()
        .take(lines)
        .map(|line| match line.char_indices().nth(LINE_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        })
        .collect();
    let more = text.lines().count().saturating_sub(lines) as u64;
    if 0 < more {
        shown.push(format!("… {}", counted(more, "more line")));
    }
    shown.join("\n")
}
