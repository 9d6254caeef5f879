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

/// The beginning of a text that a user must read before a decision: at most `lines` lines and `chars` characters. No
/// line is cut within these bounds. If something is left out, the last line says how much.
pub(crate) fn passage(text: &str, lines: usize, chars: usize) -> String {
    let text = text.trim_end();
    let by_lines = text.match_indices('\n').nth(lines.saturating_sub(1)).map(|(end, _)| end);
    let by_chars = text.char_indices().nth(chars).map(|(end, _)| end);
    let Some(end) = by_lines.into_iter().chain(by_chars).min() else { return text.to_owned() };
    let (shown, rest) = text.split_at(end);
    let left_out = counted(rest.trim_start_matches('\n').chars().count() as u64, "more character");
    match rest.trim_matches('\n').lines().count() as u64 {
        0 | 1 => format!("{shown}\n… {left_out}"),
        more => format!("{shown}\n… {left_out} in {}", counted(more, "line")),
    }
}

#[cfg(test)]
mod tests {
    use super::passage;

    #[test]
    fn a_passage_is_whole_or_says_how_much_is_left_out() {
        assert_eq!(passage("", 2, 9), "");
        assert_eq!(passage("a\nb\n", 2, 9), "a\nb");
        assert_eq!(passage("a\nb\ncc", 2, 9), "a\nb\n… 2 more characters");
        assert_eq!(passage("a\nb\nc\nd", 2, 9), "a\nb\n… 3 more characters in 2 lines");
        assert_eq!(passage("äääää", 2, 4), "ääää\n… 1 more character");
        assert_eq!(passage("a\n\n\nb", 2, 9), "a\n\n… 1 more character");
    }
}
