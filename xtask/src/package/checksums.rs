//! `SHA256SUMS`: users check a download with `sha256sum --check SHA256SUMS`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::folder::Folder;
use crate::{Failure, process};

pub(super) const NAME: &str = "SHA256SUMS";

/// Writes the sums of these files, which are in `folder`.
pub(super) fn write(folder: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    let names = files.iter().filter_map(|file| file.strip_prefix(folder).ok());
    let sums = sums(folder, &names.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>())?;
    let path = folder.join(NAME);
    std::fs::write(&path, sums)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

/// Writes the sums of all files in a folder.
pub(super) fn write_for(folder: &Folder) -> Result<(), Failure> {
    let sums = sums(folder.path(), &folder.files("")?)?;
    folder.text(NAME, &sums).map(drop)
}

fn sums(folder: &Path, names: &[String]) -> Result<String, Failure> {
    let mut sums = Command::new("sha256sum");
    process::output("checksums", sums.arg("--").args(names).current_dir(folder))
}
