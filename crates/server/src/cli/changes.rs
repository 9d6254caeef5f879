//! `tokenrail changes`: the files that an agent has changed.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use clap::Args;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::agent_id::AgentArg;
use super::client::Client;
use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};
use crate::config::Config;

/// The code of the problem that git cannot tell, as the server has it.
const UNAVAILABLE: &str = "changes_unavailable";
/// The header of a patch in which files are missing.
const TRUNCATED: &str = "tokenrail-truncated";

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Print a unified diff. `git apply` accepts it unless a binary file has changed
    #[arg(short, long)]
    patch: bool,
    /// Compare with the commit that HEAD pointed to when this turn started. Changes that were not yet committed at
    /// that time
    /// are listed too [default: the first turn that started in a repository]
    #[arg(long, value_name = "NUMBER")]
    turn: Option<u32>,
}

/// What the server knows.
#[derive(Deserialize)]
#[serde(tag = "source", rename_all = "camelCase")]
enum Answer {
    Git { base: String, files: Vec<ShownFile>, truncated: bool },
    None { detail: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownFile {
    path: String,
    old_path: Option<String>,
    status: String,
    added: Option<u64>,
    removed: Option<u64>,
    binary: bool,
}

pub(crate) async fn changes(
    config: &Config,
    args: ChangesArgs,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let id = args.agent.find(&client).await?;
    let turn = args.turn.map(|turn| turn.to_string());
    let query: Vec<(&str, &str)> = turn.iter().map(|turn| ("turn", turn.as_str())).collect();
    if args.patch {
        return patch(&client, &id, &query, screen).await;
    }
    let answer: Box<RawValue> = client.get(&["api", "agents", &id, "changes"], &query).await?.json().await?;
    if screen.json {
        screen.line(Style::Plain, answer.get());
        return Ok(Exit::Completed);
    }
    match serde_json::from_str(answer.get())? {
        Answer::Git { base, files, truncated } => print(&base, &files, truncated, screen),
        Answer::None { detail } => {
            return Err(Failure::new(Exit::Failed, format!("{detail} ({UNAVAILABLE})")).coded(UNAVAILABLE));
        }
    }
    Ok(Exit::Completed)
}

async fn patch(
    client: &Client,
    id: &str,
    query: &[(&str, &str)],
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let answer = client.get(&["api", "agents", id, "changes", "patch"], query).await?;
    let truncated = answer.headers().contains_key(TRUNCATED);
    let patch = answer.bytes().await?;
    if screen.json {
        let text = String::from_utf8_lossy(&patch);
        screen.line(Style::Plain, &json!({ "patch": text, "truncated": truncated }).to_string());
        return Ok(Exit::Completed);
    }
    if std::io::stdout().is_terminal() {
        screen.text(Style::Plain, &String::from_utf8_lossy(&patch));
    } else {
        // Byte for byte, because not every file is UTF-8.
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(&patch).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Closed),
            written => written?,
        }
    }
    if truncated {
        screen.note("some files are left out, because the diff is too large; raise limits.patch_bytes");
    }
    Ok(Exit::Completed)
}

fn print(base: &str, files: &[ShownFile], truncated: bool, screen: &mut Screen) {
    let (mut added, mut removed) = (0, 0);
    for file in files {
        added += file.added.unwrap_or_default();
        removed += file.removed.unwrap_or_default();
        screen.end_line();
        screen.text(Style::Dim, &format!("{:<10}", file.status));
        match (file.added, file.removed) {
            (Some(added), Some(removed)) => {
                screen.text(Style::Good, &format!("{:>6}", format!("+{added}")));
                screen.text(Style::Bad, &format!("{:>6}", format!("-{removed}")));
            }
            _ => screen
                .text(Style::Dim, &format!("{:>12}", if file.binary { "binary" } else { "not counted" })),
        }
        screen.text(Style::Plain, &format!("  {}\n", name(file)));
    }
    let short = base.get(..12).unwrap_or(base);
    let files = counted(files.len() as u64, "file");
    let more = if truncated { "; there are more files: raise limits.changes_files" } else { "" };
    screen.line(Style::Dim, &format!("{files}, +{added} -{removed} since {short}{more}"));
}

/// The path in one line.
fn name(file: &ShownFile) -> String {
    let line = |path: &str| path.replace(char::is_control, "\u{fffd}");
    match &file.old_path {
        Some(old) => format!("{} -> {}", line(old), line(&file.path)),
        None => line(&file.path),
    }
}
