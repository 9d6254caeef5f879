//! A real server, as a user would run it: the binary, its own data folder, and a loopback port.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
pub(crate) use tokenrail_test_postgres::free_port;

/// How long a test waits for anything. This is far longer than anything takes: it only ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How long the head of a response may take if the server may be away. If a connection is closed as soon as it was
/// accepted, as by a server that ends, hyper's client may never notice: hyper 1.12 waited forever about once in 14,000
/// such connections.
pub(crate) const HEAD_PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs, or was killed and can be restarted with the same folder and port.
pub(crate) struct TestServer {
    pub(crate) folder: TempDir,
    pub(crate) http: Client,
    port: u16,
    data_dir: PathBuf,
    /// The configuration for the next start.
    pub(crate) config: String,
    pub(crate) process: Option<Child>,
    token: String,
}

/// The `tokenrail` program: built with this test, or the one that a measurement names.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("TOKENRAIL_TEST_PROGRAM").map_or_else(|| sibling("tokenrail"), PathBuf::from)
}

/// The scripted agent, built with this test.
pub(crate) fn fake_agent() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_fake-agent"))
}

fn sibling(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let path = test.parent().and_then(Path::parent).expect("target/debug").join(name);
    assert!(path.exists(), "{} is not built; run: cargo xtask test", path.display());
    path
}

/// An agent type `fake` that runs the scripted agent.
pub(crate) fn fake_config() -> String {
    format!("[agents.fake]\nprogram = \"{}\"\npass_env = [\"PATH\"]\n", fake_agent().display())
}

impl TestServer {
    /// Starts a server whose default agent is the scripted one.
    pub(crate) fn start() -> Self {
        Self::start_with(&fake_config())
    }

    /// Starts a server with its own configuration.
    pub(crate) fn start_with(config: &str) -> Self {
        let mut server = Self::prepare(config);
        server.start_again();
        server
    }

    /// Starts a server with this access token.
    pub(crate) fn start_with_token(config: &str, token: &str) -> Self {
        let mut server = Self::prepare(config);
        server.put_token(token);
        server.start_again();
        server
    }

    /// Replaces the access token of a server that does not run.
    pub(crate) fn put_token(&self, token: &str) {
        let (folder, private) = (self.data_dir(), |mode| std::os::unix::fs::PermissionsExt::from_mode(mode));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::set_permissions(&folder, private(0o700)).expect("a private folder");
        std::fs::write(folder.join("token"), format!("{token}\n")).expect("a token");
        std::fs::set_permissions(folder.join("token"), private(0o600)).expect("a private file");
    }

    /// A server that has not been started.
    pub(crate) fn prepare(config: &str) -> Self {
        static CRYPTO: Once = Once::new();
        CRYPTO.call_once(|| rustls::crypto::ring::default_provider().install_default().expect("the first"));
        let folder = tempfile::tempdir().expect("a folder");
        // Without a pool, because a connection to a server before a restart is useless.
        let http = Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
        let (config, token, data_dir) = (config.to_owned(), String::new(), folder.path().join("data"));
        Self { folder, http, port: free_port(), data_dir, config, process: None, token }
    }

    /// Starts the server with its folder and port, and waits until it responds.
    pub(crate) fn start_again(&mut self) {
        let command = self.command(&["serve", "--log", "warn"]);
        self.start_by(command).expect("it serves");
    }

    /// Starts the server with another command. The error is its last line of output.
    pub(crate) fn start_by(&mut self, mut command: Command) -> Result<(), String> {
        assert!(self.process.is_none(), "it runs already");
        let mut process = command.stdout(Stdio::piped()).spawn().expect("starts");
        let stdout = process.stdout.take().expect("a pipe");
        self.process = Some(process);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        if !line.starts_with("serving on ") {
            return Err(format!("the server said {line:?}"));
        }
        let token = std::fs::read_to_string(self.data_dir().join("token")).expect("a token");
        token.trim().clone_into(&mut self.token);
        Ok(())
    }

    /// The program with this server's folder, port and configuration.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let file = self.folder.path().join("tokenrail.toml");
        std::fs::write(&file, &self.config).expect("the configuration");
        let mut command = Command::new(program());
        command.args(args).arg("--config").arg(file).arg("--data-dir").arg(self.data_dir());
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.port));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Kills the server without a graceful stop.
    pub(crate) fn kill_9(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().expect("a kill");
        process.wait().expect("an end");
    }

    pub(crate) fn kill_and_start_again(&mut self) {
        self.kill_9();
        self.start_again();
    }

    /// Stops the server as a service manager would, and waits for its end.
    pub(crate) fn stop(&mut self) -> std::process::ExitStatus {
        let mut process = self.process.take().expect("it runs");
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        process.wait().expect("an end")
    }

    /// Waits for the end of a server that was told to stop.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.process.take().expect("it runs").wait().expect("an end")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// Moves its data elsewhere from the next start on.
    pub(crate) fn move_data_to(&mut self, folder: &Path) {
        self.data_dir = folder.join("data");
    }

    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("http://{}{path}", self.authority())).bearer_auth(&self.token)
    }

    /// The response of a server that may be away at the moment; `None` if there is none.
    pub(crate) async fn answer_if_there(&self, path: &str) -> Option<Response> {
        tokio::time::timeout(HEAD_PATIENCE, self.request(Method::GET, path).send()).await.ok()?.ok()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.request(Method::GET, path).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answer.json().await.expect("JSON")
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let answer = self.request(Method::POST, path).json(body).send().await.expect("an answer");
        (answer.status(), answer.json().await.expect("JSON"))
    }

    /// Launches the scripted agent; `script` is the prompt.
    pub(crate) async fn launch(&self, script: &Value) -> String {
        self.launch_as("fake", &script.to_string()).await
    }

    /// Launches an agent and waits until it has completed its turn. Returns its id.
    pub(crate) async fn launch_to_completion(&self, script: &Value) -> String {
        let id = self.launch(script).await;
        self.wait_for_status(&id, "completed").await;
        id
    }

    pub(crate) async fn launch_as(&self, kind: &str, prompt: &str) -> String {
        let (status, agent) = self.post("/api/agents", &json!({ "type": kind, "prompt": prompt })).await;
        assert_eq!(status, StatusCode::CREATED, "{agent}");
        agent["agentId"].as_str().expect("an id").to_owned()
    }

    /// Every event of the agent, page by page.
    pub(crate) async fn events(&self, id: &str) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let since = events.len();
            let page = self.get(&format!("/api/agents/{id}/events?since={since}")).await;
            let page = page.as_array().expect("a list");
            if page.is_empty() {
                assert_dense(&events);
                return events;
            }
            events.extend_from_slice(page);
        }
    }

    /// Waits until the agent has this status.
    pub(crate) async fn wait_for_status(&self, id: &str, status: &str) {
        self.wait_until(id, |agent| agent["status"] == status).await;
    }

    /// Waits until the condition holds for the agent.
    pub(crate) async fn wait_until(&self, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.wait_within(PATIENCE, id, holds).await
    }

    /// The same for a program that is slow.
    pub(crate) async fn wait_within(
        &self,
        patience: Duration,
        id: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let started = tokio::time::Instant::now();
        loop {
            let agent = self.get(&format!("/api/agents/{id}")).await;
            if holds(&agent) {
                return agent;
            }
            assert!(started.elapsed() < patience, "it never came to that: {agent}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The database, to check what an SQL user sees.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        let file = self.data_dir().join("tokenrail.db");
        rusqlite::Connection::open_with_flags(file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
            .expect("opens")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // A test that fails must leave no server behind either.
            let _ = process.kill();
            let _ = process.wait();
        }
        for pid in processes_of(&self.data_dir()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The processes that name a folder in their command line or environment: supervisors and agents of its server.
pub(crate) fn processes_of(folder: &Path) -> Vec<rustix::process::Pid> {
    let needle = folder.to_string_lossy().into_owned();
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own);
    pids.filter(|pid| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(&needle)
        })
    })
    .filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?))
    .collect()
}

/// The processes of one agent. Each has the agent's mark, whatever its session or parent is.
pub(crate) fn processes_of_agent(id: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let mark = format!("TOKENRAIL_RUN={id}");
    pids.filter(|pid| {
        let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let marked = String::from_utf8_lossy(&read("environ")).contains(&mark);
        let supervises = String::from_utf8_lossy(&read("cmdline")).contains(id);
        let zombie = String::from_utf8_lossy(&read("stat")).contains(") Z ");
        (marked || supervises) && !zombie
    })
    .collect()
}

/// Checks that no process of an agent is left. The supervisor reports the end of a run just before it exits, so this
/// waits for its exit.
pub(crate) async fn no_process_is_left(id: &str) {
    let supervises = |pid: &String| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.is_empty() || String::from_utf8_lossy(&command).contains("\0supervise\0")
    };
    let started = tokio::time::Instant::now();
    loop {
        let left = processes_of_agent(id);
        let others: Vec<_> = left.iter().filter(|pid| !supervises(pid)).collect();
        assert!(others.is_empty(), "processes of {id} are left: {others:?}");
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "processes of {id} are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the runs of an agent have ended by themselves. A run outlives the server that started it: if that server
/// is lost, nobody ends it.
pub(crate) async fn until_no_process_is_left(id: &str) {
    let started = tokio::time::Instant::now();
    loop {
        let left = processes_of_agent(id);
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "processes of {id} are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Writes a script that can be run.
///
/// The kernel refuses to run a file that a process has open for writing (`ETXTBSY`), and a child that another test
/// starts at that moment would inherit the open file. So another process writes it, and has ended afterwards.
pub(crate) fn write_script(path: &Path, text: &str) {
    let mut tee = Command::new("tee").arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // The pipe is closed at the end of this statement.
    tee.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(tee.wait().unwrap().success(), "{}", path.display());
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Copies a program with its permissions, in another process for the same reason.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-p").args([from, to]).status().unwrap().success(), "{}", to.display());
}

pub(crate) fn assert_dense(events: &[Value]) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequenceNumber"], index + 1, "no hole, no double, in order");
    }
}

/// The text of a scripted agent with `count` deltas.
pub(crate) fn numbers(count: u64) -> String {
    (0..count).flat_map(|number| [number.to_string(), " ".to_owned()]).collect()
}

/// The text of the complete messages, in order.
pub(crate) fn text_of(events: &[Value]) -> String {
    let messages = events.iter().filter(|event| event["metadata"]["eventType"] == "message");
    messages.map(|event| text_of_content(&event["content"])).collect()
}

fn text_of_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.map(|block| block["text"].as_str().expect("a text")).collect()
        }
        other => panic!("{other} is no content"),
    }
}

/// The event types, with consecutive equal ones counted once.
pub(crate) fn outline(events: &[Value]) -> Vec<String> {
    let mut outline: Vec<String> = Vec::new();
    for event in events {
        let name = event["metadata"]["eventType"].as_str().expect("a type").to_owned();
        if outline.last() != Some(&name) {
            outline.push(name);
        }
    }
    outline
}
