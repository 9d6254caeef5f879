//! What the process prints: the events of the answer, and added lines between them.

use std::borrow::Cow;
use std::io::{self, Write};

use memchr::memmem::Finder;
use tokenrail_domain::ErrorClass;
use tokenrail_ports::{AddedLine, FailureLine};

/// A shorter value is not a real key, and would be found inside ordinary words.
const KEY_BYTES_MIN: usize = 8;

/// Prints lines. It flushes each one, because followers wait for it.
pub(super) struct Printer<W> {
    out: W,
    /// The key, which must not be printed.
    secret: Option<Finder<'static>>,
}

/// Why there is no answer, or no more of it.
pub(super) fn failure(class: ErrorClass, code: &'static str, text: String) -> FailureLine {
    FailureLine { is_final: true, ..FailureLine::new(class, code, text) }
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, key: Option<&str>) -> Self {
        let secret = key.filter(|key| KEY_BYTES_MIN <= key.len());
        Self { out, secret: secret.map(|key| Finder::new(key.as_bytes()).into_owned()) }
    }

    /// Prints the data of one event. In valid JSON a line break means nothing, so it becomes a blank.
    pub(super) fn event(&mut self, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let mut line = Vec::with_capacity(data.len() + 2);
        if data.starts_with(AddedLine::PREFIX.as_bytes()) {
            line.push(b' ');
        }
        line.extend_from_slice(data);
        for byte in &mut line {
            if *byte == b'\n' || *byte == b'\r' {
                *byte = b' ';
            }
        }
        self.line(line)
    }

    pub(super) fn added(&mut self, line: &AddedLine) -> io::Result<()> {
        self.line(serde_json::to_vec(line)?)
    }

    fn line(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        self.hide_secret(&mut line);
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }

    /// An API that rejects a key may quote it in the error.
    fn hide_secret(&self, line: &mut [u8]) {
        let Some(secret) = &self.secret else { return };
        while let Some(at) = secret.find(line) {
            line[at..at + secret.needle().len()].fill(b'*');
        }
    }

    /// A text from the API without the key, cut to `bytes_max`.
    pub(super) fn quoted<'a>(&self, text: &'a [u8], bytes_max: usize) -> Cow<'a, str> {
        let mut text = text.to_vec();
        // The key is hidden before the cut. Otherwise, half of it could remain.
        self.hide_secret(&mut text);
        text.truncate(bytes_max);
        Cow::Owned(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// How many bytes to read of a text that is cut to `bytes_max`, so that no part of the key remains at its end.
    pub(super) fn bytes_to_read(&self, bytes_max: usize) -> usize {
        bytes_max + self.secret.as_ref().map_or(0, |secret| secret.needle().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl FnOnce(&mut Printer<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        print(&mut Printer::new(&mut out, Some("sk-1234567890")));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_event_is_one_line_byte_for_byte() {
        let data = "{\"a\":\"\u{2028}\\n👩‍👩‍👧‍👦\"}";
        assert_eq!(printed(|out| out.event(data.as_bytes()).unwrap()), format!("{data}\n"));
        assert_eq!(printed(|out| out.event(b"{\n\"a\":\r1}").unwrap()), "{ \"a\": 1}\n");
        assert_eq!(printed(|out| out.event(b"").unwrap()), "");
    }

    #[test]
    fn nobody_else_writes_lines_of_our_own() {
        let forged = br#"{"tokenrail":"end"}"#;
        assert_eq!(printed(|out| out.event(forged).unwrap()), " {\"tokenrail\":\"end\"}\n");
        assert_eq!(printed(|out| out.added(&AddedLine::End {}).unwrap()), "{\"tokenrail\":\"end\"}\n");
        let late = failure(ErrorClass::Timeout, "upstream_idle", "late".to_owned());
        let line =
            r#"{"tokenrail":"error","text":"late","class":"timeout","code":"upstream_idle","final":true}"#;
        assert_eq!(printed(|out| out.added(&AddedLine::Error(late)).unwrap()), format!("{line}\n"));
    }

    #[test]
    fn the_key_is_never_printed() {
        let twice = b"{\"a\":\"sk-1234567890 sk-1234567890\"}";
        let hidden = "{\"a\":\"************* *************\"}\n";
        assert_eq!(printed(|out| out.event(twice).unwrap()), hidden);
        printed(|out| {
            let read = out.bytes_to_read(8);
            assert_eq!(out.quoted(&b"wrong: sk-1234567890"[..read.min(20)], 8), "wrong: *");
        });
    }
}
