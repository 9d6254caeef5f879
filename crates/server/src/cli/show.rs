//! `tokenrail show`: the details of one agent.

use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;

use super::agent_id::AgentArg;
use super::client::Client;
use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};
use crate::config::Config;

/// How much of a text is shown. `--json` prints all of it.
const TEXT_CHARS: usize = 500;
/// The width of the names.
const NAME_WIDTH: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    agent: AgentArg,
}

pub(crate) async fn show(config: &Config, args: ShowArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let id = args.agent.find(&client).await?;
    let agent: Box<RawValue> = client.get(&["api", "agents", &id], &[]).await?.json().await?;
    if screen.json {
        // In JSON, a line break can only occur where a space may.
        screen.line(Style::Plain, &agent.get().replace(['\n', '\r'], " "));
        return Ok(Exit::Completed);
    }
    let agent: Value = serde_json::from_str(agent.get())?;
    for (name, fact) in facts(&agent) {
        screen.end_line();
        screen.text(Style::Dim, &format!("{name:<NAME_WIDTH$}"));
        screen.text(Style::Plain, &format!("{}\n", shortened(&fact)));
    }
    Ok(Exit::Completed)
}

/// The facts that are known, with their names for people.
fn facts(agent: &Value) -> Vec<(&'static str, String)> {
    let text = |key: &str| agent.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| agent.get(key).and_then(Value::as_u64).unwrap_or_default();
    let json = |key: &str| agent.get(key).map(Value::to_string);
    let turns = match (number("turn"), number("queued")) {
        (turn, 0) => turn.to_string(),
        (turn, queued) => format!("{turn}, {queued} more queued"),
    };
    let is_set = |key: &str| agent.get(key).and_then(Value::as_bool) == Some(true);
    let places = [("pinned", is_set("pinned")), ("archived", is_set("archived"))];
    let places: Vec<_> = places.into_iter().filter(|(_, holds)| *holds).map(|(place, _)| place).collect();
    let cost = agent.get("costUsd").and_then(Value::as_f64).map(|cost| format!("${cost:.4}"));
    let facts = [
        ("id", text("id")),
        ("name", text("name")),
        ("status", text("status")),
        ("error", agent.get("error").map(error)),
        ("type", text("type")),
        ("model", text("model")),
        ("folder", text("cwd")),
        ("session", text("sessionId")),
        ("node", text("node").map(|node| at(&node, text("nodeState").as_deref()))),
        ("prompt", text("prompt")),
        ("turns", Some(turns)),
        ("events", Some(number("head").to_string())),
        ("cost", cost),
        ("usage", json("usage")),
        ("created", text("createdAt")),
        ("ended", text("endedAt")),
        ("marked", (!places.is_empty()).then(|| places.join(", "))),
        ("deleted", text("deletedAt")),
        ("replay of", text("replayOf")),
        ("read-only", is_set("readOnly").then(|| "it accepts no messages".to_owned())),
        ("metadata", json("metadata")),
        ("options", json("options")),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

/// The agent's node, and what is unusual about it.
fn at(node: &str, state: Option<&str>) -> String {
    match state {
        None => node.to_owned(),
        Some("away") => format!("{node} (away: stopped, and expected back)"),
        Some(state) => format!("{node} ({state}: the agent accepts no messages)"),
    }
}

fn error(error: &Value) -> String {
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let kind = text("code").or(text("class")).unwrap_or_default();
    format!("{kind}: {}", text("message").unwrap_or_default())
}

/// A text in one line.
fn shortened(text: &str) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text.chars().map(line).take(TEXT_CHARS).collect();
    match text.chars().count().saturating_sub(TEXT_CHARS) as u64 {
        0 => shown,
        more => format!("{shown} … {}", counted(more, "more character")),
    }
}
