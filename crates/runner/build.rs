//! Tells the crate from which sources it is built: a supervisor works only for a server from the same sources.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The sources of the supervisor, and of the code that reads its files.
const SOURCES: [&str; 4] = ["src", "../ports/src", "../domain/src", "../../Cargo.lock"];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    let mut files = vec![PathBuf::from("build.rs")];
    for source in SOURCES {
        collect(Path::new(source), &mut files)?;
    }
    for file in files {
        // Not the folders, because a change of the tests does not count. A new file needs a `mod` in a watched file.
        println!("cargo::rerun-if-changed={}", file.display());
        (&file, fs::read(&file)?).hash(&mut hasher);
    }
    println!("cargo::rustc-env=TOKENRAIL_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// All files below `path`, in the same order each time. None if `path` does not exist.
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
