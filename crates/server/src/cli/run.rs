//! `tokenrail run`: launch an agent on the running server, or on a private one, and follow it.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::follow::follow;
use super::screen::{Screen, Style};
use super::serve::{StopSignal, warn_of_root};
use super::{Exit, Failure};
use crate::config::Config;
use crate::server::Server;

/// Bytes of a prompt that is read from standard input.
const PROMPT_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The agent type [default: the configured one]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The model, by the name that the agent program knows
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The folder to work in; inside one of the type's `cwd_roots`
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,
    /// A name for people
    #[arg(long)]
    name: Option<String>,
    /// A session of the agent program to resume
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The prompt; `-` reads it from standard input
    prompt: String,
}

pub(crate) async fn run(config: Config, args: RunArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let body = body(args)?;
    let mut stop = StopSignal::listen()?;
    match Client::reach(&config).await {
        Ok(client) => launch_and_follow(&client, &body, &mut stop, screen).await,
        Err(error) if error.exit == Exit::Unreachable => {
            screen.remark("no server is running; this run gets one of its own");
            warn_of_root(screen);
            let mut private = config;
            // For this run alone, wherever a server for others would listen.
            private.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let server = Server::start(private).await?;
            let client = Client::new(&server.url(), server.token())?;
            let done = launch_and_follow(&client, &body, &mut stop, screen).await;
            server.stop(true).await;
            done
        }
        Err(error) => Err(error),
    }
}

/// Launches, and follows until the end; a stop signal cancels the agent.
pub(crate) async fn launch_and_follow(
    client: &Client,
    body: &Value,
    stop: &mut StopSignal,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let launched = client.post(&["api", "agents"], body).await?;
    let id = launched.get("agentId").and_then(Value::as_str).unwrap_or_default().to_owned();
    if screen.is_live() {
        screen.line(Style::Dim, &format!("agent {id}"));
    }
    tokio::select! {
        done = follow(client, &id, 0, false, screen) => done,
        () = stop.recv() => {
            client.post(&["api", "agents", &id, "cancel"], &json!({})).await?;
            screen.remark("cancelled");
            Ok(Exit::Interrupted)
        }
    }
}

fn body(args: RunArgs) -> Result<Value, Failure> {
    let RunArgs { kind, model, cwd, name, session, prompt } = args;
    let prompt = if prompt == "-" {
        let mut text = String::new();
        std::io::stdin().take(PROMPT_BYTES).read_to_string(&mut text)?;
        text
    } else {
        prompt
    };
    let mut body = Map::from_iter([("prompt".to_owned(), Value::String(prompt))]);
    let fields = [("type", kind), ("model", model), ("cwd", cwd), ("name", name), ("sessionId", session)];
    for (key, value) in fields {
        if let Some(value) = value {
            body.insert(key.to_owned(), Value::String(value));
        }
    }
    Ok(Value::Object(body))
}
