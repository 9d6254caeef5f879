//! What is sent of arguments, and what is missing in the end.

use proptest::prelude::*;

use super::*;

const WHOLE: &str =
    r#" {"a": [1, -0.5e+10, true, null, {"é\u00e9\n\"": "x🦀\\"}, [], {}], "b": "", "c": 12} "#;

#[test]
fn a_cut_at_every_character_is_completed() {
    for (at, _) in WHOLE.char_indices().skip(1) {
        let mut arguments = Arguments::default();
        let sent = arguments.add(&WHOLE[..at]);
        assert_eq!(sent, &WHOLE[..at]);
        let whole = format!("{sent}{}", arguments.rest());
        serde_json::from_str::<Value>(&whole).unwrap_or_else(|error| panic!("{whole}: {error}"));
    }
    let mut arguments = Arguments::default();
    let sent: String = WHOLE.split_inclusive(' ').map(|piece| arguments.add(piece)).collect();
    assert_eq!((sent.as_str(), arguments.rest().as_str()), (WHOLE, ""), "nothing is added to what is whole");
    assert_eq!(Arguments::default().rest(), "");
}

#[test]
fn what_is_missing_is_found_by_its_letters_or_its_meaning() {
    for (sent, whole, rest) in [
        (r#"{"a": "#, r#"{"a": [1, 2]}"#, Some("[1, 2]}")),
        ("", "{}", Some("{}")),
        ("{}", "{}", Some("")),
        (r#"{ "a":1.0,"b":"\u00e9""#, r#"{"b":"é","a":1.0}"#, Some("}")),
        (r#"{"a":"#, r#"{"b":1}"#, None),
        (r#"{"a":1}"#, r#"{"a":2}"#, None),
        ("[1]", r#""x"#, None),
    ] {
        let mut arguments = Arguments::default();
        assert_eq!(arguments.add(sent), sent);
        assert_eq!(arguments.rest_of(whole).as_deref(), rest, "{sent} of {whole}");
    }
    let long = format!("\"{}", "x".repeat(COMPARED_BYTES));
    let mut arguments = Arguments::default();
    assert_eq!((arguments.add(&long).len(), arguments.rest_of("1").as_deref()), (long.len(), Some("\"")));
}

#[test]
fn what_does_not_continue_json_is_not_sent() {
    for (given, sent, rest) in [
        ("abc", "", ""),
        ("{]", "{", "}"),
        ("{\"a\":é", "{\"a\":", "null}"),
        ("[1,]", "[1,", "null]"),
        ("{} {}", "{} ", ""),
        ("\"\n\"", "\"", "\""),
        ("[01]", "[0", "]"),
        ("[\"\\x\"]", "[\"\\", "\\\"]"),
        (" ", " ", "{}"),
    ] {
        let mut arguments = Arguments::default();
        assert_eq!((arguments.add(given), arguments.rest().as_str()), (sent, rest), "{given}");
        assert_eq!(arguments.add("{}"), if given == " " { "{}" } else { "" });
    }
    let deep = "[".repeat(1000);
    let mut arguments = Arguments::default();
    assert_eq!(arguments.add(&deep).len(), DEPTH);
    assert_eq!(arguments.rest().len(), DEPTH);
}

/// JSON, and other ways to write it.
fn any_json() -> impl Strategy<Value = Value> {
    let number =
        prop::sample::select(vec!["0", "-0.0", "1", "-7", "1.0", "2.5e3", "1e20", "18446744073709551615"]);
    let text = prop::sample::select(vec!["", "a", "é", "🦀", "\"\n\\", "\u{8}/"]);
    let leaf = prop_oneof![
        number.prop_map(|number| serde_json::from_str(number).unwrap()),
        text.clone().prop_map(Value::from),
        prop::sample::select(vec![Value::Null, true.into(), false.into()]),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..3).prop_map(|entries| entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

fn escaped(text: &str) -> String {
    let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    format!("\"{}\"", units.concat())
}

/// Writes JSON in another way: with spaces, all texts escaped, and the keys in the other order.
fn written_otherwise(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ,\n");
    match value {
        Value::String(text) => escaped(text),
        Value::Array(items) => format!(" [ {}\t]", joined(items.iter().map(written_otherwise).collect())),
        Value::Object(entries) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{} : {}", escaped(key), written_otherwise(value));
            format!("{{{} }}", joined(entries.iter().rev().map(entry).collect()))
        }
        other => other.to_string(),
    }
}

/// What is missing, found with the whole text that was sent.
fn rest_by_text(sent: &str, rest: &str, whole: &str) -> Option<String> {
    if let Some(rest) = whole.strip_prefix(sent.trim_start()) {
        return Some(rest.to_owned());
    }
    let completed: Value = serde_json::from_str(&format!("{sent}{rest}")).ok()?;
    (serde_json::from_str::<Value>(whole).ok()? == completed).then(|| rest.to_owned())
}

proptest! {
    #[test]
    fn what_is_kept_finds_the_same_as_the_text(
        (one, other) in (any_json(), any_json()),
        is_same: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 3),
    ) {
        let whole = if is_same { &one } else { &other }.to_string();
        for given in [one.to_string(), written_otherwise(&one), format!("{one:#}"), format!(" {one} x")] {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| given.floor_char_boundary(cut.index(given.len() + 1))).collect();
            cuts.sort_unstable();
            for end in [cuts[2], given.len()] {
                let mut arguments = Arguments::default();
                let pieces = [&given[..cuts[0]], &given[cuts[0]..cuts[1]], &given[cuts[1]..end]];
                let sent = pieces.map(|piece| arguments.add(piece)).concat();
                let expected = rest_by_text(&sent, &arguments.rest(), &whole);
                prop_assert_eq!(arguments.rest_of(&whole), expected, "{} of {}", sent, whole);
            }
        }
    }
}

#[test]
fn what_is_no_text_or_number_and_a_key_that_comes_twice_are_never_the_same() {
    for (sent, whole) in [
        (r#"["\ud83e"]"#, r#"["?"]"#),
        (r#"["\ud83ex"]"#, r#"["x"]"#),
        (r#"["\udd80"]"#, r#"[""]"#),
        ("[1e999]", "[1]"),
        ("[null]", "[true]"),
        (r#"{"a":1,"a":2}"#, r#"{ "a":1}"#),
        (r#"{"a":{"x":1},"a":{"y":2}}"#, r#"{ "a":{"x":1,"y":2}}"#),
        (r#"{"a":2,"a":1}"#, r#"{"a":1,"a":2}"#),
        ("[[1],2]", "[ [1,2]]"),
        (r#"{"a":"b"}"#, r#"{"b":"a"}"#),
    ] {
        let mut arguments = Arguments::default();
        assert_eq!((arguments.add(sent), arguments.rest_of(whole)), (sent, None), "{sent} of {whole}");
    }
}

#[test]
fn what_is_kept_does_not_grow_with_what_is_sent() {
    let kept = |arguments: &Arguments| format!("{arguments:?}").len();
    let (mut short, mut long) = (Arguments::default(), Arguments::default());
    short.add("{\"text\": \"x");
    long.add("{\"text\": \"");
    for _ in 0..900 {
        assert_eq!(long.add(&"x".repeat(1 << 10)).len(), 1 << 10);
    }
    assert!(kept(&long) < kept(&short) + 100, "{} and {} bytes", kept(&long), kept(&short));
    let mut digits = Arguments::default();
    digits.add(&"1".repeat(900 << 10));
    assert!(kept(&digits) < 10_000, "{} bytes for a number", kept(&digits));
    let mut deep = Arguments::default();
    deep.add(&"{\"a\":".repeat(1000));
    assert!(kept(&deep) < 20_000, "{} bytes for what is nested", kept(&deep));
}
