//! `tokenrail up`: the server and its page, in one command.

use clap::Args;

use super::open::{OpenArgs, about_link, link, open, open_in_browser};
use super::screen::{Screen, Style};
use super::serve::{ServeArgs, running, serve_and};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Print the link to the page, but do not open a browser
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
            greet(&url, &repeat, screen);
        }
        if !print {
            open_in_browser(&url, screen);
        }
    }))
    .await
}

/// Says where the page is, and what to do next.
fn greet(url: &str, repeat: &str, screen: &mut Screen) {
    screen.line(Style::Bold, &format!("Tokenrail is up. Its page: {url}"));
    if let Some(about) = about_link(url, repeat) {
        screen.line(Style::Dim, &about);
    }
    let run = format!("To run an agent in a folder: tokenrail run --cwd . \"Explain this project\"{repeat}");
    screen.line(Style::Plain, &run);
    screen.line(Style::Dim, "Press Ctrl-C to stop the server. Agents keep running.");
}
