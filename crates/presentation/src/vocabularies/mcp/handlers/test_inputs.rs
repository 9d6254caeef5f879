//! Tools that ask the client for input, and a prompt that does, with the names that the conformance suite of MCP
//! requires. A server has them only with `--test-routes`, and only for clients of the newest version.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use crate::error::Problem;
use crate::vocabularies::mcp::dto::{
    CallToolResult, Caller, ContentDto, Done, Failed, Params, PromptResult, SentInputs, asked_inputs,
    sent_inputs, state_changed,
};

/// The prompt that asks.
pub(super) const PROMPT: &str = "test_input_required_result_prompt";

const ROUNDS_OF_PROMPT: &[&[&str]] = &[&["user_name"]];

/// What the tools ask for, in one round after the other.
const TOOLS: [(&str, &[&[&str]]); 11] = [
    ("test_input_required_result_elicitation", &[&["user_name"]]),
    ("test_input_required_result_sampling", &[&["greeting"]]),
    ("test_input_required_result_list_roots", &[&["client_roots"]]),
    ("test_input_required_result_request_state", &[&["confirm"]]),
    ("test_input_required_result_multiple_inputs", &[&["user_name", "greeting", "client_roots"]]),
    ("test_input_required_result_multi_round", &[&["step1"], &["step2"]]),
    ("test_input_required_result_tampered_state", &[&["confirm"]]),
    ("test_input_required_result_capabilities", &[&["user_name", "greeting"]]),
    ("test_missing_capability", &[&["greeting"]]),
    ("test_streaming_elicitation", &[&["user_name"]]),
    ("test_logging_tool", &[]),
];

pub(super) fn tools(caller: &Caller) -> impl Iterator<Item = &'static str> {
    TOOLS.into_iter().map(|(name, _)| name).filter(|_| caller.is_newest())
}

pub(super) fn prompts(caller: &Caller) -> impl Iterator<Item = &'static str> {
    [PROMPT].into_iter().filter(|_| caller.is_newest())
}

/// Whether there is such a tool.
pub(super) fn has(caller: &Caller, tool: &str) -> bool {
    tools(caller).any(|name| name == tool)
}

/// Whether the request is for the prompt.
pub(super) fn is_prompt(caller: &Caller, params: &Params) -> bool {
    let name = params.fields().map(|mut fields| fields.text("name", |_| None));
    caller.is_newest() && name.is_ok_and(|name| name.as_deref() == Some(PROMPT))
}

/// Calls one of these tools, or gets the prompt.
pub(super) fn call(caller: &Caller, name: &str, params: &Params) -> HttpResponse {
    let rounds = TOOLS.iter().find(|(tool, _)| *tool == name).map_or(ROUNDS_OF_PROMPT, |(_, rounds)| *rounds);
    match next_round(name, rounds, params) {
        Err(problem) => super::respond::<CallToolResult>(caller, Err(problem)),
        Ok(round) => match rounds.get(round) {
            Some(keys) => ask(caller, &state(name, round), keys),
            None => super::respond(caller, Ok(complete(name))),
        },
    }
}

fn state(name: &str, round: usize) -> String {
    format!("{name}/{round}")
}

/// The round that follows from what the client sends.
fn next_round(name: &str, rounds: &[&[&str]], params: &Params) -> Result<usize, Problem> {
    let SentInputs { state: sent, responses } = sent_inputs(params)?;
    let known = |sent: String| (0..rounds.len()).find(|round| state(name, *round) == sent);
    let round = sent.map_or(Some(0), known).ok_or_else(state_changed)?;
    let Some(responses) = responses else { return Ok(round) };
    let mut answered = 0;
    for key in rounds.get(round).copied().unwrap_or_default() {
        match responses.get(*key) {
            Some(Value::Object(_)) => answered += 1,
            Some(_) => return Err(Problem::field(key, "must be an object")),
            None => {}
        }
    }
    // What is missing is asked again.
    let is_complete = rounds.get(round).is_some_and(|keys| answered == keys.len());
    Ok(if is_complete { round + 1 } else { round })
}

/// Asks for what the client offers.
fn ask(caller: &Caller, state: &str, keys: &[&str]) -> HttpResponse {
    match asked_inputs(caller.offers(), state, keys) {
        Ok(result) => HttpResponse::Ok().json(Done::asking(caller, result)),
        Err(missing) => HttpResponse::BadRequest().json(Failed::capability_missing(caller, missing)),
    }
}

/// The result of a tool, or of the prompt.
fn complete(name: &str) -> Value {
    let text = "state-ok: there is nothing more to ask".to_owned();
    if name == PROMPT {
        json!(PromptResult::of(vec![ContentDto::Text { text }]))
    } else {
        json!(CallToolResult::of_text(text))
    }
}
