//! The commands with a server at a URL: `TOKENRAIL_URL` and `TOKENRAIL_TOKEN`, without a data folder.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config, free_port, program, text_of};

/// A user of a server on another machine: no data folder, no configuration, a home folder of their own.
struct Remote {
    home: tempfile::TempDir,
    url: String,
    token: Option<String>,
}

impl Remote {
    fn of(server: &TestServer) -> Self {
        let url = format!("http://{}", server.authority());
        Self { home: tempfile::tempdir().unwrap(), url, token: Some(server.token().to_owned()) }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(args).current_dir(self.home.path()).env("HOME", self.home.path());
        command.env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME").env("TOKENRAIL_URL", &self.url);
        if let Some(token) = &self.token {
            command.env("TOKENRAIL_TOKEN", token);
        }
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        finish(&mut self.command(args))
    }
}

fn finish(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_command_works_with_a_url_and_a_token_alone() {
    let server = TestServer::start();
    let remote = Remote::of(&server);
    let (code, shown, said) = remote.run(&["run", "--type", "fake", r#"{"deltas":3}"#]);
    assert!(code == 0 && shown.contains("0 1 2 "), "{said}");
    assert!(!said.contains("starting a private one"), "{said}");
    let agents = server.get("/api/agents").await;
    let id = agents[0]["id"].as_str().unwrap();
    let (code, shown, said) = remote.run(&["ls"]);
    assert!(code == 0 && shown.contains(id), "{said}");
    let (code, shown, said) = remote.run(&["tail", id]);
    assert!(code == 0 && shown.contains("0 1 2 "), "{said}");
    let (code, shown, said) = remote.run(&["cancel", id]);
    assert!(code == 0 && shown.contains("has already ended"), "{said}");
    let (code, shown, said) = remote.run(&["replay", id, "--speed", "0"]);
    assert!(code == 0 && shown.contains("0 1 2 "), "{said}");
    assert!(is_empty(remote.home.path()), "nothing was written");
    let file = remote.home.path().join("agent.json");
    let (code, shown, said) = remote.run(&["export", id]);
    assert_eq!(code, 0, "{said}");
    std::fs::write(&file, shown).unwrap();
    let (code, shown, said) = remote.run(&["import", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(server.get(&format!("/api/agents/{}", shown.trim())).await["readOnly"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_from_afar() {
    let server = crate::questions::server("");
    let id = crate::questions::asking(&server).await;
    let (code, shown, said) = Remote::of(&server).run(&["answer", &id, "1-1", "allow"]);
    assert_eq!((code, shown.trim_end()), (0, "answered 1-1: allow"), "{said}");
    server.wait_for_status(&id, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flag_wins_over_the_variable_and_the_data_folder_is_not_read() {
    let server = TestServer::start();
    let mut remote = Remote::of(&server);
    let right = std::mem::replace(&mut remote.url, "http://127.0.0.1:9".to_owned());
    let (code, _, said) = remote.run(&["ls", "--url", &right]);
    assert_eq!(code, 0, "{said}");
    // The folder of the server has the right token, but it belongs to no URL.
    remote.token = None;
    let folder = server.data_dir();
    let (code, _, said) = remote.run(&["ls", "--url", &right, "--data-dir", folder.to_str().unwrap()]);
    assert!(code == 1 && said.contains("requires a token; set TOKENRAIL_TOKEN"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_url_or_token_is_explained_and_the_token_is_not_printed() {
    let server = TestServer::start();
    let mut remote = Remote::of(&server);
    let right = remote.url.clone();
    let token = remote.token.clone().unwrap();
    let fails = |remote: &Remote, args: &[&str], expected: i32, why: &str| {
        let (code, shown, said) = remote.run(args);
        assert_eq!((code, &shown[..]), (expected, ""), "{args:?}: {said}");
        assert!(said.contains(why) && !said.contains(&token), "{args:?}: {said}");
    };
    fails(&remote, &["ls", "--url", &right, "--listen", &server.authority()], 2, "use only one of them");
    remote.token = Some("0".repeat(64));
    fails(&remote, &["ls"], 1, "rejected the token; check TOKENRAIL_TOKEN");
    remote.token = Some(format!("{token} "));
    assert_eq!(remote.run(&["ls"]).0, 0, "spaces around it do not matter");
    remote.token = Some(format!("Bearer {token}"));
    fails(&remote, &["ls"], 2, "TOKENRAIL_TOKEN: not a token");
    remote.token = Some(token.clone());
    remote.url = format!("{right}/#token={token}");
    fails(&remote, &["ls"], 2, "TOKENRAIL_URL: the URL must not contain \"?\" or \"#\"");
    remote.url = server.authority();
    fails(&remote, &["ls"], 2, "TOKENRAIL_URL: the URL must begin with http:// or https://");
    let port = free_port();
    remote.url = format!("http://127.0.0.1:{port}");
    for args in [&["ls"][..], &["run", "--type", "fake", "{}"]] {
        fails(
            &remote,
            args,
            3,
            &format!("cannot reach a server at http://127.0.0.1:{port} (Connection refused"),
        );
    }
    assert!(is_empty(remote.home.path()), "run has started no server of its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_do_not_get_the_token_of_the_environment() {
    let mut server = TestServer::start();
    server.stop();
    let mut command = server.command(&["serve", "--log", "warn"]);
    command.env("TOKENRAIL_TOKEN", "the-token-of-another-server").env("TOKENRAIL_URL", "https://elsewhere");
    server.start_by(command).unwrap();
    let id = server.launch_to_completion(&json!({ "mode": "env_dump" })).await;
    let said = text_of(&server.events(&id).await);
    assert!(said.contains("PATH"), "it prints its environment: {said}");
    assert!(!said.contains("the-token-of-another-server") && !said.contains("TOKENRAIL_TOKEN"), "{said}");
    server.stop();
    server.config = server.config.replace("\"PATH\"", "\"PATH\", \"TOKENRAIL_TOKEN\"");
    let (code, _, said) = finish(&mut server.command(&["serve"]));
    assert!(code == 2 && said.contains("pass_env: agents must not get TOKENRAIL_TOKEN"), "{said}");
}

/// Decrypts each request and passes it to the server: one per connection, without a body.
fn tls_proxy(server: String) -> u16 {
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name);
    let certificate = CertificateDer::from_pem_file(fixture("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("key.pem")).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut client = StreamOwned::new(connection, client.unwrap());
            let mut request = Vec::new();
            let mut piece = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                match client.read(&mut piece) {
                    Ok(read) if 0 < read => request.extend_from_slice(&piece[..read]),
                    // A client that does not trust the certificate.
                    _ => break,
                }
            }
            if request.is_empty() {
                continue;
            }
            request.truncate(request.len() - 2);
            request.extend_from_slice(b"Connection: close\r\n\r\n");
            let mut upstream = TcpStream::connect(&server).unwrap();
            upstream.write_all(&request).unwrap();
            let mut answer = Vec::new();
            upstream.read_to_end(&mut answer).unwrap();
            client.write_all(&answer).unwrap();
            client.conn.send_close_notify();
            client.flush().unwrap();
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_behind_tls_is_reached_and_its_certificate_is_checked() {
    let mut server = TestServer::start();
    let port = tls_proxy(server.authority());
    server.stop();
    server.config = format!("[server]\nallowed_hosts = [\"localhost:{port}\"]\n{}", fake_config());
    server.start_again();
    let id = server.launch_to_completion(&json!({})).await;
    let mut remote = Remote::of(&server);
    remote.url = format!("https://localhost:{port}/");
    let (code, _, said) = remote.run(&["ls"]);
    assert!(code == 3 && said.contains("invalid peer certificate"), "{code}: {said}");
    let trusted = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls/cert.pem");
    let (code, shown, said) = finish(remote.command(&["ls", "--json"]).env("SSL_CERT_FILE", trusted));
    assert_eq!(code, 0, "{said}");
    assert_eq!(serde_json::from_str::<Value>(shown.trim()).unwrap()["id"], id.as_str());
}
