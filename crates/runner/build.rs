//! Tells the crate of which sources it is made: a supervisor works for a server of the same ones only.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What a supervisor and those who read its files are made of.
const SOURCES: [&str; 4] = ["src", "../ports/src", "../domain/src", "../../Cargo.lock"];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    let mut files = vec![PathBuf::from("build.rs")];
    for source in SOURCES {
        collect(Path::new(source), &mut files)?;
    }
    for file in files {
        // Each by itself: a new one is named by another one, and tests are to change nothing.
        println!("cargo::rerun-if-changed={}", file.display());
        (&file, fs::read(&file)?).hash(&mut hasher);
    }
    println!("cargo::rustc-env=TOKENRAIL_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// All files there, in an order that is always the same; none where there is nothing.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        let mut inside = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        inside.sort();
        for path in inside.iter().filter(|path| path.file_stem().is_none_or(|name| name != "tests")) {
            collect(path, files)?;
        }
    } else if path.is_file() {
        files.push(path.to_owned());
    }
    Ok(())
}
