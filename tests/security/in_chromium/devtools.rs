//! A small client for Chromium's debugging protocol.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::PATIENCE;

/// The path of the program. `cargo xtask test` sets it.
const VARIABLE: &str = "TOKENRAIL_TEST_CHROMIUM";

const FLAGS: [&str; 10] = [
    "--headless",
    // The tests may run as root in a container, which is a sandbox itself. The pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
];

/// A browser with its own profile, in which `evil.test` resolves to this machine.
pub(super) struct Browser {
    process: Child,
    authority: String,
    _profile: TempDir,
}

/// A tab.
pub(super) struct Page {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    calls: u64,
    /// The events from the browser, oldest first.
    told: Vec<Value>,
}

impl Browser {
    pub(super) fn start() -> Self {
        let program = std::env::var_os(VARIABLE)
            .unwrap_or_else(|| panic!("{VARIABLE} is not set: cargo xtask test sets it"));
        let profile = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut process = Command::new(program)
            .args(FLAGS)
            .arg("--host-resolver-rules=MAP evil.test 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let found = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let rest = line.strip_prefix("DevTools listening on ws://")?;
            rest.split('/').next().map(str::to_owned)
        });
        let authority = found.expect("Chromium says where it listens");
        // Keep reading its output, or the browser stops.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, authority, _profile: profile }
    }

    /// A new tab.
    pub(super) async fn page(&self) -> Page {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let new = http.put(format!("http://{}/json/new?about:blank", self.authority));
        let tab: Value = new.send().await.unwrap().json().await.unwrap();
        let (socket, _) = connect_async(tab["webSocketDebuggerUrl"].as_str().unwrap()).await.unwrap();
        let mut page = Page { socket, calls: 0, told: Vec::new() };
        for domain in ["Page", "Network", "Log", "Runtime"] {
            page.call(&format!("{domain}.enable"), &json!({})).await;
        }
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Page {
    /// Opens an address and waits until it has loaded.
    pub(super) async fn open(&mut self, url: &str) {
        let from = self.told.len();
        self.call("Page.navigate", &json!({ "url": url })).await;
        while !self.told[from..].iter().any(|told| told["method"] == "Page.loadEventFired") {
            let message = self.read().await;
            self.told.push(message);
        }
    }

    /// Runs a script in the page and returns its value, or that of its promise.
    pub(super) async fn evaluate(&mut self, script: &str) -> Value {
        let wish = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &wish).await;
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    pub(super) async fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let call = json!({ "id": self.calls, "method": method, "params": params });
        self.socket.send(Message::text(call.to_string())).await.unwrap();
        loop {
            let message = self.read().await;
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.told.push(message);
        }
    }

    async fn read(&mut self) -> Value {
        let message = timeout(PATIENCE, self.socket.next()).await.expect("Chromium answers");
        serde_json::from_str(message.unwrap().unwrap().to_text().unwrap()).unwrap()
    }

    /// The status of the newest document.
    pub(super) fn document_status(&self) -> u64 {
        let params = self.of("Network.responseReceived").filter(|params| params["type"] == "Document");
        params.last().expect("a document")["response"]["status"].as_u64().unwrap()
    }

    /// The addresses of requests to other servers.
    pub(super) fn requests_elsewhere(&self, authority: &str) -> Vec<String> {
        let urls =
            self.of("Network.requestWillBeSent").filter_map(|params| params["request"]["url"].as_str());
        let own = [format!("http://{authority}/"), "about:".to_owned()];
        urls.filter(|url| !own.iter().any(|own| url.starts_with(own))).map(str::to_owned).collect()
    }

    /// The actions that the page's policy has blocked.
    pub(super) fn violations(&self) -> Vec<String> {
        let logged = self.of("Log.entryAdded").filter_map(|params| params["entry"]["text"].as_str());
        let stopped = |text: &&str| text.contains("Content Security Policy") || text.contains("Trusted");
        logged.filter(stopped).map(str::to_owned).collect()
    }

    /// Everything that the browser has reported so far.
    pub(super) fn heard(&self) -> String {
        self.told.iter().map(Value::to_string).collect()
    }

    fn of<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Value> {
        self.told.iter().filter(move |told| told["method"] == method).map(|told| &told["params"])
    }
}
