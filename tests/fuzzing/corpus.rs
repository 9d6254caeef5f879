//! The saved inputs: `tests/fuzz/corpus`, with a folder for each target.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// The inputs of a target with their names, ordered by name.
pub(crate) fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<_> = fs::read_dir(folder(target))
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())
        })
        .collect();
    inputs.sort();
    inputs
}

/// Saves an input that failed. Returns its name.
pub(crate) fn keep(target: &str, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let name = format!("failed-{:016x}", hasher.finish());
    // If the folder cannot be written, the failure is reported nevertheless.
    let _ = fs::write(folder(target).join(&name), input);
    name
}
