//! The licences of the libraries in the programs. Most of them require that every copy names their authors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::programs::{TARGET, cargo_home};
use crate::{Failure, process, web};

const HEADING: &str = "\
The programs contain the following libraries, and musl libc and the Rust standard library (both MIT).
";

const LINE: &str =
    "----------------------------------------------------------------------------------------------------";

/// The beginnings of the names of files with licences.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// The text: all libraries with the names of their licences, then each text once, with the libraries that have it.
pub(super) fn licences() -> Result<String, Failure> {
    let mut tree = process::cargo();
    tree.args(["tree", "--locked", "--package", "tokenrail-server", "--edges", "normal", "--target", TARGET]);
    tree.args(["--prefix", "none", "--no-dedupe", "--format", "{p}\t{l}"]);
    let tree = process::output("the libraries of the programs", &mut tree)?;
    // Paths in parentheses: the crates of this project.
    let libraries: BTreeSet<_> =
        tree.lines().filter(|line| !line.contains(" (/")).filter_map(|line| line.split_once('\t')).collect();
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut out = HEADING.to_owned();
    for (library, licence) in libraries {
        let library = library.trim_end_matches(" (proc-macro)");
        _ = writeln!(out, "\n{library}: {licence}");
        for text in texts_of(&source_of(library)?)? {
            texts.entry(text).or_default().push(library);
        }
    }
    for (text, libraries) in texts {
        _ = write!(out, "\n{LINE}\n{}\n{LINE}\n\n{text}\n", libraries.join(", "));
    }
    _ = write!(out, "\n{LINE}\nThe web page\n{LINE}\n\n{}", web::third_party()?);
    Ok(out)
}

/// The folder of a library, such as `serde v1.0.229`, in cargo's cache of sources.
fn source_of(library: &str) -> Result<PathBuf, Failure> {
    let name = library.replacen(" v", "-", 1);
    let sources = cargo_home().join("registry/src");
    let missing = || Failure::new(format!("the source of {library} is not in {}", sources.display()));
    let registries = fs::read_dir(&sources).map_err(|_| missing())?.flatten();
    registries.map(|registry| registry.path().join(&name)).find(|path| path.is_dir()).ok_or_else(missing)
}

fn texts_of(source: &Path) -> Result<Vec<String>, Failure> {
    let unreadable = |error| Failure::new(format!("cannot read {}: {error}", source.display()));
    let mut texts = Vec::new();
    for entry in fs::read_dir(source).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|beginning| name.starts_with(beginning)) {
            let text = fs::read_to_string(&path).map_err(unreadable)?;
            texts.push(text.replace("\r\n", "\n").trim().to_owned());
        }
    }
    Ok(texts)
}
