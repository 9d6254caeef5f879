//! `tokenrail backup`: a copy of the database, even while a server uses it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tokenrail_persistence::OpenError;

use super::doctor::database::violation;
use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};
use crate::config::{Config, PostgresBlock, StorageConfig};

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// A new or empty folder. The copy is a data folder without a token. To run a server on it, pass this folder to
    /// `serve` with --data-dir
    folder: PathBuf,
}

pub(crate) async fn backup(config: &Config, args: BackupArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    if let StorageConfig::Postgres(PostgresBlock { url, .. }) = &config.storage {
        return Err(Failure::new(
            Exit::Failed,
            format!(
                "the data is in PostgreSQL, so back it up with the tools of PostgreSQL; for example, run: pg_dump \
                 --format=custom --file=tokenrail.dump '{url}'"
            ),
        ));
    }
    let (from, to) = (config.data_dir.clone(), args.folder.clone());
    screen.note(&format!("copying {} ...", from.display()));
    let copied =
        tokio::task::spawn_blocking(move || tokenrail_persistence::sqlite_backup(&from, &to)).await?;
    let diagnosis = match copied {
        Ok(diagnosis) => diagnosis,
        Err(error @ OpenError::Corrupt { .. }) => {
            screen.error(Exit::Corrupt.code(), &error);
            return Ok(Exit::Corrupt);
        }
        Err(error) => return Err(error.into()),
    };
    for fault in &diagnosis.faults {
        screen.note(&format!(
            "the database is corrupt, and so is this copy ({}); restore an earlier backup",
            violation(fault)
        ));
    }
    if !diagnosis.faults.is_empty() {
        return Ok(Exit::Corrupt);
    }
    let (agents, events, folder) = (diagnosis.agents, diagnosis.events, args.folder.display().to_string());
    if screen.json {
        let done = json!({ "folder": folder, "agents": agents, "events": events });
        screen.line(Style::Plain, &done.to_string());
    } else {
        screen.line(
            Style::Plain,
            &format!("{folder}: {}, {}, verified", counted(agents, "agent"), counted(events, "event")),
        );
    }
    Ok(Exit::Completed)
}
