//! `tokenrail demo`: launches and follows an agent that is a recorded session, without an account.

use clap::Args;
use serde_json::json;

use super::attend::OnStop;
use super::client::Client;
use super::run::launch_and_follow;
use super::screen::{Screen, Style};
use super::serve::{StopSignal, warn_of_root};
use super::{Exit, Failure};
use crate::config::{Config, RunnerConfig};
use crate::server::Server;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Exit when the demo's turn ends
    #[arg(long)]
    once: bool,
    /// Speed factor: 1 is the original speed, 2 is twice as fast, 0 is as fast as possible
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    speed: f64,
}

const PROMPT: &str = "Show me what Tokenrail does.";

pub(crate) async fn demo(mut config: Config, args: DemoArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    if !(args.speed.is_finite() && 0.0 <= args.speed) {
        return Err(Failure::new(Exit::Usage, "--speed must be a number, 0 or greater"));
    }
    if let Some(RunnerConfig::Replay(replay)) = config.agents.get_mut("demo").map(|agent| &mut agent.runner) {
        replay.speed = args.speed;
    }
    warn_of_root(screen);
    let mut stop = StopSignal::listen()?;
    let repeat = config.repeat.clone();
    let server = Server::start(config).await?;
    let client = Client::of_own(&server, &repeat)?;
    // Printed before the launch: the page shows the session while it plays, whatever its outcome.
    let page = server.page_url();
    if screen.json {
        screen.remark(&format!("open in a browser: {page}"));
    } else {
        screen.line(Style::Dim, &format!("serving on {}", server.url()));
        screen.line(Style::Dim, &format!("open in a browser: {page}"));
    }
    let body = json!({ "type": "demo", "prompt": PROMPT });
    let shown = launch_and_follow(&client, &body, OnStop::Cancel, &mut stop, screen).await;
    let exit = match &shown {
        Ok(exit) => *exit,
        Err(_) => Exit::Failed,
    };
    if !args.once && exit == Exit::Completed {
        if !screen.json {
            screen.line(Style::Plain, &format!("\nEvery token above is saved. Open {page}"));
            screen.line(Style::Dim, "Press Ctrl-C to stop the server.");
        }
        stop.recv().await;
    }
    server.stop(false).await;
    shown
}
