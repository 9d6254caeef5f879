//! A browser and its tabs, driven by `tests/clients/page/drive.mjs`: one line for each call, and one for its answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::real_clients::{clients, node};

/// The path of the browser. `cargo xtask test` sets it.
const CHROMIUM: &str = "TOKENRAIL_TEST_CHROMIUM";

/// How long a call may take. The driver gives up earlier, and reports what it has seen.
const CALL_LIMIT: Duration = Duration::from_mins(1);

/// A browser with its own profile. It ends when it is dropped.
pub(super) struct Browser {
    driver: Arc<Mutex<Driver>>,
    _profile: TempDir,
}

/// The driver's process. It answers each call before it reads the next one.
struct Driver {
    calls: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

/// A tab with its own session.
pub(super) struct Tab {
    driver: Arc<Mutex<Driver>>,
    number: u64,
}

/// How a tab displays the page.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Look {
    pub(super) dark: bool,
    pub(super) phone: bool,
}

/// One row of a conversation, as displayed.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Row {
    pub(super) kind: String,
    pub(super) text: String,
    /// The output of a tool.
    #[serde(default)]
    pub(super) output: String,
}

/// Hidden activity of a tab.
#[derive(Debug, Deserialize)]
pub(super) struct Heard {
    pub(super) dialogs: Vec<String>,
    pub(super) errors: Vec<String>,
    pub(super) violations: Vec<String>,
    /// The addresses of all its requests.
    pub(super) requests: Vec<String>,
}

impl Row {
    pub(super) fn new(kind: &str, text: &str) -> Self {
        Self { kind: kind.to_owned(), text: text.to_owned(), output: String::new() }
    }
}

/// The browser's program.
pub(super) fn chromium() -> OsString {
    std::env::var_os(CHROMIUM).unwrap_or_else(|| panic!("{CHROMIUM} is not set: cargo xtask test sets it"))
}

impl Browser {
    pub(super) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(node(&clients()))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/page/drive.mjs"))
            .args([chromium(), profile.path().into()])
            .current_dir(clients().join("page"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let calls = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let driver = Driver { calls, answers, _process: process };
        Self { driver: Arc::new(Mutex::new(driver)), _profile: profile }
    }

    /// A new tab.
    pub(super) async fn tab(&self, look: Look) -> Tab {
        self.open(serde_json::to_value(look).unwrap()).await
    }

    /// A new tab that is this many pixels wide. Other tabs have 1280.
    pub(super) async fn tab_of_width(&self, pixels: u32) -> Tab {
        self.open(json!({ "width": pixels })).await
    }

    async fn open(&self, mut call: Value) -> Tab {
        call["act"] = json!("open");
        let number = self.driver.lock().await.call(&call).await.as_u64().unwrap();
        Tab { driver: Arc::clone(&self.driver), number }
    }
}

impl Driver {
    async fn call(&mut self, call: &Value) -> Value {
        self.calls.write_all(format!("{call}\n").as_bytes()).await.expect("the driver runs");
        let line = timeout(CALL_LIMIT, self.answers.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no answer to {call}")).unwrap().expect("an answer");
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["error"].is_null(), "{call}: {}", answer["error"].as_str().unwrap_or_default());
        answer["value"].take()
    }
}

impl Tab {
    async fn call(&self, act: &str, wish: Value) -> Value {
        let mut call = wish;
        (call["act"], call["tab"]) = (json!(act), json!(self.number));
        self.driver.lock().await.call(&call).await
    }

    /// Another tab in the same session.
    pub(super) async fn beside(&self) -> Tab {
        self.another("beside", json!({})).await
    }

    /// Ctrl-clicks a link, and returns the tab that it opens.
    pub(super) async fn ctrl_click(&self, on: &str) -> Tab {
        self.another("ctrlClick", json!({ "on": on })).await
    }

    async fn another(&self, act: &str, wish: Value) -> Tab {
        let number = self.call(act, wish).await.as_u64().unwrap();
        Tab { driver: Arc::clone(&self.driver), number }
    }

    /// Opens an address.
    pub(super) async fn visit(&self, url: &str) {
        self.call("visit", json!({ "url": url })).await;
    }

    pub(super) async fn reload(&self) {
        self.call("reload", json!({})).await;
    }

    /// The content of the address bar.
    pub(super) async fn address(&self) -> String {
        self.call("address", json!({})).await.as_str().unwrap().to_owned()
    }

    pub(super) async fn click(&self, on: &str) {
        self.call("click", json!({ "on": on })).await;
    }

    pub(super) async fn fill(&self, on: &str, text: &str) {
        self.call("fill", json!({ "on": on, "text": text })).await;
    }

    pub(super) async fn choose(&self, on: &str, value: &str) {
        self.call("choose", json!({ "on": on, "value": value })).await;
    }

    pub(super) async fn press(&self, key: &str) {
        self.call("press", json!({ "key": key })).await;
    }

    pub(super) async fn type_in(&self, text: &str) {
        self.call("type", json!({ "text": text })).await;
    }

    /// Turns the wheel over the conversation by this many pixels.
    pub(super) async fn wheel(&self, down: i32) {
        self.call("wheel", json!({ "down": down })).await;
    }

    /// The value of an expression or its promise in the page.
    pub(super) async fn evaluate(&self, script: &str) -> Value {
        self.call("evaluate", json!({ "script": script })).await
    }

    /// Waits until an expression is true, and returns its value.
    pub(super) async fn until(&self, script: &str) -> Value {
        self.call("until", json!({ "script": script })).await
    }

    /// Waits until such an element exists.
    pub(super) async fn until_there(&self, selector: &str) {
        self.until(&format!("document.querySelector({}) !== null", json!(selector))).await;
    }

    /// The text of the first such element.
    pub(super) async fn text(&self, selector: &str) -> String {
        let text =
            self.evaluate(&format!("document.querySelector({})?.textContent ?? ''", json!(selector))).await;
        text.as_str().unwrap().to_owned()
    }

    /// The conversation, from its first row to its last.
    pub(super) async fn rows(&self) -> Vec<Row> {
        serde_json::from_value(self.call("rows", json!({})).await).unwrap()
    }

    pub(super) async fn heard(&self) -> Heard {
        serde_json::from_value(self.call("heard", json!({})).await).unwrap()
    }

    /// Slows its processor down by this factor.
    pub(super) async fn slow_down(&self, times: u32) {
        self.call("slow", json!({ "times": times })).await;
    }

    /// Makes every request to such a path fail from now on.
    pub(super) async fn refuse(&self, path: &str) {
        self.call("refuse", json!({ "path": path })).await;
    }

    pub(super) async fn refuse_no_more(&self, path: &str) {
        self.call("accept", json!({ "path": path })).await;
    }

    /// Clicks, and returns the name and the text of the saved file.
    pub(super) async fn download(&self, on: &str) -> (String, String) {
        let file = self.call("download", json!({ "on": on })).await;
        let part = |name: &str| file[name].as_str().unwrap().to_owned();
        (part("name"), part("text"))
    }

    /// The problems that axe calls serious or critical.
    pub(super) async fn faults(&self) -> Vec<String> {
        serde_json::from_value(self.call("faults", json!({})).await).unwrap()
    }

    /// Takes a screenshot of the visible part.
    pub(super) async fn picture(&self, file: PathBuf) {
        self.call("picture", json!({ "file": file })).await;
    }
}
