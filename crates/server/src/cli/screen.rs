//! Output for people and pipes: plain lines, and on a terminal colours and a spinner.

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};

use serde_json::json;

use super::{Exit, color};

/// Standard output, and the state of the terminal.
pub(crate) struct Screen {
    pub(crate) json: bool,
    output: Output,
    colors: bool,
    cursor: Cursor,
    frame: usize,
    /// The error because of which standard output takes nothing more.
    lost: Option<io::ErrorKind>,
}

/// What standard output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// A pipe or a file.
    Stream,
    /// It cannot erase a line.
    DumbTerminal,
    Terminal,
}

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    LineStart,
    InLine,
    /// On a status line, which must be cleared before anything else is written.
    OnStatus,
    /// Behind a prompt, where the user types.
    OnPrompt,
}

/// How a piece of text looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Dim,
    Bold,
    Good,
    Bad,
}

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

impl Screen {
    pub(crate) fn new(json: bool) -> Self {
        let kind = std::env::var_os("TERM").unwrap_or_default();
        let output = match io::stdout().is_terminal() {
            false => Output::Stream,
            true if kind.is_empty() || kind == "dumb" => Output::DumbTerminal,
            true => Output::Terminal,
        };
        let colors = color::on_stdout() && !json;
        Self { json, output, colors, cursor: Cursor::LineStart, frame: 0, lost: None }
    }

    /// Whether a person at a terminal reads the output.
    pub(crate) fn is_live(&self) -> bool {
        self.output != Output::Stream && !self.json
    }

    /// Whether standard output takes nothing more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether the reader of the output has gone, so that the rest is not wanted.
    pub(crate) fn is_left(&self) -> bool {
        self.lost == Some(io::ErrorKind::BrokenPipe)
    }

    /// The exit of a command whose purpose is its output: `exit`, unless output was lost.
    pub(crate) fn exit_or(&self, exit: Exit) -> Exit {
        match self.lost {
            None => exit,
            Some(_) if self.is_left() => Exit::Closed,
            Some(_) => Exit::Failed,
        }
    }

    /// Writes a piece of text.
    pub(crate) fn text(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        self.clear_status();
        // With colours, the output is meant for a terminal, even if a pager is in between.
        let shown = if self.output != Output::Stream || self.colors {
            without_controls(text)
        } else {
            text.to_owned()
        };
        let (on, off) = self.codes(style);
        let written = write!(io::stdout(), "{on}{shown}{off}").and_then(|()| io::stdout().flush());
        if let Err(error) = written
            && !self.is_lost()
        {
            self.lose(&error);
        }
        self.cursor = if text.ends_with('\n') { Cursor::LineStart } else { Cursor::InLine };
    }

    /// Records that output is lost. A reader that has gone needs no message; any other error is printed.
    fn lose(&mut self, error: &io::Error) {
        self.lost = Some(error.kind());
        if !self.is_left() {
            self.print_error("output_failed", &format!("cannot write to standard output: {error}"));
        }
    }

    /// Writes a whole line, on a line of its own.
    pub(crate) fn line(&mut self, style: Style, line: &str) {
        self.end_line();
        self.text(style, line);
        self.text(Style::Plain, "\n");
    }

    pub(crate) fn end_line(&mut self) {
        if self.cursor == Cursor::InLine {
            self.text(Style::Plain, "\n");
        }
    }

    /// Asks the user to type something, unless it asks already. Other output begins on the next line.
    pub(crate) fn prompt(&mut self, prompt: &str) {
        if self.cursor != Cursor::OnPrompt {
            self.end_line();
            self.text(Style::Bold, prompt);
            self.cursor = Cursor::OnPrompt;
        }
    }

    /// Notes that the user has ended the line of the prompt.
    pub(crate) fn after_typed_line(&mut self) {
        if self.cursor == Cursor::OnPrompt {
            self.cursor = Cursor::LineStart;
        }
    }

    /// Shows a status until something else is written; on a terminal only.
    pub(crate) fn status(&mut self, status: &str) {
        let is_free = !matches!(self.cursor, Cursor::InLine | Cursor::OnPrompt);
        if !self.is_live() || self.output != Output::Terminal || !is_free {
            return;
        }
        self.frame = (self.frame + 1) % SPINNER.len();
        let (on, off) = self.codes(Style::Dim);
        let _ = write!(io::stdout(), "\r\x1b[2K{on}{} {status}{off}", SPINNER[self.frame]);
        let _ = io::stdout().flush();
        self.cursor = Cursor::OnStatus;
    }

    /// Removes the status, or leaves the line of the prompt.
    pub(crate) fn clear_status(&mut self) {
        let leave = match self.cursor {
            Cursor::OnStatus => "\r\x1b[2K",
            Cursor::OnPrompt => "\n",
            Cursor::LineStart | Cursor::InLine => return,
        };
        let _ = write!(io::stdout(), "{leave}");
        // The next text may go to standard error.
        let _ = io::stdout().flush();
        self.cursor = Cursor::LineStart;
    }

    fn codes(&self, style: Style) -> (&'static str, &'static str) {
        if self.colors { style.codes() } else { ("", "") }
    }

    /// Prints an error with its causes to standard error. With `--json` it is one line of JSON.
    pub(crate) fn error(&mut self, code: &str, error: &dyn Error) {
        self.clear_status();
        self.end_line();
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        self.print_error(code, &text);
    }

    fn print_error(&self, code: &str, text: &str) {
        let _ = if self.json {
            // For people, the code is part of the text.
            let message = text.strip_suffix(&format!(" ({code})")).unwrap_or(text);
            writeln!(io::stderr(), "{}", json!({ "code": code, "message": message }))
        } else {
            writeln!(io::stderr(), "tokenrail: {}", without_controls(text))
        };
    }

    /// Prints a note to standard error.
    pub(crate) fn note(&mut self, note: &str) {
        self.clear_status();
        self.end_line();
        let _ = writeln!(io::stderr(), "{note}");
    }
}

impl Style {
    fn codes(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("", ""),
            Self::Dim => ("\x1b[2m", "\x1b[0m"),
            Self::Bold => ("\x1b[1m", "\x1b[0m"),
            Self::Good => ("\x1b[32m", "\x1b[0m"),
            Self::Bad => ("\x1b[31m", "\x1b[0m"),
        }
    }
}

/// A number with its noun: `1 event`, `2 events`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Agents can print anything. On a terminal, their output must not move the cursor or query the terminal.
fn without_controls(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::without_controls;

    #[test]
    fn escape_sequences_lose_their_teeth() {
        assert_eq!(without_controls("a\x1b]52;c;x\x07b\u{9b}31m\tc\nd\r"), "a]52;c;xb31m\tc\nd");
    }
}
