//! `tokenrail up`: the server and its page, in one command.

use clap::Args;

use super::open::{OpenArgs, open, open_in_browser};
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
    serve_and(config, ServeArgs::quiet(), screen, move |server, screen| {
        let url = server.page_url();
        screen.line(Style::Bold, &format!("Tokenrail is up. Its page: {url}"));
        screen.line(
            Style::Plain,
            &format!("To run an agent in a folder: tokenrail run --cwd . \"Explain this project\"{repeat}"),
        );
        if server.token().is_some() {
            let open = format!("tokenrail open{repeat}");
            let hint = format!("This link works once, within 10 minutes. For a new one: {open}");
            screen.line(Style::Dim, &hint);
        }
        screen.line(Style::Dim, "Press Ctrl-C to stop the server. Agents keep running.");
        if !print {
            open_in_browser(&url, screen);
        }
    })
    .await
}
