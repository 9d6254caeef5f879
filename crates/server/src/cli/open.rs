//! `tokenrail open`: a link that logs a browser in to the page, and the page in a browser.

use std::process::Stdio;

use clap::Args;
use serde_json::json;
use tokio::process::Command;

use super::agent_id;
use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::{Config, TOKEN_VARIABLE};

/// The program that opens an address in the user's browser.
const OPENER: &str = "xdg-open";
/// The variables of a desktop.
const DISPLAYS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// The agent whose page the link opens: its id, the beginning or the end of it (at least 4 characters), or
    /// `latest` for the newest agent. Without it, the link opens the list of agents
    pub(crate) id: Option<String>,
    /// Print the link, but do not open a browser. Use this on a shared machine. Without it, the browser gets the link,
    /// with its login code, as an argument, which other users can see in the list of processes
    #[arg(long)]
    pub(crate) print: bool,
}

pub(crate) async fn open(config: &Config, args: OpenArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let client = Client::reach(config).await?;
    let agent = match &args.id {
        Some(text) => Some(agent_id::find(&client, text).await?),
        None => None,
    };
    let url = client.page_url(agent.as_deref()).await?;
    let line = if screen.json { link(&url) } else { url.clone() };
    screen.line(Style::Plain, &line);
    if !args.print {
        open_in_browser(&url, screen);
    }
    Ok(Exit::Completed)
}

/// The link as a JSON line.
pub(crate) fn link(url: &str) -> String {
    json!({ "url": url }).to_string()
}

/// What to say about a link to the page. `None` if it logs nobody in, because the server has no token. `repeat` holds
/// the options that lead to the same server.
pub(crate) fn about_link(url: &str, repeat: &str) -> Option<String> {
    let logs_in = url.contains("#code=");
    logs_in.then(|| {
        format!(
            "This link can be used once and expires after 10 minutes. For a new one: tokenrail open{repeat}"
        )
    })
}

/// Opens the address in the user's browser, if there is a display.
pub(crate) fn open_in_browser(url: &str, screen: &mut Screen) {
    if !DISPLAYS.iter().any(|name| std::env::var_os(name).is_some_and(|name| !name.is_empty())) {
        return;
    }
    // The opener may be the browser itself, so nothing waits for its end.
    let started = Command::new(OPENER)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_remove(TOKEN_VARIABLE)
        .process_group(0)
        .spawn();
    if let Err(error) = started {
        screen.note(&format!("cannot start {OPENER}: {error}; open the link yourself"));
    }
}
