//! `tokenrail questions`: the open permission requests of all running agents.

use std::collections::BTreeMap;

use reqwest::Response;
use reqwest::header::LINK;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Client;
use super::screen::{Screen, Style};
use super::shower::excerpt;
use super::{Exit, Failure};
use crate::config::Config;

/// How many running agents are asked for in one request.
const PAGE_AGENTS: &str = "100";
/// How many pages of agents, and of one turn's messages, are read.
const PAGES_MAX: usize = 1000;

/// A running agent, as the list contains it.
#[derive(Deserialize)]
struct Running {
    id: String,
    turn: u32,
    #[serde(rename = "type")]
    kind: String,
    prompt: String,
}

pub(crate) async fn questions(config: &Config, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let mut count = 0;
    for agent in running(&client).await? {
        let open = match open_questions(&client, &agent).await {
            Ok(open) => open,
            // It was purged in the meantime.
            Err(failure) if failure.code() == "not_found" => continue,
            Err(failure) => return Err(failure),
        };
        if let (Some(_), false) = (open.first(), screen.json) {
            screen.line(Style::Dim, &format!("{}  {}  {}", agent.id, agent.kind, excerpt(&agent.prompt, 1)));
        }
        for question in &open {
            show(&client, &agent, question, screen);
        }
        count += open.len();
    }
    if count == 0 && !screen.json {
        screen.remark("no agent waits for an answer");
    }
    Ok(Exit::Completed)
}

async fn running(client: &Client) -> Result<Vec<Running>, Failure> {
    let (mut agents, mut before): (Vec<Running>, Option<String>) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let mut query = vec![("status", "running"), ("limit", PAGE_AGENTS)];
        query.extend(before.as_deref().map(|before| ("before", before)));
        let answer = client.get(&["api", "agents"], &query).await?;
        let has_more = answer.headers().contains_key(LINK);
        agents.extend(answer.json::<Vec<Running>>().await?);
        before = agents.last().map(|last| last.id.clone());
        if !has_more {
            break;
        }
    }
    Ok(agents)
}

/// The permission requests of the running turn that are not settled, in order. A request never outlives its turn.
async fn open_questions(client: &Client, agent: &Running) -> Result<Vec<Value>, Failure> {
    let Some(mut since) = before_turn(client, agent).await? else { return Ok(Vec::new()) };
    // By the number of their events.
    let mut open: BTreeMap<u64, Value> = BTreeMap::new();
    for _ in 0..PAGES_MAX {
        let from = since.to_string();
        let answer = client.get(&["api", "agents", &agent.id, "messages"], &[("since", &from)]).await?;
        let up_to = number_in(&answer, "tokenrail-up-to").unwrap_or_default();
        let head = number_in(&answer, "tokenrail-head").unwrap_or_default();
        for event in answer.json::<Vec<Value>>().await? {
            let text = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default();
            let (kind, request) = (text("/metadata/eventType"), text("/content/requestId"));
            match kind {
                "permission_request" => {
                    let number = event.get("sequenceNumber").and_then(Value::as_u64).unwrap_or_default();
                    open.insert(number, event.get("content").cloned().unwrap_or_default());
                }
                "permission_resolved" => {
                    open.retain(|_, question| {
                        question.get("requestId").and_then(Value::as_str) != Some(request)
                    });
                }
                "result" => open.clear(),
                _ => {}
            }
        }
        if head <= up_to || up_to <= since {
            break;
        }
        since = up_to;
    }
    Ok(open.into_values().collect())
}

/// The number of the last event before the newest turn. `None` if the turn has no events yet.
async fn before_turn(client: &Client, agent: &Running) -> Result<Option<u64>, Failure> {
    let after = agent.turn.saturating_sub(1).to_string();
    let path = ["api", "agents", &agent.id, "turns"];
    let turns: Vec<Value> = client.get(&path, &[("after", &after), ("limit", "1")]).await?.json().await?;
    let first = turns.first().and_then(|turn| turn.get("firstSequence")?.as_u64());
    Ok(first.map(|first| first.saturating_sub(1)))
}

fn number_in(answer: &Response, header: &str) -> Option<u64> {
    answer.headers().get(header)?.to_str().ok()?.parse().ok()
}

fn show(client: &Client, agent: &Running, question: &Value, screen: &mut Screen) {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if screen.json {
        let mut line = json!({ "agentId": agent.id });
        if let (Some(line), Some(question)) = (line.as_object_mut(), question.as_object()) {
            line.extend(question.clone());
        }
        screen.line(Style::Plain, &line.to_string());
        return;
    }
    let input = question.get("input").map(Value::to_string).unwrap_or_default();
    screen.line(Style::Bold, &format!("? Allow {}? {}", text(question, "toolName"), excerpt(&input, 1)));
    let options = question.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for option in options {
        screen.line(Style::Plain, &format!("    {:<14}  {}", text(option, "optionId"), text(option, "name")));
    }
    let ids: Vec<String> = options.iter().map(|option| text(option, "optionId")).collect();
    let answer = format!("answer {} {} {}", agent.id, text(question, "requestId"), ids.join("|"));
    screen.line(Style::Dim, &format!("  {}", client.command(&answer)));
}
