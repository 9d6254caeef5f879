//! `tokenrail nodes`: the servers that share the database.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    command: Option<NodesCommand>,
}

#[derive(Debug, Subcommand)]
enum NodesCommand {
    /// Remove a node that will not come back. It must not be alive: stop it, or wait until it is declared lost. Its
    /// running turns end. So do its queued turns, except those of agents that can move to another node. Its agents
    /// stay readable. If the node is started again, it becomes alive again
    Forget {
        /// The node's name or id, as `tokenrail nodes` shows them
        #[arg(value_name = "NODE")]
        node: String,
    },
}

/// A node, as the server describes it.
#[derive(Debug, Deserialize)]
struct ListedNode {
    id: u64,
    name: String,
    state: String,
    version: String,
    #[serde(rename = "self")]
    is_asked: bool,
}

pub(crate) async fn nodes(config: &Config, args: NodesArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    match args.command {
        None => list(&client, screen).await,
        Some(NodesCommand::Forget { node }) => forget(&client, &node, screen).await,
    }
}

async fn list(client: &Client, screen: &mut Screen) -> Result<Exit, Failure> {
    let nodes: Vec<Box<RawValue>> = client.get(&["api", "nodes"], &[]).await?.json().await?;
    if screen.json {
        for node in &nodes {
            // In JSON, a line break can only occur where a space may.
            screen.line(Style::Plain, &node.get().replace(['\n', '\r'], " "));
        }
        return Ok(Exit::Completed);
    }
    let read = nodes.iter().map(|node| serde_json::from_str(node.get()));
    for line in table(&read.collect::<Result<Vec<ListedNode>, _>>()?) {
        screen.line(Style::Plain, &line);
    }
    Ok(Exit::Completed)
}

/// One line for each node, in columns.
fn table(nodes: &[ListedNode]) -> Vec<String> {
    let wide = |column: fn(&ListedNode) -> usize| nodes.iter().map(column).max().unwrap_or_default();
    let ids = wide(|node| node.id.to_string().len());
    let names = wide(|node| printable(&node.name).chars().count());
    let line = |node: &ListedNode| {
        let ListedNode { id, name, state, version, is_asked } = node;
        let asked = if *is_asked { "  this server" } else { "" };
        format!("{id:>ids$}  {:<names$}  {state:<5}  {version}{asked}", printable(name))
    };
    nodes.iter().map(line).collect()
}

async fn forget(client: &Client, wanted: &str, screen: &mut Screen) -> Result<Exit, Failure> {
    let nodes: Vec<ListedNode> = client.get(&["api", "nodes"], &[]).await?.json().await?;
    let ListedNode { id, name, .. } = find(&nodes, wanted)?;
    client.delete(&["api", "nodes", &id.to_string()], &[]).await?;
    let line = if screen.json {
        json!({ "id": id, "name": name, "state": "gone" }).to_string()
    } else {
        format!("removed node {} (id {id})", printable(name))
    };
    screen.line(Style::Plain, &line);
    Ok(Exit::Completed)
}

/// The node that the user means, by its name or its id. Of several nodes with one name, those that were removed before
/// do not count.
fn find<'a>(nodes: &'a [ListedNode], wanted: &str) -> Result<&'a ListedNode, Failure> {
    let named = |node: &&ListedNode| node.name == wanted || node.id.to_string() == wanted;
    let mut found: Vec<&ListedNode> = nodes.iter().filter(named).collect();
    if found.iter().any(|node| node.state != "gone") {
        found.retain(|node| node.state != "gone");
    }
    match found[..] {
        [node] => Ok(node),
        [] => {
            let hint = format!("no node has the name or id {wanted:?}; to list the nodes: tokenrail nodes");
            Err(Failure::new(Exit::Failed, hint).coded("not_found"))
        }
        _ => {
            let ids: Vec<String> = found.iter().map(|node| format!("{} ({})", node.id, node.state)).collect();
            let hint = format!(
                "{} nodes have the name or id {wanted:?}; use the id of one of them: {}",
                found.len(),
                ids.join(", ")
            );
            Err(Failure::new(Exit::Failed, hint).coded("ambiguous_node"))
        }
    }
}

/// A name in one line. The only server of a database has none.
fn printable(name: &str) -> String {
    if name.is_empty() {
        return "-".to_owned();
    }
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u64, name: &str, state: &str) -> ListedNode {
        let (name, state, version) = (name.to_owned(), state.to_owned(), "1.2.3".to_owned());
        ListedNode { id, name, state, version, is_asked: id == 2 }
    }

    #[test]
    fn nodes_are_shown_in_columns() {
        let nodes = [node(1, "node-a", "lost"), node(2, "b", "alive"), node(10, "c", "away")];
        assert_eq!(
            table(&nodes),
            [" 1  node-a  lost   1.2.3", " 2  b       alive  1.2.3  this server", "10  c       away   1.2.3"]
        );
    }

    #[test]
    fn a_node_is_found_by_its_name_or_its_id() {
        let nodes = [node(1, "a", "lost"), node(2, "b", "alive"), node(3, "b", "gone"), node(4, "c", "gone")];
        for (wanted, id) in [("a", 1), ("1", 1), ("b", 2), ("3", 3), ("c", 4)] {
            assert_eq!(find(&nodes, wanted).unwrap().id, id, "{wanted}");
        }
        assert_eq!(find(&nodes, "d").unwrap_err().code(), "not_found");
    }

    #[test]
    fn an_ambiguous_name_is_refused_with_the_ids() {
        let nodes = [node(1, "a", "lost"), node(2, "a", "alive"), node(3, "a", "gone"), node(4, "1", "away")];
        let why = find(&nodes, "a").unwrap_err();
        assert_eq!(why.code(), "ambiguous_node");
        assert!(why.to_string().ends_with("use the id of one of them: 1 (lost), 2 (alive)"), "{why}");
        let why = find(&nodes, "1").unwrap_err().to_string();
        assert!(why.ends_with("1 (lost), 4 (away)"), "an id may be the name of another node: {why}");
    }
}
