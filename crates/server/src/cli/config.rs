//! `tokenrail config`: the files that are read, the effective settings, and an example to begin with.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::screen::{Screen, Style};
use super::{Exit, Failure};
use crate::config::{Config, user_file, usual_files};

/// A configuration file with the most common settings, all commented out.
const EXAMPLE: &str = include_str!("../config/example.toml");

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the paths where a configuration file may be, and which one is read
    Path,
    /// Print the settings in effect, in the format of a configuration file. Values of `env`, strings in `parameters`
    /// and credentials in URLs are hidden; `args`, `resume_args` and `model_args` are shown as they are
    Show,
    /// Write an example configuration file: the most common settings, all of them commented out. It is written to the
    /// file named by --config, else to `tokenrail.toml` in the user's config folder. The file must not exist yet
    Init,
}

/// Prints the files in the order in which they are searched, each with its state: read, not read or absent.
pub(crate) fn path(asked: Option<&Path>, env: &BTreeMap<String, String>, screen: &mut Screen) -> Exit {
    let files = asked.map_or_else(|| usual_files(env), |file| vec![file.to_owned()]);
    let mut is_found = false;
    for file in files {
        let state = match file.is_file() {
            false => "absent",
            true if is_found => "not read",
            true => "read",
        };
        is_found |= state == "read";
        let file = std::path::absolute(&file).unwrap_or(file).display().to_string();
        let line = if screen.json {
            json!({ "path": file, "state": state }).to_string()
        } else {
            format!("{state:<8}  {file}")
        };
        screen.line(Style::Plain, &line);
    }
    if !is_found && !screen.json {
        screen.note("no file is read; the defaults apply. To write one: tokenrail config init");
    }
    Exit::Completed
}

pub(crate) fn show(config: &Config, screen: &mut Screen) -> Result<Exit, Failure> {
    let table = config.to_table();
    if screen.json {
        screen.line(Style::Plain, &serde_json::to_string(&table)?);
    } else {
        screen.text(Style::Plain, &table.to_string());
    }
    Ok(Exit::Completed)
}

pub(crate) fn init(
    asked: Option<&Path>,
    env: &BTreeMap<String, String>,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let Some(file) = asked.map(PathBuf::from).or_else(|| user_file(env)) else {
        return Err(Failure::new(Exit::Usage, "cannot find a config folder; name the file with --config"));
    };
    let shown = file.display();
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, format!("cannot write {shown}: {error}"));
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    // Only its owner may read it: agent types can contain secrets.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    let mut written = created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let hint = format!("{shown} already exists; edit it, or name another file with --config");
            Failure::new(Exit::Failed, hint)
        }
        _ => failed(error),
    })?;
    written.write_all(EXAMPLE.as_bytes()).map_err(failed)?;
    let line = if screen.json { json!({ "path": file }).to_string() } else { shown.to_string() };
    screen.line(Style::Plain, &line);
    Ok(Exit::Completed)
}
