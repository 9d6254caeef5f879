//! Rust types as TypeScript declarations.

use std::fmt::Write as _;

use ts_rs::{Config, TS};

/// The declarations so far.
pub(super) struct Declarations {
    config: Config,
    text: String,
}

impl Declarations {
    pub(super) fn new(head: &str) -> Self {
        // Event numbers stay below 2^53, and JSON.parse returns numbers in any case.
        Self { config: Config::new().with_large_int("number"), text: head.to_owned() }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds one type, with the documentation of its Rust type.
    pub(super) fn of<T: TS>(&mut self) {
        let docs = short_comments(&T::docs().unwrap_or_default());
        let declared = laid_out(&T::decl(&self.config));
        // Writing to a string cannot fail.
        let _ = write!(self.text, "\n{docs}export {declared}\n");
    }

    /// Adds a type whose values are a fixed set of words.
    pub(super) fn words<'a>(&mut self, name: &str, about: &str, words: impl IntoIterator<Item = &'a str>) {
        let words: Vec<_> = words.into_iter().map(|word| format!("\"{word}\"")).collect();
        let _ = write!(self.text, "\n/** {about} */\nexport type {name} =\n  | {};\n", words.join("\n  | "));
    }
}

/// Puts each comment that has one line on one line.
fn short_comments(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, comment)) = rest.split_once("/**\n * ") {
        let Some((inside, after)) = comment.split_once("\n */") else { break };
        out.push_str(before);
        let (open, close) = if inside.contains('\n') { ("/**\n * ", "\n */") } else { ("/** ", " */") };
        out.extend([open, inside, close]);
        rest = after;
    }
    out + rest
}

/// Puts each field of an object on its own line. A union of objects stays unchanged.
fn laid_out(declared: &str) -> String {
    if declared.contains("} | {") {
        return declared.to_owned();
    }
    let mut out = String::new();
    let mut depth = 0;
    let text = short_comments(declared);
    let mut rest = text.as_str();
    while let Some(char) = rest.chars().next() {
        let comment = rest.starts_with("/*").then(|| rest.find("*/")).flatten().map(|end| end + 2);
        let (taken, after) = rest.split_at(comment.unwrap_or(char.len_utf8()));
        rest = after;
        match char {
            _ if comment.is_some() => out.push_str(&taken.replace('\n', "\n  ")),
            '{' | '[' | '<' => depth += 1,
            '}' | ']' | '>' => depth -= 1,
            _ => {}
        }
        match char {
            _ if comment.is_some() => {}
            '\n' => out.push_str("\n  "),
            ',' if depth == 1 => out.push_str(";\n  "),
            '{' if depth == 1 => out.push_str("{\n  "),
            _ => out.push(char),
        }
        if depth == 1 && out.ends_with("\n  ") {
            rest = rest.trim_start();
        }
        if depth == 0 && char == '}' {
            out.truncate(out.trim_end_matches('}').trim_end().len());
            out.push_str("\n}");
        }
    }
    out
}
