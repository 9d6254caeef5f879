//! `tokenrail doctor`, before the first start.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::harness::{copy_program, program};

#[test]
fn doctor_tries_the_address_to_listen_on() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, said) = doctor(folder.path(), &address.to_string());
    let line = format!("error   address: cannot listen on {address}: ");
    assert!(code == Some(1) && said.contains(&line) && said.contains("--listen"), "{said}");
    drop(taken);
    let (_, said) = doctor(folder.path(), &address.to_string());
    assert!(said.contains(&format!("ok      address: {address} is free")), "{said}");
    // An address of another machine (TEST-NET-1).
    let (_, said) = doctor(folder.path(), "192.0.2.1:7117");
    assert!(said.contains("choose an address of this machine"), "{said}");
}

#[test]
fn doctor_checks_the_certificate_and_the_public_url() {
    let folder = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls");
    let check = |certificate: &str, key: &str, url: &str| {
        let (certificate, key) = (files.join(certificate), files.join(key));
        let settings = format!("tls_cert = {certificate:?}\ntls_key = {key:?}\npublic_url = \"{url}\"\n");
        doctor_with(folder.path(), &settings)
    };
    let (_, said) = check("first.pem", "first.key", "https://agents.example.com/a");
    assert!(said.contains("ok      TLS certificate: ") && said.contains("first.pem expires in "), "{said}");
    assert!(said.contains("ok      public URL: https://agents.example.com/a"), "{said}");
    let (code, said) = check("first.pem", "second.key", "http://agents.example.com");
    assert!(code == Some(1) && said.contains("error   TLS certificate: "), "{said}");
    assert!(said.contains("second.key does not belong to the certificate"), "{said}");
    assert!(said.contains("error   public URL: ") && said.contains("write https"), "{said}");
    let (code, said) = check("expired.pem", "first.key", "https://agents.example.com");
    assert!(code == Some(1) && said.contains("expired.pem expired "), "{said}");
    let (_, said) = doctor(folder.path(), "127.0.0.1:0");
    assert!(!said.contains("TLS") && !said.contains("public URL"), "{said}");
}

fn doctor(folder: &Path, listen: &str) -> (Option<i32>, String) {
    doctor_with(folder, &format!("listen = \"{listen}\"\n"))
}

fn doctor_with(folder: &Path, settings: &str) -> (Option<i32>, String) {
    let config = folder.join("tokenrail.toml");
    std::fs::write(&config, format!("[server]\n{settings}")).unwrap();
    let mut command = Command::new(program());
    command.args(["doctor", "--config"]).arg(&config).arg("--data-dir").arg(folder.join("data"));
    let output = command.env("HOME", folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// The folder belongs to the user who runs the tests.
#[test]
fn doctor_of_another_user_says_once_that_the_data_folder_is_not_theirs() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let (copy, data) = (folder.path().join("tokenrail"), folder.path().join("data"));
    copy_program(&program(), &copy);
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    let mut doctor = Command::new(&copy);
    doctor.uid(NOBODY).gid(NOBODY).current_dir("/").args(["doctor", "--data-dir"]).arg(&data);
    let output = doctor.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error   data folder: ") && said.contains("belongs to another user"), "{said}");
    let agents: Vec<&str> = said.lines().filter(|line| line[8..].starts_with("agents")).collect();
    assert_eq!(agents, ["warning agents: not checked, because the data folder cannot be used"], "{said}");
}
