//! The TypeScript types of the client library, generated from the types that write the JSON. The two cannot differ,
//! because a test compares the file in the repository with the generated text.

use std::fmt::Write as _;
use std::{env, fs};

use tokenrail_domain::{AgentStatus, ErrorClass, MessageOutcome, TurnOutcome};
use ts_rs::{Config, TS};

use super::{agent, deltas, frames, message, permission, requests, turn};
use crate::error::{Code, FieldProblem, ProblemDto};
use crate::json::{AgentErrorDto, AgentRefDto, IdText, IsoTime, Json};

/// The file in the client library.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/client/src/generated/wire.ts");
/// If this variable is set, the test writes the file instead of comparing it.
const WRITE: &str = "TOKENRAIL_WRITE_TYPES";

const HEAD: &str = "// Generated from the server's types; do not edit. To regenerate:\n\
     // TOKENRAIL_WRITE_TYPES=1 cargo test --workspace --lib typescript\n";

/// The declarations so far.
pub(super) struct Declarations {
    config: Config,
    text: String,
}

impl Declarations {
    /// Adds one type, with the documentation of its Rust type.
    pub(super) fn of<T: TS>(&mut self) {
        let docs = short_comments(&T::docs().unwrap_or_default());
        let declared = laid_out(&T::decl(&self.config));
        // Writing to a string cannot fail.
        let _ = write!(self.text, "\n{docs}export {declared}\n");
    }

    /// Adds a type whose values are a fixed set of words.
    fn words<'a>(&mut self, name: &str, about: &str, words: impl IntoIterator<Item = &'a str>) {
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

fn declarations() -> String {
    // Event numbers stay below 2^53, and JSON.parse returns numbers in any case.
    let config = Config::new().with_large_int("number");
    let mut out = Declarations { config, text: HEAD.to_owned() };
    words(&mut out);
    out.of::<IdText>();
    out.of::<IsoTime>();
    out.of::<Json<'_>>();
    shared(&mut out);
    agent::declare(&mut out);
    message::declare(&mut out);
    deltas::declare(&mut out);
    turn::declare(&mut out);
    permission::declare(&mut out);
    requests::declare(&mut out);
    frames::declare(&mut out);
    out.text
}

fn words(out: &mut Declarations) {
    out.words("AgentStatus", "What an agent is doing.", AgentStatus::ALL.map(AgentStatus::as_str));
    out.words("TurnOutcome", "How a turn ended.", TurnOutcome::ALL.map(TurnOutcome::as_str));
    out.words("MessageOutcome", "How a message ended.", MessageOutcome::ALL.map(MessageOutcome::as_str));
    out.words(
        "ErrorClass",
        "The class of an error, which says what can be done about it.",
        ErrorClass::ALL.map(ErrorClass::as_str),
    );
    out.words("ProblemCode", "Why a request was refused.", Code::ALL.iter().map(|code| code.as_str()));
}

/// Declares the types that other vocabularies share with this one.
fn shared(out: &mut Declarations) {
    out.of::<AgentErrorDto<'_>>();
    out.of::<AgentRefDto>();
    out.of::<ProblemDto<'_>>();
    out.of::<FieldProblem>();
}

#[test]
fn typescript_types_are_those_of_the_client_library() {
    let made = declarations();
    if env::var_os(WRITE).is_some() {
        fs::write(FILE, &made).unwrap();
    }
    let kept = fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        kept == made,
        "the client library's types are stale; regenerate them: {WRITE}=1 cargo test --workspace --lib typescript"
    );
}
