//! The server below a path of another server: behind the real nginx, which removes the path from requests, or keeps it.
//! `cargo xtask test` sets `TOKENRAIL_TEST_NGINX`, the path of the program.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Browser, Look, ended};
use crate::harness::{PATIENCE, TestServer, fake_config, free_port};

/// The path below which the server is reached. The page has paths that begin with it, too.
const BASE: &str = "/agents";

/// What `proxy_pass` has behind the address of the server: with a path, nginx replaces the path of the location by it.
#[derive(Debug, Clone, Copy)]
enum Path {
    Removed,
    Kept,
}

/// An nginx. It ends when it is dropped.
struct Nginx {
    process: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts it on a port, with the settings that `docs/how-to/deploy.md` recommends.
    fn start(port: u16, path: Path, server: &TestServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let rest = if matches!(path, Path::Removed) { "/" } else { "" };
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
            .join("\n");
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log stderr;
             events {{}}
             http {{
                 access_log off;
                 {temporary}
                 server {{
                     listen 127.0.0.1:{port};
                     location {BASE}/ {{
                         proxy_pass http://{}{rest};
                         proxy_http_version 1.1;
                         proxy_set_header Host $http_host;
                         proxy_set_header Upgrade $http_upgrade;
                         proxy_set_header Connection \"upgrade\";
                         proxy_buffering off;
                         proxy_read_timeout 1h;
                         client_max_body_size 0;
                     }}
                 }}
             }}",
            server.authority()
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let program = std::env::var_os("TOKENRAIL_TEST_NGINX").map(PathBuf::from);
        let process = Command::new(program.expect("cargo xtask test sets TOKENRAIL_TEST_NGINX"))
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, _folder: folder }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Checks the page, the command line and the addresses that the API returns.
async fn assert_works(path: Path) {
    let port = free_port();
    let public = format!("http://127.0.0.1:{port}{BASE}");
    let settings =
        format!("[server]\ndefault_agent = \"fake\"\npublic_url = \"{public}/\"\n{}", fake_config());
    let server = TestServer::start_with(&settings);
    let _nginx = Nginx::start(port, path, &server);
    let started = Instant::now();
    while !server.http.get(format!("{public}/readyz")).send().await.is_ok_and(|ready| ready.status() == 200) {
        assert!(started.elapsed() < PATIENCE, "{path:?}: nginx does not serve");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    // The API: an address in a header has the path too.
    let body = json!({ "prompt": r#"{"deltas":20}"# });
    let launch = server.http.post(format!("{public}/api/agents")).bearer_auth(server.token()).json(&body);
    let launched = launch.send().await.unwrap();
    let location = launched.headers()["location"].to_str().unwrap().to_owned();
    let id = launched.json::<Value>().await.unwrap()["agentId"].as_str().unwrap().to_owned();
    assert_eq!(location, format!("{BASE}/api/agents/{id}"), "{path:?}");

    // The command line.
    let mut ls = Command::new(crate::harness::program());
    ls.arg("ls").env("TOKENRAIL_URL", &public).env("TOKENRAIL_TOKEN", server.token());
    let listed = String::from_utf8(ls.output().unwrap().stdout).unwrap();
    assert!(listed.contains(&id), "{path:?}: {listed}");

    // The page: its files, the list, the live connection, an agent's view, and the view after a reload.
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&format!("{public}/#token={}", server.token())).await;
    tab.until_there("[data-testid=agents] [data-status=completed]").await;
    tab.click("[data-testid=agents] [data-testid=agent]").await;
    tab.until(&format!("location.pathname === '{BASE}/agents/{id}'")).await;
    tab.until(&ended(1)).await;
    tab.visit(&format!("{public}/agents/{id}")).await;
    tab.until(&ended(1)).await;
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": r#"{"deltas":3}"# })).await;
    tab.until(&ended(2)).await;
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]), "{path:?}");
    let outside = heard.requests.iter().filter(|url| !url.contains(&format!(":{port}{BASE}/")));
    assert_eq!(outside.collect::<Vec<_>>(), [""; 0], "{path:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_if_the_proxy_removes_the_path() {
    assert_works(Path::Removed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_if_the_proxy_keeps_the_path() {
    assert_works(Path::Kept).await;
}
