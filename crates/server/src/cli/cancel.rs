//! `tokenrail cancel`: cancels all turns of an agent.

use serde_json::{Value, json};

use super::agent_id::AgentArg;
use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

pub(crate) async fn cancel(config: &Config, agent: &AgentArg, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let id = agent.find(&client).await?;
    let before: Value = client.get(&["api", "agents", &id], &[]).await?.json().await?;
    let answer = client.post(&["api", "agents", &id, "cancel"], &json!({})).await?;
    let status = before.get("status").and_then(Value::as_str).unwrap_or_default();
    let said = match before.get("endedAt").and_then(Value::as_str) {
        Some(_) => format!("{id} has already ended: {status}"),
        None => format!("cancelling {id}"),
    };
    if screen.json {
        screen.line(Style::Plain, &answer.to_string());
    } else {
        screen.line(Style::Plain, &said);
    }
    Ok(Exit::Completed)
}
