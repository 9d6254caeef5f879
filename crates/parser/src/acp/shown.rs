//! The result of a tool, in the form in which it is displayed.

use serde_json::value::RawValue;
use tokenrail_domain::JsonText;

use super::lines::Block;
use super::terminals::Terminals;
use crate::fields::{self, raw_structs};

raw_structs! {
    /// The fields that tools that run programs put into their output.
    struct Output {
        exit,
        #[serde(alias = "exitCode")]
        exit_code,
        metadata,
    }
}

/// Whether a program of the tool has failed. Agents report such a call as completed.
pub(super) fn is_failure(output: &JsonText) -> bool {
    let output: &RawValue = match serde_json::from_str(output.as_str()) {
        Ok(output) => output,
        Err(_) => return false,
    };
    let outer: Output<'_> = fields::read(Some(output));
    let inner: Output<'_> = fields::read(outer.metadata);
    let codes = [outer.exit, outer.exit_code, inner.exit, inner.exit_code];
    codes.into_iter().any(|code| fields::number::<i64>(code).is_some_and(|code| code != 0))
}

/// The result: a string, or otherwise the unchanged JSON.
///
/// Agents send the same result twice, as content for display and as output for programs. An output that is a string is
/// the plainer one, except for file changes, which only the content has.
pub(super) fn result(
    content: Option<&JsonText>,
    output: Option<&JsonText>,
    terminals: &Terminals,
) -> JsonText {
    let pieces: Vec<&RawValue> =
        content.and_then(|content| serde_json::from_str(content.as_str()).ok()).unwrap_or_default();
    let blocks: Vec<Block<'_>> = pieces.iter().map(|piece| fields::read(Some(piece))).collect();
    let changes_files = blocks.iter().any(|block| fields::text(block.kind).as_deref() == Some("diff"));
    let plain = output.filter(|output| output.as_str().starts_with('"'));
    match (content, plain, output) {
        (_, Some(plain), _) if !changes_files => plain.clone(),
        (Some(content), _, _) if !blocks.is_empty() => {
            let texts: Option<Vec<String>> = blocks.iter().map(|block| text(block, terminals)).collect();
            let Some(mut texts) = texts else { return content.clone() };
            let shown: Vec<String> = blocks.iter().filter_map(terminal).collect();
            texts.extend(terminals.texts_without(&shown));
            JsonText::string(&texts.join("\n"))
        }
        // Commands that only read have no terminal in the call, but send their output in the same way.
        _ if !terminals.are_none() => {
            JsonText::string(&terminals.texts_without(&[]).collect::<Vec<_>>().join("\n"))
        }
        (_, _, Some(output)) => output.clone(),
        _ => JsonText::string(""),
    }
}

/// A piece as text. `None` if it is not text.
fn text(piece: &Block<'_>, terminals: &Terminals) -> Option<String> {
    match &*fields::text(piece.kind)? {
        "content" => {
            let block: Block<'_> = fields::read(piece.content);
            let is_text = fields::text(block.kind)? == "text";
            fields::text(block.text).filter(|_| is_text).map(Into::into)
        }
        "diff" => {
            let of = |raw| fields::text(raw).unwrap_or_default();
            Some(difference(&of(piece.path), &of(piece.old), &of(piece.new)))
        }
        // A terminal without any output is shown by its name.
        "terminal" => {
            let id = fields::text(piece.terminal)?;
            Some(terminals.text_of(&id).unwrap_or_else(|| format!("[terminal {id}]")))
        }
        _ => None,
    }
}

/// The id of the terminal, if the piece is one.
fn terminal(piece: &Block<'_>) -> Option<String> {
    let is_terminal = fields::text(piece.kind)? == "terminal";
    fields::text(piece.terminal).filter(|_| is_terminal).map(Into::into)
}

/// A file change: its path, and the lines from the first to the last difference.
fn difference(path: &str, old: &str, new: &str) -> String {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    old.drain(..same);
    new.drain(..same);
    let same_at_end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.truncate(old.len() - same_at_end);
    new.truncate(new.len() - same_at_end);
    let mut out = format!("{path}, from line {}", same + 1);
    for (sign, lines) in [('-', old), ('+', new)] {
        for line in lines {
            out.push('\n');
            out.push(sign);
            out.push_str(line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, output: Option<&str>, expected: &str) {
        let content = JsonText::new_unchecked(content);
        let output = output.map(JsonText::new_unchecked);
        assert_eq!(result(Some(&content), output.as_ref(), &Terminals::default()).as_str(), expected);
    }

    #[test]
    fn text_is_shown_as_text() {
        let content = r#"[{"type":"content","content":{"type":"text","text":"a"}},{"type":"terminal","terminalId":"t"}]"#;
        check(content, None, r#""a\n[terminal t]""#);
        check("[]", None, r#""""#);
        check("7", Some("7"), "7");
    }

    #[test]
    fn an_output_that_is_a_string_is_shown_rather_than_the_same_with_ornaments() {
        let content = r#"[{"type":"content","content":{"type":"text","text":"```a```"}}]"#;
        check(content, Some(r#""a""#), r#""a""#);
        check(content, Some(r#"{"a":1}"#), r#""```a```""#);
        check("[]", Some(r#"{"a":1}"#), r#"{"a":1}"#);
    }

    #[test]
    fn a_change_of_a_file_is_shown_by_its_lines() {
        let change =
            |old: &str| format!(r#"[{{"type":"diff","path":"/p","oldText":{old},"newText":"a\nB\nc\n"}}]"#);
        check(&change(r#""a\nb\nb\nc\n""#), Some(r#""ok""#), r#""/p, from line 2\n-b\n-b\n+B""#);
        check(&change("null"), None, r#""/p, from line 1\n+a\n+B\n+c""#);
        check(&change(r#""a\nB\nc\n""#), None, r#""/p, from line 4""#);
    }

    #[test]
    fn what_is_no_text_is_shown_as_it_is() {
        let picture =
            r#"[{"type":"content","content":{"type":"image","data":"AA==","mimeType":"image/png"}}]"#;
        check(picture, None, picture);
    }

    #[test]
    fn a_program_that_has_failed_is_a_failure() {
        for output in [r#"{"exitCode":1}"#, r#"{"exit_code":-1}"#, r#"{"metadata":{"exit":3}}"#] {
            assert!(is_failure(&JsonText::new_unchecked(output)), "{output}");
        }
        for output in [r#"{"exitCode":0}"#, r#"{"exit":null}"#, "\"1\"", "{}"] {
            assert!(!is_failure(&JsonText::new_unchecked(output)), "{output}");
        }
    }
}
