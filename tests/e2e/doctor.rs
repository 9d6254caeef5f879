//! `tokenrail doctor`, before the first start.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::harness::program;

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

fn doctor(folder: &Path, listen: &str) -> (Option<i32>, String) {
    let config = folder.join("tokenrail.toml");
    std::fs::write(&config, format!("[server]\nlisten = \"{listen}\"\n")).unwrap();
    let mut command = Command::new(program());
    command.args(["doctor", "--config"]).arg(&config).arg("--data-dir").arg(folder.join("data"));
    let output = command.env("HOME", folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}
