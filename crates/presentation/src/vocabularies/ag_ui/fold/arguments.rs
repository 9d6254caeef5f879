//! The arguments of a tool call, as they are streamed. Clients refuse arguments that are not JSON, and nothing that was
//! sent can be taken back. So only what continues JSON is sent, and arguments that were cut short are completed.
//!
//! Every reader of a stream has a fold, so the text itself is not kept: its length, its hash and the hash of its
//! meaning are enough to compare it with the complete call.

mod meaning;
mod sent_text;

use serde_json::Value;

use meaning::Meaning;
use sent_text::SentText;

/// The deepest nesting that is sent. Parsers commonly stop at 128 levels.
const DEPTH: usize = 100;

/// The longest arguments that are compared with those of the complete call, in bytes.
const COMPARED_BYTES: usize = 1 << 20;

/// Where the text stands that was sent so far, which is always the beginning of JSON.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    state: State,
    /// The objects and lists that are open.
    open: Vec<Container>,
    sent: Sent,
    has_text: bool,
    /// Something came that does not continue it. Nothing is sent any more.
    is_broken: bool,
}

/// What was sent, for as long as it is not too long to be compared.
#[derive(Debug, Clone, Default)]
enum Sent {
    #[default]
    Nothing,
    /// In a place of its own, because most calls of a turn have their arguments already.
    Text(Box<(SentText, Meaning)>),
    TooLong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    List,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Value,
    FirstItem,
    FirstKey,
    Key,
    Text {
        is_key: bool,
        escape: Escape,
    },
    Colon,
    /// The rest of `true`, `false` or `null`.
    Word(&'static str),
    Number(Digits),
    AfterValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// This many hexadecimal digits are missing.
    Hex(usize),
}

/// The newest part of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    Sign,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
}

impl Arguments {
    /// Adds a fragment. Returns the part of it that is to be sent.
    pub(super) fn add<'f>(&mut self, fragment: &'f str) -> &'f str {
        if self.is_broken {
            return "";
        }
        let good = fragment.bytes().take_while(|byte| self.read(*byte)).count();
        self.is_broken = good < fragment.len();
        self.has_text |= 0 < good;
        // Only within a text can other than ASCII be good, and there all of it is.
        let good = fragment.get(..good).unwrap_or_default();
        if let Sent::Text(sent) = &mut self.sent {
            sent.0.push(good);
            if COMPARED_BYTES < sent.0.bytes() {
                self.sent = Sent::TooLong;
            }
        }
        good
    }

    /// What is missing to make it the arguments of the complete call. `None` if it cannot become them.
    pub(super) fn rest_of(&self, whole: &str) -> Option<String> {
        let sent = match &self.sent {
            Sent::Nothing => return Some(whole.to_owned()),
            Sent::Text(sent) => &sent.0,
            // What is too long is not compared.
            Sent::TooLong => return Some(self.rest()),
        };
        if let Some(rest) = sent.rest_of(whole) {
            return Some(rest.to_owned());
        }
        // The same arguments can be written in several ways.
        let rest = self.rest();
        let whole: Value = serde_json::from_str(whole).ok()?;
        let is_same = self.meaning_with(&rest)? == meaning::of(&whole);
        is_same.then_some(rest)
    }

    /// What it means with this rest. `None` if that is not known.
    fn meaning_with(&self, rest: &str) -> Option<u64> {
        let mut completed = self.clone();
        for byte in rest.bytes() {
            completed.read(byte);
        }
        let Sent::Text(sent) = completed.sent else { return None };
        sent.1.whole()
    }

    /// What is missing to make it complete JSON. Empty if nothing was sent.
    pub(super) fn rest(&self) -> String {
        if !self.has_text {
            return String::new();
        }
        let mut rest = String::new();
        match self.state {
            State::Value if self.open.is_empty() => rest.push_str("{}"),
            State::Value => rest.push_str("null"),
            State::FirstItem | State::FirstKey | State::AfterValue => {}
            State::Key => rest.push_str("\"\":null"),
            State::Text { is_key, escape } => {
                match escape {
                    Escape::None => {}
                    Escape::Begun => rest.push('\\'),
                    Escape::Hex(missing) => rest.push_str(&"0".repeat(missing)),
                }
                rest.push_str(if is_key { "\":null" } else { "\"" });
            }
            State::Colon => rest.push_str(":null"),
            State::Word(missing) => rest.push_str(missing),
            State::Number(digits) if digits.is_complete() => {}
            State::Number(_) => rest.push('0'),
        }
        rest.extend(self.open.iter().rev().map(|container| match container {
            Container::Object => '}',
            Container::List => ']',
        }));
        rest
    }

    /// Reads one byte. Returns whether it continues the JSON.
    fn read(&mut self, byte: u8) -> bool {
        let before = self.state;
        if !self.step(byte) {
            return false;
        }
        if matches!(self.sent, Sent::Nothing) {
            self.sent = Sent::Text(Box::default());
        }
        if let Sent::Text(sent) = &mut self.sent {
            sent.1.see(before, byte, self.state);
        }
        true
    }

    fn step(&mut self, byte: u8) -> bool {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.state {
            State::Text { is_key, escape } => return self.text(is_key, escape, byte),
            State::Word(missing) => return self.word(missing, byte),
            State::Number(digits) => match digits.then(byte) {
                Some(digits) => self.state = State::Number(digits),
                None if digits.is_complete() => {
                    self.state = State::AfterValue;
                    return self.step(byte);
                }
                None => return false,
            },
            _ if is_space => {}
            State::FirstItem if byte == b']' => return self.close(Container::List),
            State::Value | State::FirstItem => return self.value(byte),
            State::FirstKey if byte == b'}' => return self.close(Container::Object),
            State::FirstKey | State::Key if byte == b'"' => {
                self.state = State::Text { is_key: true, escape: Escape::None };
            }
            State::Colon if byte == b':' => self.state = State::Value,
            State::AfterValue => match (byte, self.open.last()) {
                (b',', Some(Container::Object)) => self.state = State::Key,
                (b',', Some(Container::List)) => self.state = State::Value,
                (b'}', _) => return self.close(Container::Object),
                (b']', _) => return self.close(Container::List),
                _ => return false,
            },
            State::FirstKey | State::Key | State::Colon => return false,
        }
        true
    }

    fn value(&mut self, byte: u8) -> bool {
        self.state = match byte {
            b'"' => State::Text { is_key: false, escape: Escape::None },
            b'{' => return self.begin(Container::Object, State::FirstKey),
            b'[' => return self.begin(Container::List, State::FirstItem),
            b't' => State::Word("rue"),
            b'f' => State::Word("alse"),
            b'n' => State::Word("ull"),
            b'-' => State::Number(Digits::Sign),
            b'0' => State::Number(Digits::Zero),
            b'1'..=b'9' => State::Number(Digits::Whole),
            _ => return false,
        };
        true
    }

    fn begin(&mut self, container: Container, state: State) -> bool {
        if DEPTH <= self.open.len() {
            return false;
        }
        self.open.push(container);
        self.state = state;
        true
    }

    fn close(&mut self, container: Container) -> bool {
        let is_open = self.open.pop_if(|open| *open == container).is_some();
        if is_open {
            self.state = State::AfterValue;
        }
        is_open
    }

    fn text(&mut self, is_key: bool, escape: Escape, byte: u8) -> bool {
        let escape = match (escape, byte) {
            (Escape::None, b'"') => {
                self.state = if is_key { State::Colon } else { State::AfterValue };
                return true;
            }
            (Escape::None, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Hex(4),
            (Escape::None, b' '..)
            | (Escape::Begun, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::None,
            (Escape::Hex(missing), _) if byte.is_ascii_hexdigit() => {
                if missing == 1 {
                    Escape::None
                } else {
                    Escape::Hex(missing - 1)
                }
            }
            _ => return false,
        };
        self.state = State::Text { is_key, escape };
        true
    }

    fn word(&mut self, missing: &'static str, byte: u8) -> bool {
        let Some(rest) = missing.strip_prefix(char::from(byte)) else { return false };
        self.state = if rest.is_empty() { State::AfterValue } else { State::Word(rest) };
        true
    }
}

impl Digits {
    /// The next part. `None` if the byte does not continue the number.
    fn then(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Sign, b'0') => Self::Zero,
            (Self::Sign | Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::Power, b'0'..=b'9') => Self::Power,
            _ => return None,
        })
    }

    fn is_complete(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::Power)
    }
}

#[cfg(test)]
mod tests;
