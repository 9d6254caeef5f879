//! `tokenrail up`: the server and its page, in one command.

use clap::Args;

use super::open::{OpenArgs, link, open, open_in_browser};
use super::screen::{Screen, Style};
use super::serve::{ServeArgs, running, serve_and};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Print the URL of the page, but do not open a browser
    #[arg(long)]
    print: bool,
}

pub(crate) async fn up(config: Config, args: UpArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let UpArgs { print } = args;
    if let Some(target) = running(&config) {
        return open(&Config { target, ..config }, OpenArgs { id: None, print }, screen).await;
    }
    let repeat = config.repeat.clone();
    Box::pin(serve_and(config, ServeArgs::quiet(), screen, async move |server, screen| {
        let url = server.page_url().await;
        if screen.json {
            screen.line(Style::Plain, &link(&url));
        } else {
            greet(&url, server.token().is_some(), &repeat, screen);
        }
        if !print {
            open_in_browser(&url, screen);
        }
    }))
    .await
}

/// Says where the page is, and what to do next.
fn greet(url: &str, has_login: bool, repeat: &str, screen: &mut Screen) {
    screen.line(Style::Bold, &format!("Tokenrail is up. Its page: {url}"));
    let run = format!("To run an agent in a folder: tokenrail run --cwd . \"Explain this project\"{repeat}");
    screen.line(Style::Plain, &run);
    if has_login {
        let hint = format!("This link works once, within 10 minutes. For a new one: tokenrail open{repeat}");
        screen.line(Style::Dim, &hint);
    }
    screen.line(Style::Dim, "Press Ctrl-C to stop the server. Agents keep running.");
}
