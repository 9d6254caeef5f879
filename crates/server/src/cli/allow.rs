//! `tokenrail allow`: the folders that agents may work in, and those that `tokenrail run` names.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tokenrail_runner::AllowedFolders;

use super::client::Client;
use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::{Config, Target};

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// The folder; agents may also work in the folders below it. If omitted, the command lists the folders that were
    /// allowed with `allow` or `run --cwd`, but not those in the `cwd_roots` of agent types. To disallow a folder of
    /// this list, delete its line from the file `allowed-folders` in the data folder
    folder: Option<PathBuf>,
}

pub(crate) fn allow(config: &Config, args: &AllowArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    if matches!(config.target, Target::Url(_)) {
        let hint = "`tokenrail allow` changes the data folder of this machine; run it on the server's machine, \
                    without --url and with TOKENRAIL_URL unset";
        return Err(Failure::new(Exit::Usage, hint));
    }
    let allowed = AllowedFolders::of(&config.data_dir);
    match &args.folder {
        Some(folder) => {
            allow_folder(&config.data_dir, folder, screen)?;
        }
        None => list(&allowed, screen)?,
    }
    Ok(Exit::Completed)
}

fn list(allowed: &AllowedFolders, screen: &mut Screen) -> Result<(), Failure> {
    let failed = |error| Failure::new(Exit::Failed, format!("{}: {error}", allowed.path().display()));
    let folders = allowed.list().map_err(failed)?;
    if folders.is_empty() && !screen.json {
        screen.note(
            "no folders have been allowed; allow one with: tokenrail allow FOLDER (the folders in cwd_roots are not \
             listed here)",
        );
    }
    for folder in folders {
        if screen.json {
            screen.line(Style::Plain, &json!({ "folder": folder }).to_string());
        } else {
            screen.line(Style::Plain, &folder.display().to_string());
        }
    }
    Ok(())
}

/// Allows agents to work in the folder of a launch that the server refused. Returns whether another try can succeed.
/// The user who runs this command may use the folder, and the server runs as the same user. A server elsewhere has
/// folders of its own.
pub(crate) fn allow_cwd(client: &Client, cwd: Option<&str>, screen: &mut Screen) -> Result<bool, Failure> {
    match (client.data_folder(), cwd.map(Path::new)) {
        (Some(data_dir), Some(cwd)) if cwd.is_dir() => allow_folder(data_dir, cwd, screen),
        _ => Ok(false),
    }
}

/// Returns whether the folder was not allowed before.
fn allow_folder(data_dir: &Path, folder: &Path, screen: &mut Screen) -> Result<bool, Failure> {
    let allowed = AllowedFolders::of(data_dir);
    let failed = |error| Failure::new(Exit::Failed, format!("cannot allow {}: {error}", folder.display()));
    if !data_dir.is_dir() {
        let folder = data_dir.display();
        let hint =
            format!("the data folder {folder} does not exist yet; start the server first: tokenrail serve");
        return Err(Failure::new(Exit::Failed, hint));
    }
    let new = allowed.allow(folder).map_err(failed)?;
    if let Some(folder) = &new {
        let file = allowed.path().display();
        screen.note(&format!("agents may now work in {} (saved in {file})", folder.display()));
    }
    Ok(new.is_some())
}
