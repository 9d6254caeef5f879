//! One module for each package. Their names are those in the table of `xtask/src/package.rs`.

mod container;
mod deb;
mod npm;
mod tarball;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the packages.
fn folder() -> PathBuf {
    let folder = std::env::var_os("TOKENRAIL_TEST_PACKAGES").map(PathBuf::from);
    folder.expect("TOKENRAIL_TEST_PACKAGES is not set; run: cargo xtask test --only packaged")
}

/// The path of the only package with such a name.
fn package(beginning: &str, end: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder()).expect("the packages").flatten();
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(beginning) && name.ends_with(end)
    };
    let found: Vec<_> = entries.map(|entry| entry.path()).filter(is_it).collect();
    let [package] = &found[..] else { panic!("not one package {beginning}…{end}: {found:?}") };
    package.clone()
}

/// Runs a program in a folder with nothing of this user's settings. It must succeed. Returns what it printed.
fn run(folder: &Path, program: impl AsRef<Path>, arguments: &[&str]) -> String {
    let program = program.as_ref();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("HOME", folder).env_remove("XDG_CONFIG_HOME");
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {arguments:?}: {printed}{complaint}", program.display());
    printed
}

/// The demo, played as fast as possible by a server on a free port.
const DEMO: [&str; 7] = ["demo", "--once", "--speed", "0", "--listen", "127.0.0.1:0", "--color=never"];

/// A text that the demo prints near its end.
fn assert_demo(printed: &str) {
    assert!(printed.contains("completed"), "the demo printed:\n{printed}");
}
