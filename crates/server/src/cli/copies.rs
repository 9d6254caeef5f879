//! `tokenrail export`, `tokenrail import` and `tokenrail replay`.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::{StreamExt as _, stream};
use reqwest::{Body, Response};
use serde_json::{Value, json};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::agent_id::AgentArg;
use super::attend::{Attended, Host, OnStop, attend};
use super::client::Client;
use super::screen::{Screen, Style, counted};
use super::serve::StopSignal;
use super::{Exit, Failure};
use crate::config::Config;

/// How many bytes of a file are read at once.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Write to this file, which must not exist yet [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A file written by `export`
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// Speed factor: 1 is the original speed, 2 is twice as fast, 0 is as fast as possible
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    speed: f64,
}

pub(crate) async fn export(config: &Config, args: ExportArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let id = args.agent.find(&client).await?;
    let answer = client.get(&["api", "agents", &id, "export"], &[]).await?;
    let Some(path) = args.output else { return to_stdout(answer).await };
    // Only its owner may read it, as in the data folder: agents read and print secrets.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await;
    let mut file = created.map_err(|error| with_path(&path, &error))?;
    match to_file(answer, &mut file).await {
        Ok(bytes) => {
            screen.note(&format!("wrote {} to {}", counted(bytes, "byte"), path.display()));
            Ok(Exit::Completed)
        }
        Err(failure) => {
            // An incomplete file must not be mistaken for a complete one.
            let _left = tokio::fs::remove_file(&path).await;
            Err(failure)
        }
    }
}

async fn to_file(answer: Response, file: &mut File) -> Result<u64, Failure> {
    let (mut chunks, mut bytes) = (answer.bytes_stream(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        file.write_all(&chunk).await?;
        bytes += chunk.len() as u64;
    }
    file.sync_all().await?;
    Ok(bytes)
}

async fn to_stdout(answer: Response) -> Result<Exit, Failure> {
    let mut chunks = answer.bytes_stream();
    let mut stdout = std::io::stdout().lock();
    while let Some(chunk) = chunks.next().await {
        match stdout.write_all(&chunk?) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Closed),
            written => written?,
        }
    }
    stdout.flush()?;
    Ok(Exit::Completed)
}

pub(crate) async fn import(config: &Config, args: ImportArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let file = File::open(&args.file).await.map_err(|error| with_path(&args.file, &error))?;
    let chunks = stream::try_unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = file.read(&mut chunk).await?;
        chunk.truncate(read);
        Ok::<_, std::io::Error>((0 < read).then_some((chunk, file)))
    });
    let agent = client.upload(&["api", "agents", "import"], Body::wrap_stream(chunks)).await?;
    show_agent(&agent, screen);
    Ok(Exit::Completed)
}

pub(crate) async fn replay(config: &Config, args: ReplayArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let body = json!({ "speed": args.speed });
    let original = args.agent.find(&client).await?;
    let agent = client.post(&["api", "agents", &original, "replay"], &body).await?;
    let id = agent.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    if screen.is_live() {
        screen.line(Style::Dim, &format!("agent {id}"));
    }
    let mut stop = StopSignal::listen()?;
    let (since, keep, host, on_stop) = (0, false, Host::Server, OnStop::LeaveOrCancel);
    let attended = Attended { client: &client, id: &id, since, keep, sent: None, host, on_stop };
    Ok(attend(attended, &mut stop, screen).await?.exit())
}

pub(crate) fn show_agent(agent: &Value, screen: &mut Screen) {
    if screen.json {
        screen.line(Style::Plain, &agent.to_string());
    } else {
        screen.line(Style::Plain, agent.get("id").and_then(Value::as_str).unwrap_or_default());
    }
}

fn with_path(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}
