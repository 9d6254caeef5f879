//! UUIDs in raw lines. As text they have 36 characters, which no compressor reduces to less than 18 bytes. As numbers
//! they have 16 bytes.
//!
//! Agents print a random UUID with every line. If it is taken out, it costs only its 16 bytes, and the text around it
//! becomes one long repetition.

use std::collections::HashSet;

use super::MalformedBatch;

/// Stands in place of a UUID.
const MARK: u8 = 0xff;
/// The next byte stands for itself. Neither of the two bytes occurs in UTF-8, so this is hardly ever needed.
const ESCAPE: u8 = 0xfe;

const TEXT_BYTES: usize = 36;
const UUID_BYTES: usize = 16;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Returns the lines with marks, and the UUIDs in the order of their marks. A UUID that occurred before stays in the
/// text: such a UUID, for example a session id, repeats together with its line.
pub(super) fn take_out(raw: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut marked = Vec::with_capacity(raw.len());
    let mut uuids = Vec::new();
    let mut seen = HashSet::new();
    let mut rest = raw;
    while let Some((&byte, after)) = rest.split_first() {
        if byte.is_ascii_hexdigit()
            && let Some((text, after)) = rest.split_first_chunk::<TEXT_BYTES>()
            && let Some(uuid) = parse(text)
        {
            if seen.insert(uuid) {
                marked.push(MARK);
                uuids.extend_from_slice(&uuid);
            } else {
                marked.extend_from_slice(text);
            }
            rest = after;
            continue;
        }
        if ESCAPE <= byte {
            marked.push(ESCAPE);
        }
        marked.push(byte);
        rest = after;
    }
    (marked, uuids)
}

/// The inverse of [`take_out`]. The result has at most `bytes_max` bytes.
pub(super) fn put_back(marked: &[u8], uuids: &[u8], bytes_max: usize) -> Result<Vec<u8>, MalformedBatch> {
    let bytes = marked.len() + uuids.len() / UUID_BYTES * TEXT_BYTES;
    if bytes_max < bytes {
        return Err(MalformedBatch);
    }
    let mut raw = Vec::with_capacity(bytes);
    let (mut rest, mut uuids) = (marked, uuids);
    while let Some(at) = memchr::memchr2(MARK, ESCAPE, rest) {
        raw.extend_from_slice(&rest[..at]);
        if rest[at] == MARK {
            let (uuid, after) = uuids.split_first_chunk::<UUID_BYTES>().ok_or(MalformedBatch)?;
            write(&mut raw, uuid);
            uuids = after;
            rest = &rest[at + 1..];
        } else {
            raw.push(*rest.get(at + 1).ok_or(MalformedBatch)?);
            rest = &rest[at + 2..];
        }
    }
    raw.extend_from_slice(rest);
    Ok(raw)
}

/// Parses only the spelling that [`write`] writes: with hyphens, in lower case.
fn parse(text: &[u8; TEXT_BYTES]) -> Option<[u8; UUID_BYTES]> {
    if HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut uuid = [0; UUID_BYTES];
    let mut nibbles =
        text.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at)).map(|(_, c)| nibble(*c));
    for byte in &mut uuid {
        *byte = nibbles.next()?? << 4 | nibbles.next()??;
    }
    Some(uuid)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn write(out: &mut Vec<u8>, uuid: &[u8; UUID_BYTES]) {
    let mut text = [0; TEXT_BYTES];
    uuid::Uuid::from_bytes(*uuid).hyphenated().encode_lower(&mut text);
    out.extend_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(raw: &[u8]) -> usize {
        let (marked, uuids) = take_out(raw);
        assert_eq!(put_back(&marked, &uuids, usize::MAX).as_deref(), Ok(raw));
        uuids.len() / UUID_BYTES
    }

    #[test]
    fn only_new_lower_case_uuids_are_taken_out() {
        let one = "c65dc608-c2d3-4975-9aa0-b13997f83911";
        assert_eq!(there_and_back(one.as_bytes()), 1);
        assert_eq!(there_and_back(format!("{one}{one}").as_bytes()), 1);
        assert_eq!(there_and_back(format!("a{one}0").as_bytes()), 1);
        assert_eq!(there_and_back(format!("\"{one}\"").as_bytes()), 1);
        assert_eq!(there_and_back(one.to_uppercase().as_bytes()), 0);
        assert_eq!(there_and_back(one.replace('-', "0").as_bytes()), 0);
        assert_eq!(there_and_back(&one.as_bytes()[1..]), 0);
    }

    #[test]
    fn what_was_not_written_here_is_refused() {
        assert_eq!(put_back(&[MARK], &[0; 15], 1000), Err(MalformedBatch));
        assert_eq!(put_back(&[ESCAPE], &[], 1000), Err(MalformedBatch));
        assert_eq!(put_back(&[0; 11], &[], 10), Err(MalformedBatch));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(
            parts in prop::collection::vec(
                prop_oneof!["[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[0-9a-f-]{0,9}", ".{0,9}"],
                0..20,
            ),
        ) {
            there_and_back(parts.concat().as_bytes());
        }

        #[test]
        fn marks_and_escapes_come_back(raw in prop::collection::vec(0xf8_u8..=0xff, 0..100)) {
            there_and_back(&raw);
        }
    }
}
