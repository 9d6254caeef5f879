//! `tokenrail demo`: launches and follows an agent that is a recorded session, without an account. If a server uses the
//! data folder already, or the user names a server by its URL, the demo plays there.

use clap::Args;
use serde_json::{Value, json};

use super::attend::OnStop;
use super::client::Client;
use super::open::about_link;
use super::run::launch_and_follow;
use super::screen::{Screen, Style};
use super::serve::{StopSignal, running, warn_of_root};
use super::{Exit, Failure};
use crate::config::{Config, RunnerConfig};
use crate::server::Server;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Exit when the demo's turn ends
    #[arg(long)]
    once: bool,
    /// Speed factor: 1 is the original speed, 2 is twice as fast, 0 is as fast as possible. Ignored if a server is
    /// already running [default: 1]
    #[arg(long, value_name = "FACTOR")]
    speed: Option<f64>,
}

const PROMPT: &str = "Show me what Tokenrail does.";

pub(crate) async fn demo(mut config: Config, args: DemoArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    if args.speed.is_some_and(|speed| !(speed.is_finite() && 0.0 <= speed)) {
        return Err(Failure::new(Exit::Usage, "--speed must be a number, 0 or greater"));
    }
    let mut stop = StopSignal::listen()?;
    if let Some(target) = running(&config) {
        return demo_there(Config { target, ..config }, &args, &mut stop, screen).await;
    }
    let replay = config.agents.get_mut("demo").map(|agent| &mut agent.runner);
    if let (Some(RunnerConfig::Replay(replay)), Some(speed)) = (replay, args.speed) {
        replay.speed = speed;
    }
    warn_of_root(screen);
    let (data_dir, repeat) = (config.data_dir.clone(), config.repeat.clone());
    let server = Server::start(config).await?;
    let client = Client::of_own(&server, &data_dir, &repeat)?;
    // Printed before the launch: the page shows the session while it plays, whatever its outcome.
    let page = server.page_url().await;
    if screen.json {
        screen.note(&format!("open in a browser: {page}"));
    } else {
        screen.line(Style::Dim, &format!("serving on {}", server.url()));
        screen.line(Style::Dim, &format!("open in a browser: {page}"));
    }
    let body = body();
    let shown = launch_and_follow(&client, &body, OnStop::Cancel, &mut stop, screen).await;
    let exit = match &shown {
        Ok(exit) => *exit,
        Err(_) => Exit::Failed,
    };
    if !args.once && exit == Exit::Completed {
        if !screen.json {
            say_saved(&page, &repeat, screen);
            screen.line(Style::Dim, "Press Ctrl-C to stop the server.");
        }
        stop.recv().await;
    }
    server.stop(tokenrail_application::AtStop::Keep).await;
    shown
}

/// Plays the demo on a server that goes on.
async fn demo_there(
    config: Config,
    args: &DemoArgs,
    stop: &mut StopSignal,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let client = Client::reach(&config).await?;
    if args.speed.is_some() {
        screen.note("a server is already running and plays the demo at its own speed; --speed has no effect");
    }
    let page = client.page_url(None).await?;
    if screen.json {
        screen.note(&format!("open in a browser: {page}"));
    } else {
        screen.line(Style::Dim, &format!("using the server at {}", client.base()));
        screen.line(Style::Dim, &format!("open in a browser: {page}"));
    }
    let exit = launch_and_follow(&client, &body(), OnStop::LeaveOrCancel, stop, screen).await?;
    if exit == Exit::Completed && !screen.json {
        say_saved(&page, &config.repeat, screen);
    }
    Ok(exit)
}

/// The end of the demo.
fn say_saved(page: &str, repeat: &str, screen: &mut Screen) {
    screen.line(Style::Plain, &format!("\nAll of the output above is saved. Open {page}"));
    if let Some(about) = about_link(page, repeat) {
        screen.line(Style::Dim, &about);
    }
}

fn body() -> Value {
    json!({ "type": "demo", "prompt": PROMPT })
}
