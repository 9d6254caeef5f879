//! What an agent is told about its conversation. An agent has instructions of its own, so those of a client can only
//! begin its first prompt.

use tokenrail_domain::{Agent, TurnNumber};

use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::openai::dto::{BETWEEN, ModelChoice};

/// The first prompt of a conversation. `earlier` is what was said in it before the agent existed.
pub(super) fn first_prompt(instructions: Option<&str>, earlier: Option<&str>, text: &str) -> String {
    let mut prompt = instructions.map(opening).unwrap_or_default();
    if let Some(earlier) = earlier {
        prompt.extend([
            "The conversation so far:\n\n",
            earlier.trim_end(),
            "\n\nThe user's new message:\n\n",
        ]);
    }
    prompt.push_str(text);
    prompt
}

fn opening(instructions: &str) -> String {
    format!("{instructions}{BETWEEN}")
}

/// Checks that the instructions are those with which the conversation began.
pub(super) async fn check_instructions(
    api: &Api,
    agent: &Agent,
    instructions: Option<&str>,
) -> Result<(), Problem> {
    let Some(opening) = instructions.map(opening) else { return Ok(()) };
    let first = api.service().turn(agent.id, TurnNumber::FIRST).await?;
    if first.is_some_and(|first| first.prompt.starts_with(&opening)) {
        return Ok(());
    }
    Err(Problem::field(
        "instructions",
        "must stay the same in a conversation: the agent got its instructions with its first prompt",
    ))
}

/// Checks that the model, if it is given, names the type of the agent.
pub(super) fn check_type(agent: &Agent, model: Option<&ModelChoice>) -> Result<(), Problem> {
    if model.is_none_or(|choice| choice.kind == agent.kind) {
        return Ok(());
    }
    let detail = format!(
        "this conversation has an agent of the type {}; use this type, or start another conversation",
        agent.kind
    );
    Err(Problem::field("model", detail))
}
