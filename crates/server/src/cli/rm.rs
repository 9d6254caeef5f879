//! `tokenrail rm`: deletes agents.

use clap::Args;
use serde_json::{Value, json};

use super::agent_id;
use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The agents: for each, its id, the beginning or the end of the id (at least 4 characters), or `latest` for the
    /// newest agent
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Also permanently delete the history and the folder that was created for the agent
    #[arg(long)]
    purge: bool,
    /// Also delete running agents; they are cancelled first. Without this option, nothing is deleted if one of the
    /// agents is running
    #[arg(long)]
    force: bool,
}

/// Nothing is deleted unless all of the agents can be.
pub(crate) async fn rm(config: &Config, args: RmArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let ids = agent_id::find_all(&client, &args.ids).await?;
    for id in &ids {
        let agent: Value = client.get(&["api", "agents", id, "status"], &[]).await?.json().await?;
        let status = agent.get("status").and_then(Value::as_str).unwrap_or_default();
        if !args.force && matches!(status, "initializing" | "running") {
            let cancel = client.command(&format!("cancel {id}"));
            let hint = format!("{id} is {status}; cancel it first with: {cancel} (or use --force)");
            return Err(Failure::new(Exit::Failed, hint).coded("agent_running"));
        }
    }
    let purge = args.purge.to_string();
    for id in &ids {
        // The server cancels a running agent and waits for its end first.
        client.delete(&["api", "agents", id], &[("purge", &purge)]).await?;
        let line = match (screen.json, args.purge) {
            (true, purged) => json!({ "agentId": id, "purged": purged }).to_string(),
            (false, true) => format!("purged {id}"),
            (false, false) => format!("deleted {id}; its history is kept"),
        };
        screen.line(Style::Plain, &line);
    }
    Ok(Exit::Completed)
}
