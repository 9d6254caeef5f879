//! `tokenrail questions`: the open permission requests of all agents, the oldest first.

use reqwest::header::LINK;
use reqwest::{Response, Url};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::asked::Asked;
use super::client::Client;
use super::excerpt::excerpt;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

/// How many pages are read.
const PAGES_MAX: usize = 1000;

/// An open permission request of any agent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenRequest {
    agent_id: String,
    #[serde(flatten)]
    asked: Asked,
}

pub(crate) async fn questions(config: &Config, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let (mut query, mut is_any) = (Vec::new(), false);
    for _ in 0..PAGES_MAX {
        let pairs: Vec<(&str, &str)> =
            query.iter().map(|(key, value): &(String, String)| (&**key, &**value)).collect();
        let answer = client.get(&["api", "questions"], &pairs).await?;
        let next = next_page(&answer);
        for question in answer.json::<Vec<Box<RawValue>>>().await? {
            is_any = true;
            if screen.json {
                // In JSON, a line break can only occur where a space may.
                screen.line(Style::Plain, &question.get().replace(['\n', '\r'], " "));
            } else {
                show(&client, &serde_json::from_str(question.get())?, screen).await?;
            }
        }
        match next {
            Some(next) => query = next,
            None => break,
        }
    }
    if !is_any && !screen.json {
        screen.remark("no agent waits for an answer");
    }
    Ok(Exit::Completed)
}

/// The parameters of the next page. `None` after the last one.
fn next_page(answer: &Response) -> Option<Vec<(String, String)>> {
    let link = answer.headers().get(LINK)?.to_str().ok()?;
    let target = link.strip_prefix('<')?.split_once('>')?.0;
    let url = answer.url().join(target).ok().filter(|url: &Url| url.query().is_some())?;
    Some(url.query_pairs().into_owned().collect())
}

async fn show(client: &Client, request: &OpenRequest, screen: &mut Screen) -> Result<(), Failure> {
    let OpenRequest { agent_id, asked } = request;
    let agent: Value = match client.get(&["api", "agents", agent_id], &[]).await {
        Ok(answer) => answer.json().await?,
        // It was purged in the meantime.
        Err(failure) if failure.code() == "not_found" => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let fact = |key: &str| agent.get(key).and_then(Value::as_str).unwrap_or_default();
    screen.line(Style::Dim, &format!("{agent_id}  {}  {}", fact("type"), excerpt(fact("prompt"), 1)));
    asked.show(screen);
    let answer = client.command(&format!("answer {agent_id} {} {}", asked.request_id, asked.choices()));
    screen.line(Style::Dim, &format!("  {answer}"));
    Ok(())
}
