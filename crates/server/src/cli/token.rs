//! `tokenrail token`: the access token, and a new one.

use std::io;

use clap::{Args, Subcommand};
use serde_json::json;
use tokenrail_persistence::is_in_use;

use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::Config;
use crate::token::{self, TokenError};

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    act: Option<TokenAct>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum TokenAct {
    /// Replace the access token. Restart the server to apply this: it then rejects the old token, and all browser
    /// sessions end
    Rotate,
}

pub(crate) fn token(config: &Config, args: &TokenArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let token = match args.act {
        None => token::read(&config.data_dir),
        Some(TokenAct::Rotate) => token::rotate(&config.data_dir),
    };
    let token = token.map_err(|error| match error {
        TokenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            let folder = config.data_dir.display();
            Failure::new(
                Exit::Failed,
                format!("no server has used the data folder {folder} yet; start the server once to create the token: tokenrail serve"),
            )
        }
        error => error.into(),
    })?;
    let line = if screen.json { json!({ "token": token }).to_string() } else { token };
    screen.line(Style::Plain, &line);
    if args.act.is_some() && is_in_use(&config.data_dir) {
        screen.note("the running server still accepts the old token; restart it (its agents keep running)");
    }
    Ok(Exit::Completed)
}
