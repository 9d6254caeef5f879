//! The output of commands that the agent runs itself, each shown as a terminal.
//!
//! The protocol lets an agent show a terminal by its id, but has no message for the output of a terminal that does not
//! belong to the client. Agents send this output in `_meta` of their tool call updates, by the convention of Zed:
//!
//! | field of `_meta` | meaning |
//! | --- | --- |
//! | `terminal_info`: `terminal_id` | the terminal exists |
//! | `terminal_output_delta`, `terminal_output`: `terminal_id`, `data` | more output of the terminal |
//! | `terminal_exit`: `terminal_id`, `exit_code`, `signal` | its command has ended |

use std::collections::BTreeMap;

use crate::fields::{self, Raw, raw_structs};

/// The maximum size of one terminal's output in memory, in bytes. If the output is larger, the middle is omitted: the
/// beginning shows what was done, and the end shows the result. The raw lines contain all of it.
///
/// It is not configurable: parsing the same output again must give the same result.
pub(super) const TERMINAL_BYTES: usize = 1 << 20;
const HEAD_BYTES: usize = TERMINAL_BYTES / 2;
/// The size of the end that is kept after a cut, in bytes. The end is cut when it exceeds twice this size.
const TAIL_BYTES: usize = TERMINAL_BYTES / 4;
/// The maximum number of terminals of one call. Further terminals are ignored.
const TERMINALS: usize = 8;

/// The terminals of one tool call, by terminal id.
#[derive(Debug, Default)]
pub(super) struct Terminals(BTreeMap<String, Terminal>);

#[derive(Debug, Default)]
struct Terminal {
    head: String,
    tail: String,
    /// The number of omitted bytes between `head` and `tail`.
    left_out: usize,
    has_failed: bool,
}

raw_structs! {
    struct Meta {
        info = "terminal_info", output = "terminal_output", delta = "terminal_output_delta",
        exit = "terminal_exit",
    }

    /// The fields of each `_meta` entry.
    struct TerminalUpdate { terminal_id, data, exit_code, signal }
}

impl Terminals {
    /// Applies the terminal data of an update.
    pub(super) fn take(&mut self, meta: Raw<'_>) {
        let meta: Meta<'_> = fields::read(meta);
        let told = [meta.info, meta.output, meta.delta, meta.exit];
        for update in told.into_iter().flatten() {
            let update: TerminalUpdate<'_> = fields::read(Some(update));
            let Some(terminal) = fields::text(update.terminal_id).and_then(|id| self.named(&id)) else {
                continue;
            };
            if let Some(data) = fields::text(update.data) {
                terminal.show(&data);
            }
            let failed = fields::number::<i64>(update.exit_code).is_some_and(|code| code != 0);
            terminal.has_failed |= failed || update.signal.is_some();
        }
    }

    fn named(&mut self, id: &str) -> Option<&mut Terminal> {
        if !self.0.contains_key(id) {
            if TERMINALS <= self.0.len() {
                return None;
            }
            self.0.insert(id.to_owned(), Terminal::default());
        }
        self.0.get_mut(id)
    }

    /// Whether a command has ended with a nonzero exit code or by a signal.
    pub(super) fn have_failed(&self) -> bool {
        self.0.values().any(|terminal| terminal.has_failed)
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The output of one terminal. `None` if the terminal is unknown.
    pub(super) fn text_of(&self, id: &str) -> Option<String> {
        self.0.get(id).map(Terminal::text)
    }

    /// The outputs of the terminals that are not in `shown`.
    pub(super) fn texts_without<'a>(&'a self, shown: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let others = self.0.iter().filter(|(id, _)| !shown.contains(id));
        others.map(|(_, terminal)| terminal.text()).filter(|text| !text.is_empty())
    }
}

impl Terminal {
    fn show(&mut self, mut data: &str) {
        if self.tail.is_empty() && self.left_out == 0 {
            let (first, rest) = data.split_at(data.floor_char_boundary(HEAD_BYTES - self.head.len()));
            self.head.push_str(first);
            data = rest;
        }
        // If a piece is longer than the part that is kept, only its end is needed.
        let from = data.ceil_char_boundary(data.len().saturating_sub(2 * TAIL_BYTES));
        if 0 < from {
            self.left_out += self.tail.len() + from;
            self.tail.clear();
        }
        self.tail.push_str(&data[from..]);
        if 2 * TAIL_BYTES < self.tail.len() {
            let cut = self.tail.ceil_char_boundary(self.tail.len() - TAIL_BYTES);
            self.left_out += cut;
            self.tail.drain(..cut);
        }
    }

    fn text(&self) -> String {
        match self.left_out {
            0 => format!("{}{}", self.head, self.tail),
            bytes => format!("{}\n[{bytes} bytes omitted]\n{}", self.head, self.tail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(pieces: &[&str]) -> Terminal {
        let mut terminal = Terminal::default();
        for piece in pieces {
            terminal.show(piece);
        }
        terminal
    }

    #[test]
    fn as_much_as_is_kept_is_shown_whole_in_whatever_pieces() {
        let all = "ä".repeat(TERMINAL_BYTES / 2);
        assert!(terminal(&[&all]).text() == all);
        let pieces: Vec<&str> = (0..all.len() / 1024).map(|at| &all[at * 1024..][..1024]).collect();
        assert!(terminal(&pieces).text() == all);
    }

    #[test]
    fn of_more_the_middle_is_left_out_and_memory_is_bounded() {
        for piece_bytes in [7, 1_000, 3 * TERMINAL_BYTES] {
            let (mut terminal, mut given) = (Terminal::default(), 0);
            terminal.show("begins ");
            while given < 5 * TERMINAL_BYTES {
                terminal.show(&"€".repeat(piece_bytes / 3 + 1));
                given += 3 * (piece_bytes / 3 + 1);
                assert!(terminal.head.len() + terminal.tail.len() <= TERMINAL_BYTES);
            }
            terminal.show(" ends");
            let text = terminal.text();
            assert!(text.starts_with("begins €") && text.ends_with("€ ends"));
            assert!(TERMINAL_BYTES / 2 < text.len());
            let kept = terminal.head.len() + terminal.tail.len();
            assert_eq!(kept + terminal.left_out, "begins  ends".len() + given);
            assert!(text.contains(&format!("\n[{} bytes omitted]\n", terminal.left_out)));
        }
    }

    #[test]
    fn one_call_cannot_have_any_number_of_terminals() {
        let mut terminals = Terminals::default();
        for number in 0..2 * TERMINALS {
            let meta = format!(r#"{{"terminal_info":{{"terminal_id":"t{number}"}}}}"#);
            terminals.take(serde_json::from_str(&meta).ok());
        }
        assert_eq!(terminals.0.len(), TERMINALS);
    }
}
