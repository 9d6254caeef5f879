//! What every package contains.

use std::path::PathBuf;
use std::process::Command;

use super::folder::Folder;
use super::{programs, third_party};
use crate::{Failure, process, workspace};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The programs, and the time that all files of the packages get.
pub(super) struct Release {
    pub(super) out: Folder,
    pub(super) server: PathBuf,
    pub(super) supervisor: PathBuf,
    /// Seconds since 1970. The time of the commit, so that a second build makes the same bytes.
    pub(super) time: String,
    pub(super) third_party: PathBuf,
}

impl Release {
    pub(super) fn build(out: Folder) -> Result<Self, Failure> {
        let time = commit_time()?;
        let programs = programs::build()?;
        let third_party = out.text("third-party.txt", &third_party::licences()?)?;
        let (server, supervisor) = (programs.join("tokenrail"), programs.join("tokenrail-supervisor"));
        Ok(Self { out, server, supervisor, time, third_party })
    }

    /// Runs the server's program with these arguments, and returns what it prints.
    pub(super) fn printed(&self, args: &[&str]) -> Result<String, Failure> {
        process::output(&format!("tokenrail {}", args.join(" ")), Command::new(&self.server).args(args))
    }

    /// Writes the manual pages to a folder below `folder`.
    pub(super) fn manual(&self, folder: &Folder, below: &str) -> Result<(), Failure> {
        let pages = folder.path().join(below);
        self.printed(&["man", &pages.to_string_lossy()]).map(drop)
    }
}

/// The time of the commit, or of `SOURCE_DATE_EPOCH`. A build of a source archive must set that variable, because an
/// archive has no commits.
fn commit_time() -> Result<String, Failure> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root());
    let time = process::output("the time of the commit", &mut git)?;
    Ok(time.trim().to_owned())
}
