//! A browser without a debugger while it loads a page. A debugger, such as the driver of the other tests, causes extra
//! work for every script: the browser reads it again to know its lines.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::tab::chromium;
use crate::follower::Socket;

/// How long the browser may take to start.
const START_LIMIT: Duration = Duration::from_mins(1);
const START_POLL: Duration = Duration::from_millis(50);
/// A browser does extra work for a new tab, and does not report its end. A user's tab has done this before the
/// navigation.
const TAB_OPENS: Duration = Duration::from_millis(500);
/// How long the test waits before it reads what the browser has recorded by itself.
const ALONE: Duration = Duration::from_secs(3);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What a browser has recorded about a page, in milliseconds from the click. The paint is the frame in which the
/// largest text of a row appeared: the last "largest-contentful-paint" entry,
/// <https://www.w3.org/TR/largest-contentful-paint/>. `null` if no row is visible.
const NOTED: &str = "(async () => {
  const paints = await new Promise((done) => {
    setTimeout(() => done([]), 1000);
    new PerformanceObserver((list) => done(list.getEntries())).observe({ type: 'largest-contentful-paint', buffered: true });
  });
  const messages = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/messages'));
  if (paints.length === 0 || messages.length === 0 || !document.querySelector('#events [data-index] p')) return null;
  return { paint: paints.at(-1).renderTime, came: Math.min(...messages.map(({ responseEnd }) => responseEnd)) };
})()";

/// A browser with its own profile. It ends when it is dropped.
pub(super) struct Unwatched {
    _process: Child,
    _profile: TempDir,
    authority: String,
}

/// When a conversation appeared, in milliseconds from the click.
#[derive(Debug, Deserialize)]
pub(super) struct Noted {
    /// Its newest rows were on the screen.
    pub(super) paint: f64,
    /// Its newest messages had been received.
    pub(super) came: f64,
}

/// A tab, as the browser describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    id: String,
    web_socket_debugger_url: String,
}

impl Unwatched {
    pub(super) async fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(chromium())
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--window-size=1280,900", "--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let port = port(&profile.path().join("DevToolsActivePort")).await;
        Self { _process: process, _profile: profile, authority: format!("127.0.0.1:{port}") }
    }

    /// Opens a new tab, navigates it to an address, and after a while reads what the browser has recorded. The
    /// connection costs the page nothing, because no domain that observes the page is enabled.
    pub(super) async fn open(&self, url: &str) -> Noted {
        let address = format!("http://{}/json/new?about:blank", self.authority);
        let target: Target = reqwest::Client::new().put(address).send().await.unwrap().json().await.unwrap();
        let (mut tab, _) = connect_async(&target.web_socket_debugger_url).await.unwrap();
        sleep(TAB_OPENS).await;
        call(&mut tab, "Page.navigate", json!({ "url": url })).await;
        sleep(ALONE).await;
        let noted = json!({ "expression": NOTED, "awaitPromise": true, "returnByValue": true });
        let noted = call(&mut tab, "Runtime.evaluate", noted).await;
        let address = format!("http://{}/json/close/{}", self.authority, target.id);
        reqwest::get(address).await.unwrap();
        serde_json::from_value(noted["result"]["value"].clone())
            .unwrap_or_else(|_| panic!("no row was painted: {noted}"))
    }
}

/// The browser writes this file when it listens.
async fn port(file: &Path) -> u16 {
    let begun = Instant::now();
    loop {
        let written = std::fs::read_to_string(file).unwrap_or_default();
        if let Some(port) = written.lines().next().and_then(|line| line.parse().ok()) {
            return port;
        }
        assert!(begun.elapsed() < START_LIMIT, "the browser does not listen: {written:?}");
        sleep(START_POLL).await;
    }
}

async fn call(tab: &mut Socket, method: &str, parameters: Value) -> Value {
    let call = json!({ "id": 1, "method": method, "params": parameters });
    tab.send(Message::text(call.to_string())).await.unwrap();
    let answered = async {
        while let Some(message) = tab.next().await {
            let answer: Value = serde_json::from_str(message.unwrap().to_text().unwrap()).unwrap();
            if answer["id"] == 1 {
                return answer["result"].clone();
            }
        }
        panic!("the tab has gone")
    };
    timeout(ANSWER_LIMIT, answered).await.expect("an answer")
}
