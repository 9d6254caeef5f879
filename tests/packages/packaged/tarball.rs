//! The tarball, unpacked into an empty folder.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::{DEMO, assert_demo, folder, package, run};

fn unpacked() -> (TempDir, PathBuf) {
    let empty = tempfile::tempdir().unwrap();
    let archive = package("tokenrail-", "-x86_64-linux.tar.gz");
    run(empty.path(), "tar", &["-xzf", &archive.to_string_lossy()]);
    let top: Vec<_> = std::fs::read_dir(empty.path()).unwrap().flatten().collect();
    assert_eq!(top.len(), 1, "everything is in one folder");
    let path = top[0].path();
    (empty, path)
}

#[test]
fn the_demo_runs_from_an_empty_folder() {
    let (_keep, tokenrail) = unpacked();
    let home = tempfile::tempdir().unwrap();
    assert_demo(&run(home.path(), tokenrail.join("bin/tokenrail"), &DEMO));
}

#[test]
fn the_checksums_are_those_of_the_files() {
    let (_keep, tokenrail) = unpacked();
    run(&tokenrail, "sha256sum", &["--check", "--strict", "SHA256SUMS"]);
    let sums = std::fs::read_to_string(tokenrail.join("SHA256SUMS")).unwrap();
    let files = run(&tokenrail, "find", &[".", "-type", "f", "!", "-name", "SHA256SUMS"]);
    assert_eq!(sums.lines().count(), files.lines().count(), "every file has a checksum");
    run(&folder(), "sha256sum", &["--check", "--strict", "SHA256SUMS"]);
}

#[test]
fn a_server_finds_its_supervisor_and_both_need_no_library() {
    let (keep, tokenrail) = unpacked();
    for program in ["tokenrail", "tokenrail-supervisor"] {
        let bytes = std::fs::read(tokenrail.join("bin").join(program)).unwrap();
        let has = |text: &[u8]| memchr::memmem::find(&bytes, text).is_some();
        assert!(!has(b"/lib64/ld-linux") && !has(b"/lib/ld-musl"), "{program} needs a dynamic loader");
    }
    let mut doctor = Command::new(tokenrail.join("bin/tokenrail"));
    // It fails if the machine has no agent program.
    let found = doctor.args(["doctor", "--color=never"]).env("HOME", keep.path()).output().unwrap().stdout;
    let found = String::from_utf8(found).unwrap();
    let supervisors = found.lines().find(|line| line.contains("supervisors")).unwrap();
    assert!(supervisors.trim_end().ends_with("bin/tokenrail-supervisor"), "{supervisors}");
}

#[test]
fn no_file_names_the_machine_that_built_it() {
    let (_keep, tokenrail) = unpacked();
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_string_lossy();
    let cargo =
        std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap()));
    for file in run(&tokenrail, "find", &[".", "-type", "f"]).lines() {
        let bytes = std::fs::read(tokenrail.join(file)).unwrap();
        for folder in [&*checkout, &*cargo] {
            assert!(memchr::memmem::find(&bytes, folder.as_bytes()).is_none(), "{file} contains {folder}");
        }
    }
}

#[test]
fn licences_completions_manual_and_units_are_in_it() {
    let (_keep, tokenrail) = unpacked();
    for file in [
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "completions/tokenrail.bash",
        "completions/_tokenrail",
        "completions/tokenrail.fish",
        "man/tokenrail.1",
        "man/tokenrail-run.1",
        "systemd/tokenrail.service",
        "systemd/tokenrail.user.service",
        "systemd/sysusers.conf",
        "systemd/tokenrail.toml",
    ] {
        assert!(tokenrail.join(file).is_file(), "{file} is missing");
    }
    let third_party = std::fs::read_to_string(tokenrail.join("third-party.txt")).unwrap();
    assert!(third_party.contains("tokio v") && third_party.contains("Permission is hereby granted"));
}
