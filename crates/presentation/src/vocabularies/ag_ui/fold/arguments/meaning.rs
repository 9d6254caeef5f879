//! What JSON means, however it is written: a hash that does not depend on white space, escapes, the writing of numbers
//! and the order of keys.
//!
//! While the JSON is read, only what is open is kept. So a key that comes twice is not noticed: such an object means
//! something else than any other.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::sent_text::write;
use super::{Escape, State};

/// The longest number whose meaning is known, in bytes.
const NUMBER_BYTES: usize = 1 << 10;

/// What JSON means that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Meaning {
    open: Vec<Level>,
    text: Text,
    /// The bytes of a number so far.
    number: Vec<u8>,
    whole: Option<u64>,
    /// It has something whose meaning is not known.
    is_unknown: bool,
}

/// An object or list that is open.
#[derive(Debug, Clone, Copy)]
enum Level {
    /// The sum of its entries, and the newest key.
    Object(u64, u64),
    /// Its items so far.
    List(u64),
}

/// A text that is open.
#[derive(Debug, Clone, Default)]
struct Text {
    hash: DefaultHasher,
    /// The digits of an escape so far.
    unit: u16,
    /// The first half of a character that is written as two escapes.
    high: Option<u16>,
}

impl Meaning {
    /// Sees a byte that continues the JSON, and the states before and after it.
    pub(super) fn see(&mut self, before: State, byte: u8, after: State) {
        if matches!(after, State::Number(_)) {
            if NUMBER_BYTES <= self.number.len() {
                self.is_unknown = true;
            } else {
                self.number.push(byte);
            }
            return;
        }
        self.end_number();
        match (before, after) {
            (State::Text { escape, .. }, State::Text { .. }) => {
                self.is_unknown |= self.text.see(escape, byte).is_none();
            }
            (State::Text { is_key, .. }, _) => self.end_text(is_key),
            (_, State::Text { .. }) => self.text = Text::default(),
            (State::Word(_), _) => {}
            (_, State::Word(rest)) => self.value(of_word(rest)),
            _ => self.punctuation(byte),
        }
    }

    /// The hash of the whole. `None` if it is not known.
    pub(super) fn whole(mut self) -> Option<u64> {
        self.end_number();
        self.whole.filter(|_| !self.is_unknown)
    }

    fn punctuation(&mut self, byte: u8) {
        match byte {
            b'{' => self.open.push(Level::Object(0, 0)),
            b'[' => self.open.push(Level::List(0)),
            b'}' | b']' => match self.open.pop() {
                Some(Level::Object(entries, _)) => self.value(of_object(entries)),
                Some(Level::List(items)) => self.value(of_list(items)),
                None => {}
            },
            _ => {}
        }
    }

    fn end_number(&mut self) {
        if self.number.is_empty() {
            return;
        }
        match serde_json::from_slice(&self.number) {
            Ok(number) => self.value(of(&number)),
            Err(_) => self.is_unknown = true,
        }
        self.number = Vec::new();
    }

    fn end_text(&mut self, is_key: bool) {
        let Text { hash, high, .. } = std::mem::take(&mut self.text);
        self.is_unknown |= high.is_some();
        let text = of_text(&hash);
        match self.open.last_mut() {
            Some(Level::Object(_, key)) if is_key => *key = text,
            _ => self.value(text),
        }
    }

    /// A value is complete.
    fn value(&mut self, value: u64) {
        match self.open.last_mut() {
            Some(Level::Object(entries, key)) => *entries = with_entry(*entries, *key, value),
            Some(Level::List(items)) => *items = with_item(*items, value),
            None => self.whole = Some(value),
        }
    }
}

impl Text {
    /// Sees a byte within the text. `None` if that can be no text.
    fn see(&mut self, escape: Escape, byte: u8) -> Option<()> {
        let plain = match (escape, byte) {
            (Escape::None, b'\\') | (Escape::Begun, b'u') => return Some(()),
            (Escape::Hex(missing), _) => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                self.unit = self.unit << 4 | digit as u16;
                return if missing == 1 { self.end_unit() } else { Some(()) };
            }
            (Escape::Begun, b'b') => 8,
            (Escape::Begun, b'f') => 12,
            (Escape::Begun, b'n') => b'\n',
            (Escape::Begun, b'r') => b'\r',
            (Escape::Begun, b't') => b'\t',
            _ => byte,
        };
        self.hash.write_u8(plain);
        self.high.is_none().then_some(())
    }

    /// Four digits are complete: a character, or half of one.
    fn end_unit(&mut self) -> Option<()> {
        let unit = std::mem::take(&mut self.unit);
        if self.high.is_none() && matches!(unit, 0xD800..0xDC00) {
            self.high = Some(unit);
            return Some(());
        }
        let character = char::decode_utf16(self.high.take().into_iter().chain([unit])).next()?.ok()?;
        write(&mut self.hash, character.encode_utf8(&mut [0; 4]));
        Some(())
    }
}

/// The hash of a value.
pub(super) fn of(value: &Value) -> u64 {
    match value {
        Value::Null => of_word("ull"),
        Value::Bool(true) => of_word("rue"),
        Value::Bool(false) => of_word("alse"),
        Value::Number(number) => {
            let mut hash = DefaultHasher::new();
            number.hash(&mut hash);
            mixed(b'0', [u64::from(number.is_f64()), hash.finish()])
        }
        Value::String(text) => of_letters(text),
        Value::Array(items) => of_list(items.iter().fold(0, |so_far, item| with_item(so_far, of(item)))),
        Value::Object(entries) => {
            let add =
                |so_far, (key, value): (&String, &Value)| with_entry(so_far, of_letters(key), of(value));
            of_object(entries.iter().fold(0, add))
        }
    }
}

fn of_letters(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    write(&mut hash, text);
    of_text(&hash)
}

fn of_text(hash: &DefaultHasher) -> u64 {
    mixed(b'"', [hash.finish(), 0])
}

/// `rest`: the word without its first letter.
fn of_word(rest: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    write(&mut hash, rest);
    mixed(b'w', [hash.finish(), 0])
}

fn of_list(items: u64) -> u64 {
    mixed(b'[', [items, 0])
}

fn of_object(entries: u64) -> u64 {
    mixed(b'{', [entries, 0])
}

fn with_item(items: u64, item: u64) -> u64 {
    mixed(b',', [items, item])
}

/// A sum, because the order of keys has no meaning.
fn with_entry(entries: u64, key: u64, value: u64) -> u64 {
    entries.wrapping_add(mixed(b':', [key, value]))
}

fn mixed(kind: u8, parts: [u64; 2]) -> u64 {
    let mut hash = DefaultHasher::new();
    hash.write_u8(kind);
    for part in parts {
        hash.write_u64(part);
    }
    hash.finish()
}
