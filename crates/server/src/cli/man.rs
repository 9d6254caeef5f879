//! `tokenrail man`: the manual pages, for packagers.

use std::path::PathBuf;

use clap::Args;

use super::screen::{Screen, Style};
use super::{Exit, Failure};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder; it is created if it does not exist
    folder: PathBuf,
}

pub(crate) fn man(args: &ManArgs, command: clap::Command, screen: &mut Screen) -> Result<Exit, Failure> {
    let folder = args.folder.display();
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, format!("{folder}: {error}"));
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(command, &args.folder).map_err(failed)?;
    if !screen.json {
        screen.line(Style::Plain, &format!("wrote the manual pages to {folder}"));
    }
    Ok(Exit::Completed)
}
