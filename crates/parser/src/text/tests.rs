use std::fmt::Write;

use proptest::prelude::*;

use super::*;

fn check(pieces: &[&str], expected: &str) {
    let mut joiner = SurrogateJoiner::default();
    let mut text: String = pieces.iter().map(|piece| joiner.push(piece).unwrap()).collect();
    text.extend(joiner.finish());
    assert_eq!(text, expected, "{pieces:?}");
}

#[test]
fn every_escape_is_read() {
    check(&[r#""\"\\\/\b\f\n\r\t\u00e9\u0000\uD83D\ude00""#], "\"\\/\u{8}\u{c}\n\r\té\0😀");
    check(&["\"raw \u{2028} é 😀\""], "raw \u{2028} é 😀");
    check(&[r#""""#], "");
}

#[test]
fn halves_of_a_pair_are_joined_across_pieces() {
    check(&[r#""a\ud83d""#, r#""\ude00b""#], "a😀b");
    check(&[r#""\ud83d""#, r#""""#, r#""\ude00""#], "😀");
    check(&[r#""\ud83d""#, r#""\ude00\ud83d""#, r#""\ude01""#], "😀😁");
}

#[test]
fn a_half_that_stays_alone_is_replaced() {
    check(&[r#""\ud83d""#], "\u{fffd}");
    check(&[r#""\ud83d then""#], "\u{fffd} then");
    check(&[r#""\ud83d""#, r#""then""#], "\u{fffd}then");
    check(&[r#""\ude00x""#], "\u{fffd}x");
    check(&[r#""\ud83d\ud83d\ude00""#], "\u{fffd}😀");
    check(&[r#""\ud83d\n""#], "\u{fffd}\n");
    check(&[r#""\ude00\ude00""#], "\u{fffd}\u{fffd}");
}

#[test]
fn only_a_string_is_a_text() {
    for other in ["null", "5", "{}", "[\"a\"]", "true", "", "\""] {
        assert_eq!(decode(other), None, "{other}");
    }
    assert_eq!(decode(r#""a""#).as_deref(), Some("a"));
}

#[test]
fn a_text_without_escapes_is_not_copied() {
    assert!(matches!(decode("\"plain\""), Some(Cow::Borrowed("plain"))));
}

proptest! {
    #[test]
    fn a_valid_string_reads_as_a_strict_reader_reads_it(text in any::<String>(), ascii in any::<bool>()) {
        let json = if ascii { escape_all(&text) } else { serde_json::to_string(&text).unwrap() };
        prop_assert_eq!(decode(&json).unwrap(), serde_json::from_str::<String>(&json).unwrap());
        prop_assert_eq!(decode(&json).unwrap(), text);
    }

    #[test]
    fn cutting_between_units_changes_nothing(text in any::<String>(), cuts in prop::collection::vec(1_usize..4, 0..20)) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let (mut rest, mut joiner, mut joined) = (&units[..], SurrogateJoiner::default(), String::new());
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            joined.push_str(&joiner.push(&escape_units(piece.iter().copied())).unwrap());
            rest = after;
        }
        joined.extend(joiner.finish());
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn any_text_gives_something(text in any::<String>(), tail in r#"[\\u"0-9a-fA-F]{0,12}"#) {
        let _ = decode(&format!("\"{text}{tail}\""));
    }
}

fn escape_all(text: &str) -> String {
    escape_units(text.encode_utf16())
}

fn escape_units(units: impl Iterator<Item = u16>) -> String {
    let mut json = String::from("\"");
    for unit in units {
        write!(json, "\\u{unit:04x}").unwrap();
    }
    json.push('"');
    json
}
