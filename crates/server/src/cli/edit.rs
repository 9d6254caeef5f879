//! `tokenrail rename`, `tokenrail pin` and `tokenrail archive`: the names of agents, and their places in lists.

use clap::Args;
use serde_json::{Value, json};

use super::agent_id::{self, AgentArg};
use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// The new name, of at most 200 characters; an empty one removes the name
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The agents: for each, its id, the beginning or the end of the id (at least 4 characters), or `latest` for the
    /// newest agent
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Unpin the agents
    #[arg(long)]
    undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// The agents: for each, its id, the beginning or the end of the id (at least 4 characters), or `latest` for the
    /// newest agent
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Unarchive the agents
    #[arg(long)]
    undo: bool,
}

pub(crate) async fn rename(config: &Config, args: RenameArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let RenameArgs { agent, name } = args;
    let client = Client::reach(config).await?;
    let id = agent.find(&client).await?;
    let name = Some(name).filter(|name| !name.is_empty());
    let agent = client.patch(&["api", "agents", &id], &json!({ "name": name })).await?;
    let done = match &name {
        Some(name) => format!("renamed {id}: {}", printable(name)),
        None => format!("removed the name of {id}"),
    };
    show(screen, &agent, &done);
    Ok(Exit::Completed)
}

pub(crate) async fn pin(config: &Config, args: PinArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let done = if args.undo { "unpinned" } else { "pinned" };
    change_all(config, &args.ids, &json!({ "pinned": !args.undo }), done, screen).await
}

pub(crate) async fn archive(
    config: &Config,
    args: ArchiveArgs,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let done = if args.undo { "unarchived" } else { "archived" };
    change_all(config, &args.ids, &json!({ "archived": !args.undo }), done, screen).await
}

/// Nothing is changed unless all of the agents are found.
async fn change_all(
    config: &Config,
    ids: &[String],
    change: &Value,
    done: &str,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let found = agent_id::find_all(&client, ids).await?;
    for id in found {
        let agent = client.patch(&["api", "agents", &id], change).await?;
        show(screen, &agent, &format!("{done} {id}"));
    }
    Ok(Exit::Completed)
}

fn show(screen: &mut Screen, agent: &Value, done: &str) {
    let line = if screen.json { agent.to_string() } else { done.to_owned() };
    screen.line(Style::Plain, &line);
}

fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
