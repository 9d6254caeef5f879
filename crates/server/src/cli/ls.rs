//! `tokenrail ls`: the agents, the newest first.

use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;

use super::agent_id::short_end;
use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Show only agents with this status: initializing, running, completed, failed, cancelled or interrupted. Separate
    /// several with commas
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Maximum number of agents to show
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Show only pinned agents
    #[arg(long)]
    pinned: bool,
    /// Show only archived agents, which are otherwise left out
    #[arg(long)]
    archived: bool,
}

pub(crate) async fn ls(config: &Config, args: LsArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let limit = args.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(args.status.as_deref().map(|status| ("status", status)));
    query.extend(args.pinned.then_some(("pinned", "true")));
    query.extend(args.archived.then_some(("archived", "true")));
    let agents: Vec<Box<RawValue>> = client.get(&["api", "agents"], &query).await?.json().await?;
    // In JSON, a line break can only occur where a space may.
    let lines: Vec<_> = agents.iter().map(|agent| agent.get().replace(['\n', '\r'], " ")).collect();
    let mut all_read = true;
    if screen.json {
        for line in &lines {
            screen.line(Style::Plain, line);
        }
    } else {
        all_read = show(&client, &lines, screen);
    }
    if agents.is_empty() && !screen.json {
        screen.note(&match &args.status {
            Some(status) => {
                let statuses = status.split(',').map(str::trim).collect::<Vec<_>>().join(" or ");
                let place = if args.pinned || args.archived { " in this list" } else { "" };
                format!("no agents with the status {statuses}{place}")
            }
            None if args.pinned => "no agent in this list is pinned".to_owned(),
            None if args.archived => "no agent is archived".to_owned(),
            None => "no agents in the list; launch one with: tokenrail run --type demo \"hello\"\n\
                     to list the archived ones: tokenrail ls --archived"
                .to_owned(),
        });
    }
    Ok(if all_read { Exit::Completed } else { Exit::Failed })
}

/// Shows the agents. Returns false if one of them could not be decoded.
fn show(client: &Client, agents: &[String], screen: &mut Screen) -> bool {
    let decoded: Vec<Result<Value, _>> = agents.iter().map(|agent| serde_json::from_str(agent)).collect();
    let ids: Vec<&str> = decoded.iter().flatten().filter_map(|agent| agent.get("id")?.as_str()).collect();
    let (mut all_read, mut end) = (true, "");
    for (text, agent) in agents.iter().zip(&decoded) {
        match agent {
            Ok(agent) => {
                let id = agent.get("id").and_then(Value::as_str).unwrap_or_default();
                end = short_end(id, &ids);
                screen.end_line();
                screen.text(Style::Plain, id.strip_suffix(end).unwrap_or_default());
                screen.text(Style::Bold, end);
                screen.text(Style::Plain, &format!("{}\n", row(agent)));
            }
            Err(error) => {
                all_read = false;
                screen.line(Style::Plain, text);
                screen.note(&format!("cannot decode this agent ({error}); it is printed as received"));
            }
        }
    }
    if screen.is_live() && 1 < ids.len() {
        let example = client.command(&format!("tail {end}"));
        screen.note(&format!("the end of an id is enough to identify an agent, for example: {example}"));
    }
    all_read
}

/// The status of an agent that waits for the answer to a permission request.
const NEEDS_YOU: &str = "needs you";

/// What is shown after the agent's id.
fn row(agent: &Value) -> String {
    let text = |key: &str| agent.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| agent.get(key).and_then(Value::as_u64).unwrap_or_default();
    let title = if text("name").is_empty() { text("prompt") } else { text("name") };
    let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).take(48).collect();
    let head = number("head");
    format!(
        "  {:<12}  {:<12}  {head:>7} {:<6}  {}  {title}",
        if number("openQuestions") == 0 { text("status") } else { NEEDS_YOU },
        text("type"),
        if head == 1 { "event" } else { "events" },
        text("createdAt"),
    )
}
