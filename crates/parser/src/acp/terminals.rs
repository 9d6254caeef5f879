//! What commands print, where the agent runs them itself and shows a terminal for each.
//!
//! The protocol lets an agent show a terminal by its id, and has no message for the output of a terminal that is not the
//! client's. Agents send it in `_meta` of their updates of the tool call, by the convention of Zed:
//!
//! | field of `_meta` | what it is |
//! | --- | --- |
//! | `terminal_info`: `terminal_id` | there is such a terminal |
//! | `terminal_output_delta`, `terminal_output`: `terminal_id`, `data` | it shows that too |
//! | `terminal_exit`: `terminal_id`, `exit_code`, `signal` | its command has ended |

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::fields::{self, Raw};

/// Bytes of one terminal's output that are kept in memory. Of more, the middle is left out: the beginning says what was
/// done, and the end what came of it. The raw lines have all of it.
///
/// It is not in the configuration: an output that is read again must give the same result.
pub(super) const TERMINAL_BYTES: usize = 1 << 20;
const HEAD_BYTES: usize = TERMINAL_BYTES / 2;
/// What is kept of the end when it is cut. It is cut when it has twice as much.
const TAIL_BYTES: usize = TERMINAL_BYTES / 4;
/// How many terminals of one call are kept. One more is not.
const TERMINALS: usize = 8;

/// The terminals of one tool call, by their ids.
#[derive(Debug, Default)]
pub(super) struct Terminals(BTreeMap<String, Terminal>);

#[derive(Debug, Default)]
struct Terminal {
    head: String,
    tail: String,
    /// How many bytes between the two are not kept.
    left_out: usize,
    has_failed: bool,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, rename = "terminal_info")]
    info: Raw<'a>,
    #[serde(borrow, rename = "terminal_output")]
    output: Raw<'a>,
    #[serde(borrow, rename = "terminal_output_delta")]
    delta: Raw<'a>,
    #[serde(borrow, rename = "terminal_exit")]
    exit: Raw<'a>,
}

/// Of each of these what it has.
#[derive(Deserialize, Default)]
struct News<'a> {
    #[serde(borrow)]
    terminal_id: Raw<'a>,
    #[serde(borrow)]
    data: Raw<'a>,
    #[serde(borrow)]
    exit_code: Raw<'a>,
    #[serde(borrow)]
    signal: Raw<'a>,
}

impl Terminals {
    /// Takes what an update tells of them.
    pub(super) fn take(&mut self, meta: Raw<'_>) {
        let meta: Meta<'_> = fields::read(meta);
        let told = [meta.info, meta.output, meta.delta, meta.exit];
        for news in told.into_iter().flatten() {
            let news: News<'_> = fields::read(Some(news));
            let Some(terminal) = fields::text(news.terminal_id).and_then(|id| self.named(&id)) else {
                continue;
            };
            if let Some(data) = fields::text(news.data) {
                terminal.show(&data);
            }
            let failed = fields::number::<i64>(news.exit_code).is_some_and(|code| code != 0);
            terminal.has_failed |= failed || news.signal.is_some();
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

    /// Whether the command of one has ended with another exit code than 0, or by a signal.
    pub(super) fn have_failed(&self) -> bool {
        self.0.values().any(|terminal| terminal.has_failed)
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// What one shows; none where nothing was told of it.
    pub(super) fn text_of(&self, id: &str) -> Option<String> {
        self.0.get(id).map(Terminal::text)
    }

    /// What those show that are not among these.
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
        // Of a piece that is longer than what is kept, the end will do.
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
            bytes => format!("{}\n[{bytes} bytes are left out here]\n{}", self.head, self.tail),
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
            assert!(text.contains(&format!("\n[{} bytes are left out here]\n", terminal.left_out)));
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
