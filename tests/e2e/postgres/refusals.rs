//! Databases that a server refuses: it says why, and what to do.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::json;
use tokenrail_test_postgres::{Flush, ROLE, Replication, Server, database};

use super::config;
use super::nodes::{copy_of, node};
use super::operator::{ran, stopped};
use crate::harness::{TestServer, numbers, text_of};

/// What `serve` says before it ends with exit code 1.
#[track_caller]
fn refused(server: &TestServer) -> String {
    let (code, said) = ran(&mut server.command(&["serve", "--log", "warn"]));
    assert_eq!(code, Some(1), "{said}");
    said
}

#[track_caller]
fn check_says(server: &TestServer, expected: &str) {
    let said = refused(server);
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_replica_is_refused_until_it_is_the_primary() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let mut server = stopped(&config(&database));
    let standby = postgres.standby(Replication::Asynchronous);
    server.config = config(&database).replace(&postgres.address(), &standby.address());
    check_says(
        &server,
        "accepts no writes: it is a standby, or is set to read-only; set the address of the primary, or all addresses and \
         target_session_attrs=read-write",
    );
    postgres.kill_9();
    standby.promote();
    server.start_again();
    assert!(server.stop().success());
}

#[test]
fn the_schema_of_a_newer_version_is_refused() {
    let database = database();
    let server = stopped(&config(&database));
    database.sql("UPDATE cluster SET schema = 99, compatible_from = 99");
    let (code, said) = ran(&mut server.command(&["serve", "--log", "warn"]));
    assert_eq!(code, Some(3), "a service manager need not try again: {said}");
    assert!(said.contains("was written by a newer version: it requires schema 99"), "{said}");
    assert!(said.contains("install the newer version"), "{said}");
}

#[test]
fn a_user_without_privileges_is_told_to_be_the_owner() {
    let database = database();
    database.sql(&format!("ALTER DATABASE {} OWNER TO postgres", database.name()));
    let mut server = TestServer::start();
    assert!(server.stop().success());
    let folder = tempfile::tempdir().unwrap();
    server.move_data_to(folder.path());
    server.config = config(&database);
    let advice = format!("make this user the owner of the database \"{}\"", database.name());
    check_says(&server, &advice);
    database.sql(&format!("ALTER DATABASE {} OWNER TO {ROLE}", database.name()));
    server.start_again();
    assert!(server.stop().success());
    database.sql("ALTER TABLE cluster OWNER TO postgres; REVOKE ALL ON cluster FROM PUBLIC");
    check_says(&server, &advice);
}

/// The privileges change while an agent runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_says_while_the_user_may_not_write_is_saved_later() {
    let database = database();
    let mut server = stopped(&config(&database));
    let log = server.folder.path().join("log");
    let mut serve = server.command(&["serve", "--log", "warn"]);
    serve.stderr(std::fs::File::create(&log).unwrap());
    server.start_by(serve).unwrap();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 500, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    database.sql("ALTER TABLE journal OWNER TO postgres");
    std::fs::write(&gate, "").unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    let started = std::time::Instant::now();
    while !said().contains("permission denied for table journal") {
        assert!(started.elapsed() < crate::harness::PATIENCE, "{}", said());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    database.sql(&format!("ALTER TABLE journal OWNER TO {ROLE}"));
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(500));
}

#[test]
fn of_two_servers_with_one_identity_the_first_one_says_what_to_remove() {
    let database = database();
    let mut first = node(&database, "first");
    assert!(first.stop().success());
    let log = first.folder.path().join("log");
    let mut serve = first.command(&["serve", "--log", "warn"]);
    serve.stderr(std::fs::File::create(&log).unwrap());
    first.start_by(serve).unwrap();
    let (mut second, _folder) = copy_of(&first);
    second.start_again();
    assert_eq!(first.wait().code(), Some(1));
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("with a copy of this data folder"), "{said}");
    assert!(said.contains("remove the file node.id from the copied folder"), "{said}");
    // As it says, the copy becomes a node of its own.
    assert!(second.stop().success());
    std::fs::remove_file(second.data_dir().join("node.id")).unwrap();
    first.start_again();
    second.start_again();
    assert!(first.stop().success() && second.stop().success());
    assert_eq!(database.sql("SELECT count(*) FROM nodes"), "2");
}

/// A real server whose answers say another version.
#[test]
fn a_server_that_is_too_old_is_refused() {
    let database = database();
    let version: i32 = database.sql("SHOW server_version_num").parse().unwrap();
    let old = 140_000 + version % 10_000;
    let shown = database.sql("SHOW server_version");
    let aged = shown.replacen(&(version / 10_000).to_string(), "14", 1);
    let changes = vec![
        (version.to_be_bytes().to_vec(), old.to_be_bytes().to_vec()),
        (shown.clone().into_bytes(), aged.clone().into_bytes()),
    ];
    let url = database.url();
    let address = url.split(['@', '/']).nth(3).unwrap().to_owned();
    let (proxy, mut server) = (age(address.clone(), changes), stopped(&config(&database)));
    server.config = config(&database).replace(&address, &proxy);
    check_says(&server, &format!("PostgreSQL {aged} is too old; version 15 or newer is required"));
}

/// A proxy that changes answers. Each change keeps the length. Returns its address.
fn age(server: String, changes: Vec<(Vec<u8>, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let upstream = TcpStream::connect(&server).unwrap();
            let (client_again, upstream_again) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            let changes = changes.clone();
            thread::spawn(move || pass(client, &upstream, &[]));
            thread::spawn(move || pass(upstream_again, &client_again, &changes));
        }
    });
    address
}

/// Answers at a start are short, so that each comes in one piece.
fn pass(mut from: TcpStream, mut to: &TcpStream, changes: &[(Vec<u8>, Vec<u8>)]) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer)
        && 0 < count
    {
        for (before, after) in changes {
            let found: Vec<usize> = memchr::memmem::find_iter(&buffer[..count], before).collect();
            for at in found {
                buffer[at..at + after.len()].copy_from_slice(after);
            }
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Errors name the database, never the password.
#[test]
fn a_wrong_password_is_not_shown() {
    let database = database();
    let server = stopped(&config(&database));
    std::fs::write(database.password_file(), "not-this-one\n").unwrap();
    let said = refused(&server);
    assert!(
        said.contains(
            "check the user, the password (storage.password_file or PGPASSWORD) and the server's pg_hba.conf"
        ),
        "{said}"
    );
    assert!(!said.contains("not-this-one") && !said.contains(database.password()), "{said}");
}

#[test]
fn an_address_without_a_server_is_named() {
    let port = crate::harness::free_port();
    let server = stopped(&crate::harness::fake_config());
    let mut command = Command::new(crate::harness::program());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenrail.toml");
    let url = format!("postgres://tokenrail@127.0.0.1:{port}/tokenrail");
    std::fs::write(&file, format!("{}[storage]\nurl = \"{url}\"\n", server.config)).unwrap();
    command.args(["serve", "--log", "warn", "--listen", "127.0.0.1:0", "--config"]).arg(file);
    let (code, said) = ran(command.arg("--data-dir").arg(folder.path().join("data")));
    assert_eq!(code, Some(1), "{said}");
    let expected = format!(
        "the PostgreSQL server at 127.0.0.1:{port} does not answer; start it, or correct the address"
    );
    assert!(said.contains(&expected), "{said}");
}
