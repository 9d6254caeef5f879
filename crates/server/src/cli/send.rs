//! `tokenrail send`: a message to an agent, and its answer.

use clap::Args;
use serde_json::{Value, json};

use super::agent_id::AgentArg;
use super::attend::{Attended, Host, OnStop, attend};
use super::client::Client;
use super::images::ImageArgs;
use super::run::read_text;
use super::screen::{Screen, Style};
use super::serve::StopSignal;
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// The message; `-` reads it from standard input
    message: String,
    #[command(flatten)]
    images: ImageArgs,
    /// Send the message, print the number of its turn and exit, instead of following the answer
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn send(config: &Config, args: SendArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let SendArgs { agent, message, images, detach } = args;
    let mut body = json!({ "content": read_text(message, "message")? });
    if let Some(images) = images.read()? {
        body["images"] = images;
    }
    let mut stop = StopSignal::listen()?;
    let client = Client::reach(config).await?;
    let id = agent.find(&client).await?;
    let before: Value = client.get(&["api", "agents", &id], &[]).await?.json().await?;
    let since = before.get("head").and_then(Value::as_u64).unwrap_or_default();
    let accepted = client.post(&["api", "agents", &id, "messages"], &body).await?;
    let turn = accepted.get("turn").and_then(Value::as_u64).unwrap_or_default();
    if detach {
        let line = if screen.json {
            json!({ "agentId": id, "turn": turn, "queued": accepted.get("queued") }).to_string()
        } else {
            turn.to_string()
        };
        screen.line(Style::Plain, &line);
        return Ok(Exit::Completed);
    }
    if screen.is_live() {
        screen.line(Style::Dim, &format!("agent {id}, turn {turn}"));
    }
    let (keep, host, on_stop) = (false, Host::Server, OnStop::LeaveOrCancel);
    let attended = Attended { client: &client, id: &id, since, keep, host, on_stop };
    Ok(attend(attended, &mut stop, screen).await?.exit())
}
