//! Finds valid JSON that common parsers cannot read.

use std::fmt;

/// Why common parsers cannot read some valid JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stumble {
    Number,
    HalfPair,
    Depth,
}

impl fmt::Display for Stumble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "contains a number that is too large for a double",
            Self::HalfPair => "contains an unpaired surrogate (\\ud800 to \\udfff)",
            Self::Depth => "is nested too deeply",
        })
    }
}

/// Maximum nesting depth of foreign JSON. Parsers commonly stop at 128 levels, and frames add some levels.
const DEPTH: usize = 100;

/// The first obstacle in `json`, which must be valid JSON. `None` if common parsers can read it.
pub(crate) fn stumble(json: &str) -> Option<Stumble> {
    let bytes = json.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => match after_string(bytes, at + 1) {
                Some(after) => {
                    at = after;
                    continue;
                }
                None => return Some(Stumble::HalfPair),
            },
            b'{' | b'[' => {
                depth += 1;
                if DEPTH < depth {
                    return Some(Stumble::Depth);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                let number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = bytes[at..].iter().take_while(|byte| number(byte)).count();
                if is_too_large(&json[at..at + length]) {
                    return Some(Stumble::Number);
                }
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Any number with so many digits is less than the largest double, which has 309.
const DIGITS: usize = 308;

fn is_too_large(number: &str) -> bool {
    // Most numbers are short and have no exponent, and need not be parsed.
    let is_known = number.len() <= DIGITS && !number.contains(['e', 'E']);
    !is_known && number.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// The index after the string whose text begins at `at`. `None` if the string contains an unpaired surrogate.
fn after_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return Some(bytes.len());
        };
        at += length;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += match (unit(bytes, at), unit(bytes, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => return None,
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
}

/// The code unit of the `\u1234` escape at `at`. `None` if there is no such escape.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_readable_is_read_and_nothing_else() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let cases = [
            (r#"{"a":[1,-2.5e3,1e308,0e999,"1e400","\\ud800","\"","\ud83d\ude00","é"]}"#.to_owned(), None),
            (r#"{"a":1e400}"#.to_owned(), Some(Stumble::Number)),
            ("-1E+999".to_owned(), Some(Stumble::Number)),
            ("1".repeat(400), Some(Stumble::Number)),
            ("9".repeat(308), None),
            ("9".repeat(309), Some(Stumble::Number)),
            (r#""\ud800""#.to_owned(), Some(Stumble::HalfPair)),
            (r#"{"\udc00":1}"#.to_owned(), Some(Stumble::HalfPair)),
            (r#""\ud800\u0041""#.to_owned(), Some(Stumble::HalfPair)),
            (r#""\\\ud800""#.to_owned(), Some(Stumble::HalfPair)),
            (deep(DEPTH), None),
            (deep(130), Some(Stumble::Depth)),
        ];
        for (json, expected) in cases {
            assert_eq!(stumble(&json), expected, "{json}");
            let read = serde_json::from_str::<serde_json::Value>(&json);
            assert_eq!(read.is_err(), expected.is_some(), "{json}: {read:?}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_survived() {
        for text in ["\"", "\"\\", "\"\\u", "\"\\u12", "\"\\ud800", "\"\\ud800\\", "}", "-", "é", "\"é\\é"]
        {
            stumble(text);
        }
    }
}
