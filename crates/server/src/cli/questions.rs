//! `tokenrail questions`: the open permission requests of all agents, the oldest first.

use serde_json::Value;

use super::client::Client;
use super::excerpt::excerpt;
use super::open_requests::{ListedRequest, Pages};
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

pub(crate) async fn questions(config: &Config, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let (mut pages, mut is_any) = (Pages::of(&client), false);
    while let Some(page) = pages.next().await? {
        for request in page {
            is_any = true;
            if screen.json {
                // In JSON, a line break can only occur where a space may.
                screen.line(Style::Plain, &request.get().replace(['\n', '\r'], " "));
            } else {
                show(&client, &serde_json::from_str(request.get())?, screen).await?;
            }
        }
    }
    if !is_any && !screen.json {
        screen.note("no agent is waiting for an answer");
    }
    Ok(Exit::Completed)
}

async fn show(client: &Client, request: &ListedRequest, screen: &mut Screen) -> Result<(), Failure> {
    let ListedRequest { agent_id, asked } = request;
    let agent: Value = match client.get(&["api", "agents", agent_id], &[]).await {
        Ok(answer) => answer.json().await?,
        // It was purged in the meantime.
        Err(failure) if failure.code() == "not_found" => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let fact = |key: &str| agent.get(key).and_then(Value::as_str).unwrap_or_default();
    screen.line(Style::Dim, &format!("{agent_id}  {}  {}", fact("type"), excerpt(fact("prompt"), 1)));
    asked.show(screen);
    screen.line(Style::Dim, &format!("  {}", asked.command(client, agent_id)));
    Ok(())
}
