//! The programs: static, for every distribution.

use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, process, system, workspace};

pub(super) const TARGET: &str = "x86_64-unknown-linux-musl";
const PROFILE: &str = "dist";

/// Builds both programs, and returns their folder.
pub(super) fn build() -> Result<PathBuf, Failure> {
    // SQLite, zstd and ring are compiled from C.
    system::program("musl-tools", &["musl-gcc"])?;
    add_target()?;
    let mut build = process::cargo();
    build.args(["build", "--profile", PROFILE, "--locked", "--target", TARGET]);
    build.args(["--package", "tokenrail-server", "--bins"]);
    // Without the folders of this machine, another machine makes the same bytes.
    let folders = [(workspace::root(), "/tokenrail"), (cargo_home(), "/cargo")];
    let remap = |option: &str, between: &str| {
        let options = folders.iter().map(|(from, to)| format!("{option}={}={to}", from.display()));
        options.collect::<Vec<_>>().join(between)
    };
    build.env("CARGO_ENCODED_RUSTFLAGS", remap("--remap-path-prefix", "\x1f"));
    build.env("CFLAGS_x86_64_unknown_linux_musl", remap("-ffile-prefix-map", " "));
    build.env("CARGO_PROFILE_DIST_STRIP", "symbols").env("CARGO_INCREMENTAL", "0");
    process::step("building the static programs", &mut build)?;
    Ok(workspace::target().join(TARGET).join(PROFILE))
}

fn add_target() -> Result<(), Failure> {
    let mut asked = Command::new("rustc");
    asked.args(["--print", "target-libdir", "--target", TARGET]).current_dir(workspace::root());
    let libraries = process::output("looking for the target", &mut asked)?;
    if PathBuf::from(libraries.trim()).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).current_dir(workspace::root());
    process::step(&format!("installing the target {TARGET}"), &mut rustup)
}

pub(super) fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
