//! `tokenrail send`: a message to an agent, and its answer.

use clap::Args;
use serde_json::{Value, json};

use super::agent_id::AgentArg;
use super::attend::{Attended, Host, OnStop, attend};
use super::client::Client;
use super::images::ImageArgs;
use super::open_requests;
use super::permission_request::ShownRequest;
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
    let waits = waits_for(&client, &id, turn, &before).await?;
    if detach {
        let line = if screen.json {
            json!({ "agentId": id, "turn": turn, "queued": accepted.get("queued") }).to_string()
        } else {
            turn.to_string()
        };
        screen.line(Style::Plain, &line);
    } else if screen.is_live() {
        screen.line(Style::Dim, &format!("agent {id}, turn {turn}"));
    }
    if let Some(waits) = waits {
        // A command that follows the agent shows its requests itself.
        let is_shown = !detach && !screen.json;
        screen.note(&waits.sentence(&client, &id, turn, is_shown));
    }
    if detach {
        return Ok(Exit::Completed);
    }
    let (keep, host, on_stop) = (false, Host::Server, OnStop::LeaveOrCancel);
    let attended = Attended { client: &client, id: &id, since, keep, sent: Some(turn), host, on_stop };
    Ok(attend(attended, &mut stop, screen).await?.exit())
}

/// An earlier turn for which a message waits.
struct Waits {
    turn: u64,
    /// The permission requests of that turn that nobody has answered.
    open: Vec<ShownRequest>,
}

/// The turn for which the message with this turn waits. `None` if it does not wait. `before` is the agent as it was
/// before the message.
async fn waits_for(client: &Client, id: &str, turn: u64, before: &Value) -> Result<Option<Waits>, Failure> {
    let has_ended = |agent: &Value| agent.get("endedAt").is_some_and(Value::is_string);
    if has_ended(before) {
        return Ok(None);
    }
    let agent: Value = client.get(&["api", "agents", id], &[]).await?.json().await?;
    let number = |key: &str| agent.get(key).and_then(Value::as_u64).unwrap_or_default();
    if has_ended(&agent) || turn <= number("turn") {
        return Ok(None);
    }
    let open = match number("openQuestions") {
        0 => Vec::new(),
        _ => open_requests::of_agent(client, id).await?,
    };
    Ok(Some(Waits { turn: number("turn"), open }))
}

impl Waits {
    /// Why the message waits, and what the user can do about it. `is_shown`: the requests are shown after this.
    fn sentence(&self, client: &Client, id: &str, turn: u64, is_shown: bool) -> String {
        let waits = format!("turn {turn} waits for turn {}", self.turn);
        match &self.open[..] {
            [] => format!("{waits}, which has not ended yet"),
            _ if is_shown => format!("{waits}, which needs an answer from you"),
            [only] => format!("{waits}, which needs an answer: {}", only.command(client, id)),
            _ => format!("{waits}, which needs answers: {}", client.command("questions")),
        }
    }
}
