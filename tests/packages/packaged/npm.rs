//! The npm packages, installed from their files into a project, without a network.

use tempfile::TempDir;

use super::{DEMO, assert_demo, package, run};

/// A project with these packages.
fn project(packages: &[&str]) -> TempDir {
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("package.json"), r#"{ "name": "mine", "private": true }"#).unwrap();
    let files = packages.iter().map(|name| package(name, ".tgz").to_string_lossy().into_owned());
    let files: Vec<_> = files.collect();
    let install = ["install", "--offline", "--no-audit", "--no-fund"];
    let arguments: Vec<_> = install.into_iter().chain(files.iter().map(String::as_str)).collect();
    run(project.path(), "npm", &arguments);
    project
}

#[test]
fn npx_runs_the_program_of_the_package_for_this_machine() {
    let project = project(&["tokenrail-0", "tokenrail-linux-x64-"]);
    let version = run(project.path(), "npx", &["--no-install", "tokenrail", "--version"]);
    assert_eq!(version.trim(), format!("tokenrail {}", env!("CARGO_PKG_VERSION")));
    let demo: Vec<_> = ["--no-install", "tokenrail"].into_iter().chain(DEMO).collect();
    assert_demo(&run(project.path(), "npx", &demo));
}

#[test]
fn without_the_package_for_this_machine_the_launcher_says_what_is_missing() {
    let project = project(&["tokenrail-0", "tokenrail-linux-x64-"]);
    std::fs::remove_dir_all(project.path().join("node_modules/@tokenrail/linux-x64")).unwrap();
    let launcher = project.path().join("node_modules/.bin/tokenrail");
    let output = std::process::Command::new(launcher).arg("--version").output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint.starts_with("error: the package @tokenrail/linux-x64 is missing"), "{complaint}");
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let project = project(&["tokenrail-0", "tokenrail-linux-x64-"]);
    let launcher = project.path().join("node_modules/.bin/tokenrail");
    let data = project.path().join("data");
    let mut listing = std::process::Command::new(launcher);
    let status = listing.arg("--data-dir").arg(data).arg("ls").output().unwrap().status;
    assert_eq!(status.code(), Some(3), "no server runs");
}

#[test]
fn the_client_library_can_be_imported() {
    let project = project(&["tokenrail-client-"]);
    let script =
        "const { createClient } = await import('@tokenrail/client'); console.log(typeof createClient)";
    let printed = run(project.path(), "node", &["--input-type=module", "--eval", script]);
    assert_eq!(printed.trim(), "function");
}
