//! The built files are in the repository, so that building the server does not require Node. This test fails if they
//! are older than their sources.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The script that hashes the inputs of the build when it builds the page. It contains their list.
const SOURCE_HASH: &str = include_str!("../../page/source-hash.ts");

#[test]
fn the_built_page_is_as_new_as_its_sources() {
    let built = fs::read_to_string(root().join("page/dist/.source-sha256")).unwrap_or_default();
    assert_eq!(
        built.trim(),
        hash_of(&root()),
        "the page was changed: run `cargo xtask web`, and commit page/dist"
    );
}

#[test]
fn the_page_loads_its_own_files_and_nothing_else() {
    let html = fs::read_to_string(root().join("page/dist/index.html")).unwrap();
    let mut loaded: Vec<&str> = html.split('"').filter(|part| part.starts_with('/')).collect();
    loaded.sort_unstable();
    assert_eq!(loaded, ["/app.css", "/app.js", "/dom.js", "/icon.svg", "/runtime.js", "/view.js"], "{html}");
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The inputs of the build: whole folders, and single files.
fn sources() -> impl Iterator<Item = &'static str> {
    let (_, list) = SOURCE_HASH.split_once("const sources = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split('"').skip(1).step_by(2)
}

/// The hash of what `sha256sum` would print for all of them, ordered by path.
fn hash_of(root: &Path) -> String {
    let mut files = Vec::new();
    for source in sources() {
        collect(root, source.to_owned(), &mut files);
    }
    files.sort();
    let lines: Vec<String> =
        files.iter().map(|file| format!("{}  {file}\n", hex(&fs::read(root.join(file)).unwrap()))).collect();
    hex(lines.concat().as_bytes())
}

fn collect(root: &Path, path: String, files: &mut Vec<String>) {
    if !root.join(&path).is_dir() {
        return files.push(path);
    }
    for entry in fs::read_dir(root.join(&path)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        collect(root, format!("{path}/{name}"), files);
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes).into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
