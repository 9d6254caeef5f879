//! The server with a certificate of its own. The certificates are in `tests/fixtures/tls`; `make.sh` there makes them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use reqwest::tls::TlsInfo;
use reqwest::{Certificate, Client};
use serde_json::{Value, json};

use crate::harness::{PATIENCE, TestServer, fake_config, program};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name)
}

/// A server with this certificate, in files that can be replaced.
fn server(name: &str) -> (TestServer, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    install(name, files.path());
    let at = files.path().display();
    let settings = format!(
        "[server]\ndefault_agent = \"fake\"\ntls_cert = \"{at}/cert.pem\"\ntls_key = \"{at}/key.pem\"\n{}",
        fake_config()
    );
    (TestServer::start_with(&settings), files)
}

/// Puts the files of a certificate into the folder, as they are after a renewal.
fn install(name: &str, folder: &Path) {
    for (from, to) in [("pem", "cert.pem"), ("key", "key.pem")] {
        let file = folder.join(to);
        let before = std::fs::metadata(&file).and_then(|file| file.modified()).ok();
        std::fs::copy(fixture(&format!("{name}.{from}")), &file).unwrap();
        // A file system may count time in steps, and the test is fast.
        if let Some(before) = before {
            let file = std::fs::File::options().write(true).open(&file).unwrap();
            file.set_modified(before + Duration::from_secs(1)).unwrap();
        }
    }
}

/// A client that trusts the authority of these certificates. Each request has a connection of its own.
fn client() -> Client {
    let authority = Certificate::from_pem(&std::fs::read(fixture("ca.pem")).unwrap()).unwrap();
    let builder = Client::builder().no_proxy().pool_max_idle_per_host(0).tls_info(true);
    builder.add_root_certificate(authority).build().unwrap()
}

/// The certificate that the server shows to a client that does not know it yet.
async fn shown(server: &TestServer) -> Vec<u8> {
    let answer = client().get(format!("https://{}/healthz", server.authority())).send().await.unwrap();
    answer.extensions().get::<TlsInfo>().unwrap().peer_certificate().unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_launched_and_followed_by_tls_and_only_by_tls() {
    let (server, _files) = server("first");
    let (client, url) = (client(), format!("https://{}", server.authority()));
    let body = json!({ "prompt": r#"{"deltas":500}"# });
    let launch = client.post(format!("{url}/api/agents")).bearer_auth(server.token()).json(&body);
    let agent: Value = launch.send().await.unwrap().json().await.unwrap();
    let id = agent["agentId"].as_str().unwrap();
    let events = client.get(format!("{url}/api/agents/{id}/events")).bearer_auth(server.token());
    let mut stream = events.header("accept", "text/event-stream").send().await.unwrap().bytes_stream();
    let mut text = String::new();
    while let Some(piece) = stream.next().await {
        text.push_str(&String::from_utf8_lossy(&piece.unwrap()));
        if text.contains("\"eventType\":\"result\"") {
            break;
        }
    }
    assert_eq!(text.matches("\"eventType\":\"content_delta\"").count(), 500);

    // Without TLS the server says nothing, so a token is never sent in clear by accident.
    server.http.get(format!("http://{}/healthz", server.authority())).send().await.unwrap_err();
    // The commands of this machine's user need no certificate.
    let mut ls = Command::new(program());
    ls.args(["ls", "--config"]).arg(server.folder.path().join("tokenrail.toml"));
    let output = ls.arg("--data-dir").arg(server.data_dir()).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains(id), "{listed}{}", String::from_utf8_lossy(&output.stderr));
    // Nor if they name the address at which the server listens.
    let output = server.command(&["ls"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains(id),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let (server, files) = server("first");
    let first = shown(&server).await;
    // In the middle of a renewal, the certificate and the key do not belong together.
    std::fs::copy(fixture("second.key"), files.path().join("key.pem")).unwrap();
    assert_eq!(shown(&server).await, first);
    install("second", files.path());
    let started = Instant::now();
    while shown(&server).await == first {
        assert!(started.elapsed() < PATIENCE, "the new certificate is never used");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_with_the_file_and_the_reason() {
    let files = tempfile::tempdir().unwrap();
    let start = |certificate: &Path, key: &Path| {
        let config = files.path().join("tokenrail.toml");
        let text = format!("[server]\ntls_cert = {certificate:?}\ntls_key = {key:?}\n");
        std::fs::write(&config, text).unwrap();
        let mut serve = Command::new(program());
        serve.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
        let output = serve.arg("--data-dir").arg(files.path().join("data")).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = start(&fixture("first.pem"), &fixture("second.key"));
    assert!(said.contains("second.key does not belong to the certificate"), "{said}");
    let said = start(&files.path().join("none.pem"), &fixture("first.key"));
    assert!(said.contains("cannot read the TLS certificate") && said.contains("none.pem"), "{said}");
}
