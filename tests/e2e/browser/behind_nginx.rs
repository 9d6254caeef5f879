//! The server below a path of another server: behind the real nginx, which removes the path from requests, or keeps it.
//! `cargo xtask test` sets `TOKENRAIL_TEST_NGINX`, the path of the program.

use std::process::Command;

use serde_json::{Value, json};

use super::nginx::{Nginx, PASS_ON};
use super::{Browser, Look, ended};
use crate::harness::{TestServer, fake_config, free_port};

/// The path below which the server is reached. The page has paths that begin with it, too.
const BASE: &str = "/agents";

/// What `proxy_pass` has behind the address of the server: with a path, nginx replaces the path of the location by it.
#[derive(Debug, Clone, Copy)]
enum Path {
    Removed,
    Kept,
}

impl Path {
    /// The part of nginx's configuration that `docs/how-to/deploy.md` recommends.
    fn config(self, port: u16, server: &TestServer) -> String {
        let rest = if matches!(self, Self::Removed) { "/" } else { "" };
        format!(
            "server {{
                 listen 127.0.0.1:{port};
                 location {BASE}/ {{
                     proxy_pass http://{}{rest};
                     {PASS_ON}
                 }}
             }}",
            server.authority()
        )
    }
}

/// Checks the page, the command line and the addresses that the API returns.
async fn assert_works(path: Path) {
    let port = free_port();
    let public = format!("http://127.0.0.1:{port}{BASE}");
    let settings =
        format!("[server]\ndefault_agent = \"fake\"\npublic_url = \"{public}/\"\n{}", fake_config());
    let server = TestServer::start_with(&settings);
    let _nginx = Nginx::start(&path.config(port, &server), &public).await;

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
