//! `tokenrail run`: launch an agent on the running server, or on a private one, and follow it.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use clap::Args;
use serde_json::{Map, Value};

use super::allow::allow_cwd;
use super::attend::{Attended, End, Host, OnStop, attend};
use super::client::Client;
use super::copies::show_agent;
use super::images::ImageArgs;
use super::screen::{Screen, Style};
use super::serve::{StopSignal, warn_of_root};
use super::{Exit, Failure};
use crate::config::{Config, RunnerConfig, Target};
use crate::server::Server;

/// The maximum length of a prompt or message on standard input, in bytes.
const TEXT_BYTES: u64 = 1 << 20;
/// The problem code if agents are not allowed to work in the requested folder.
const CWD_NOT_ALLOWED: &str = "cwd_not_allowed";

/// Below the options in the help: too long for the list of commands.
pub(super) const NOTES: &str = "If no server is running, `run` starts one, and stops it when the command ends. \
    It starts none with `--detach`, or if a URL or an address is set (`--url`, `--listen`, `TOKENRAIL_URL`, \
    `TOKENRAIL_LISTEN`). Ctrl-C leaves the agent running, and a second Ctrl-C within 2 seconds cancels it. If \
    `run` started the server, the next server that you start takes the agent over. An agent whose \
    type has `runner = \"proxy\"` in the configuration cannot be taken over: its turn ends when the server stops.";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The agent type [default: `server.default_agent`]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The model, as the agent program names it
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The working directory [default: a new, empty folder]. If the server runs on this machine with the same data
    /// folder, `run` adds the folder to the allowed folders. For any other server, first allow the folder there: with
    /// `tokenrail allow` on its machine, or in `cwd_roots` of the type
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,
    /// Name or id of the node on which to launch the agent, if several servers share one database. Cannot be used with
    /// `--cwd`. With `--session`, it can only be the node to which this command connects
    #[arg(long, value_name = "NODE", conflicts_with = "cwd")]
    node: Option<String>,
    /// A display name for the agent
    #[arg(long)]
    name: Option<String>,
    /// Resume this session of the agent program
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    images: ImageArgs,
    /// Launch the agent, print its id and exit, instead of following it. This needs a running server
    #[arg(long)]
    detach: bool,
    /// The prompt; `-` reads it from standard input
    prompt: String,
}

pub(crate) async fn run(config: Config, args: RunArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let detach = args.detach;
    let body = body(args)?;
    let mut stop = StopSignal::listen()?;
    match Client::reach(&config).await {
        Ok(client) => {
            if detach {
                show_agent(&post_launch(&client, &body, screen).await?, screen);
                return Ok(Exit::Completed);
            }
            launch_and_follow(&client, &body, OnStop::LeaveOrCancel, &mut stop, screen).await
        }
        // If the user names a server, no private server replaces it. A detached agent needs a server that goes on.
        Err(error) if error.exit == Exit::Unreachable && config.target == Target::DataFolder && !detach => {
            Box::pin(run_on_own_server(config, &body, &mut stop, screen)).await
        }
        Err(error) => Err(error),
    }
}

/// Starts a server for this run only.
async fn run_on_own_server(
    config: Config,
    body: &Value,
    stop: &mut StopSignal,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    screen.note("no server is running; starting a private one for this run");
    warn_of_root(screen);
    let (host, repeat, data_dir) = (host_of(body, &config), config.repeat.clone(), config.data_dir.clone());
    // The server is for this run only, so it must not listen where the configured server would. No proxy reaches it.
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let private = Config { listen, public_url: None, tls: None, ..config };
    let server = Server::start(private).await?;
    let client = Client::of_own(&server, &data_dir, &repeat)?;
    let (id, done) = match launch(&client, body, screen).await {
        Ok(id) => {
            let (since, keep, on_stop) = (0, false, OnStop::LeaveOrCancel);
            let attended = Attended { client: &client, id: &id, since, keep, sent: None, host, on_stop };
            let done = attend(attended, stop, screen).await;
            (Some(id), done)
        }
        Err(error) => (None, Err(error)),
    };
    // The user knows of an agent that was left running. Nobody knows of any other agent of this run, for example if
    // the output was closed. Agents that this server has taken over from an earlier one keep running.
    if let Some(id) = id.filter(|_| !matches!(done, Ok(End::Left))) {
        server.end_agent(&id).await;
    }
    server.stop(tokenrail_application::AtStop::Keep).await;
    Ok(done?.exit())
}

/// Who has the agent of this launch when the server of this run stops.
fn host_of(body: &Value, config: &Config) -> Host {
    let kind = body.get("type").and_then(Value::as_str).or(config.default_agent.as_deref());
    match kind.and_then(|kind| config.agents.get(kind)).map(|agent| &agent.runner) {
        Some(RunnerConfig::Proxy(_)) => Host::OwnConnection,
        _ => Host::OwnServer,
    }
}

/// Launches an agent on a server that goes on, and follows it until its turn ends.
pub(crate) async fn launch_and_follow(
    client: &Client,
    body: &Value,
    on_stop: OnStop,
    stop: &mut StopSignal,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let id = launch(client, body, screen).await?;
    let attended =
        Attended { client, id: &id, since: 0, keep: false, sent: None, host: Host::Server, on_stop };
    Ok(attend(attended, stop, screen).await?.exit())
}

async fn launch(client: &Client, body: &Value, screen: &mut Screen) -> Result<String, Failure> {
    let launched = post_launch(client, body, screen).await?;
    let id = launched.get("agentId").and_then(Value::as_str).unwrap_or_default().to_owned();
    if screen.is_live() {
        screen.line(Style::Dim, &format!("agent {id}"));
    }
    Ok(id)
}

/// Launches an agent. If agents are not yet allowed to work in the folder, and the server uses the data folder of this
/// user, allows the folder first.
async fn post_launch(client: &Client, body: &Value, screen: &mut Screen) -> Result<Value, Failure> {
    let path = ["api", "agents"];
    match client.post(&path, body).await {
        Err(error) if error.code() == CWD_NOT_ALLOWED && allow_cwd(client, body["cwd"].as_str(), screen)? => {
            client.post(&path, body).await
        }
        launched => launched,
    }
}

fn body(args: RunArgs) -> Result<Value, Failure> {
    let RunArgs { kind, model, cwd, node, name, session, images, detach: _, prompt } = args;
    let prompt = read_text(prompt, "prompt")?;
    let cwd = cwd.map(|cwd| absolute(&cwd)).transpose()?;
    let mut body = Map::from_iter([("prompt".to_owned(), Value::String(prompt))]);
    if let Some(images) = images.read()? {
        body.insert("images".to_owned(), images);
    }
    let fields = [
        ("type", kind),
        ("model", model),
        ("cwd", cwd),
        ("node", node),
        ("name", name),
        ("sessionId", session),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            body.insert(key.to_owned(), Value::String(value));
        }
    }
    Ok(Value::Object(body))
}

/// The text of an argument. `-` stands for standard input. `what` is the argument's name in an error.
pub(crate) fn read_text(argument: String, what: &str) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut text = Vec::new();
    std::io::stdin().take(TEXT_BYTES + 1).read_to_end(&mut text)?;
    if TEXT_BYTES < text.len() as u64 {
        let hint = format!("the {what} on standard input is longer than {TEXT_BYTES} bytes");
        return Err(Failure::new(Exit::Usage, hint));
    }
    String::from_utf8(text).map_err(|error| Failure::new(Exit::Usage, error))
}

/// The server works in another folder, so it needs an absolute path. An absolute path is not checked, because it may
/// be on another machine.
fn absolute(cwd: &str) -> Result<String, Failure> {
    if Path::new(cwd).is_absolute() {
        return Ok(cwd.to_owned());
    }
    let failed = |error| Failure::new(Exit::Usage, format!("--cwd {cwd}: {error}"));
    let path = std::fs::canonicalize(cwd).map_err(failed)?;
    path.into_os_string()
        .into_string()
        .map_err(|_| Failure::new(Exit::Usage, format!("--cwd {cwd}: not valid UTF-8")))
}
