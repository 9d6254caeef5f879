//! The TypeScript types of the client library, generated from the types that write the JSON. The two cannot differ,
//! because a test compares the file in the repository with the generated text.

use std::{env, fs};

use tokenrail_domain::{AgentStatus, ErrorClass, MessageOutcome, TurnOutcome};

use super::declarations::Declarations;
use super::{agent, changes, deltas, frames, message, node, permission, question, requests, turn};
use crate::error::{Code, FieldProblem, ProblemDto};
use crate::json::{AgentErrorDto, AgentRefDto, IdText, IsoTime, Json};

/// The file in the client library.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/client/src/generated/wire.ts");
/// If this variable is set, the test writes the file instead of comparing it.
const WRITE: &str = "TOKENRAIL_WRITE_TYPES";

const HEAD: &str = "// Generated from the server's types; do not edit. To regenerate:\n\
     // TOKENRAIL_WRITE_TYPES=1 cargo test --workspace --lib typescript\n";

fn declarations() -> String {
    let mut out = Declarations::new(HEAD);
    words(&mut out);
    out.of::<IdText>();
    out.of::<IsoTime>();
    out.of::<Json<'_>>();
    shared(&mut out);
    node::declare(&mut out);
    agent::declare(&mut out);
    message::declare(&mut out);
    deltas::declare(&mut out);
    turn::declare(&mut out);
    changes::declare(&mut out);
    permission::declare(&mut out);
    question::declare(&mut out);
    requests::declare(&mut out);
    frames::declare(&mut out);
    out.into_text()
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
