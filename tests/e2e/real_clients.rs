//! Third-party clients with known versions, with the real server. A test starts the server, and a driver in
//! `tests/clients` acts as the user. It exits with code 0 if everything was correct. `cargo xtask test` fetches the
//! clients.

mod ag_ui;
mod ai_sdk;
mod durable_streams;
mod letta;
mod mcp;
mod openai;
mod socket_io;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{TestServer, fake_agent, write_script};

/// How long a driver may take: far longer than it ever takes.
const DRIVER_LIMIT: Duration = Duration::from_secs(90);

/// How often a story that loses its server again and again does so.
const KILLS: usize = 3;

/// A running driver. It ends when it is dropped, if not before.
pub(crate) struct Driver {
    process: Child,
    log: PathBuf,
}

impl Driver {
    /// Starts a driver with one of the clients. It gets the server's address and token, its folder, and `args`.
    pub(crate) fn start(client: &str, script: &str, server: &TestServer, args: &[&str]) -> Self {
        // A script from standard input finds the packages of its working folder.
        let mut node = Command::new(node(&clients()));
        node.args(["--input-type=module", "-"]);
        Self::run(node, client, script, server, args)
    }

    /// The same in Python.
    pub(crate) fn start_python(client: &str, script: &str, server: &TestServer, args: &[&str]) -> Self {
        let mut python = Command::new(clients().join(client).join("bin/python"));
        python.args(["-u", "-"]);
        Self::run(python, client, script, server, args)
    }

    fn run(mut program: Command, client: &str, script: &str, server: &TestServer, args: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(script);
        let log = server.folder.path().join(format!("{client}.log"));
        let out = File::create(&log).expect("a log");
        let process = program
            .args([&format!("http://{}", server.authority()), server.token()])
            .arg(server.folder.path())
            .args(args)
            .current_dir(clients().join(client))
            .stdin(File::open(&script).expect("the driver"))
            .stdout(out.try_clone().expect("a log"))
            .stderr(out)
            .spawn()
            .expect("starts");
        Self { process, log }
    }

    /// Waits for the end of the driver, which must succeed.
    pub(crate) async fn finish(mut self) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("a look") {
                break status;
            }
            assert!(started.elapsed() < DRIVER_LIMIT, "the driver does not end: {}", self.said());
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert!(status.success(), "{}", self.said());
    }

    /// The same, but kills the server in the middle of the story and starts it again. The driver makes the file
    /// `reached` there, and waits for the file `restarted`.
    pub(crate) async fn finish_over_a_restart(self, server: &mut TestServer) {
        made(&server.folder.path().join("reached")).await;
        server.kill_and_start_again();
        std::fs::write(server.folder.path().join("restarted"), "").expect("a file");
        self.finish().await;
    }

    /// The same, but kills the server again and again while the agent speaks. See `kill_again_and_again`.
    pub(crate) async fn finish_over_kills(self, server: &mut TestServer) {
        kill_again_and_again(server).await;
        self.finish().await;
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Kills the server and starts it again whenever a driver wants it. The driver makes the files `reached-0`, `reached-1`
/// and `reached-2`, and does not wait.
pub(crate) async fn kill_again_and_again(server: &mut TestServer) {
    for at in 0..KILLS {
        made(&server.folder.path().join(format!("reached-{at}"))).await;
        server.kill_and_start_again();
    }
}

/// A script of an agent that speaks for some seconds.
pub(crate) fn flow() -> Value {
    json!({ "say": words(), "pace_us": 10_000 })
}

/// What it says. Each word shows its place.
pub(crate) fn words() -> Vec<String> {
    (0..400).map(|number| format!("{number} 🦀 ")).collect()
}

/// The folder of the clients.
pub(crate) fn clients() -> PathBuf {
    std::env::var_os("TOKENRAIL_TEST_CLIENTS").map(PathBuf::from).expect(
        "TOKENRAIL_TEST_CLIENTS is the folder of the clients; `cargo xtask test` fetches them and sets this",
    )
}

/// The fetched Node. There is a package for each kind of machine, and npm picks the right one.
pub(crate) fn node(clients: &Path) -> PathBuf {
    let packages = clients.join("node/node_modules").read_dir().expect("a Node").flatten();
    let mut programs = packages.map(|entry| entry.path().join("bin/node"));
    programs.find(|program| program.exists()).expect("a Node that runs on this machine")
}

/// Waits until a driver or an agent has created this file.
pub(crate) async fn made(file: &Path) {
    let started = Instant::now();
    while !file.exists() {
        assert!(started.elapsed() < DRIVER_LIMIT, "{} was never made", file.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A JavaScript example of a page in `docs/reference/protocol`, as it stands there, while it runs.
pub(crate) struct Example {
    driver: Driver,
    printed: PathBuf,
}

impl Example {
    /// Starts the `number`th example, from 0. It gets the server's address and token, and `args`.
    pub(crate) fn start(
        client: &str,
        (page, number): (&str, usize),
        server: &TestServer,
        args: &[&str],
    ) -> Self {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/protocol");
        let page = std::fs::read_to_string(docs.join(page)).expect("the page");
        let example = page.split("```js\n").nth(number + 1).expect("the example");
        let [script, printed, log] =
            ["example.mjs", "printed", "log"].map(|name| server.folder.path().join(name));
        std::fs::write(&script, example.split_once("```").expect("its end").0).expect("a file");
        let mut program = Command::new(node(&clients()));
        program.args(["--input-type=module", "-", &format!("http://{}", server.authority()), server.token()]);
        program.args(args).current_dir(clients().join(client));
        program.stdin(File::open(&script).expect("the script"));
        program.stdout(File::create(&printed).expect("a file")).stderr(File::create(&log).expect("a file"));
        let process = program.spawn().expect("starts");
        Self { driver: Driver { process, log }, printed }
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.printed).expect("what it has printed")
    }

    /// Waits for its end. Returns what it has printed.
    pub(crate) async fn finish(self) -> String {
        self.driver.finish().await;
        std::fs::read_to_string(&self.printed).expect("what it has printed")
    }

    /// The same, but kills the server again and again while the example prints.
    pub(crate) async fn finish_over_kills(self, server: &mut TestServer) -> String {
        for _ in 0..KILLS {
            let (before, started) = (self.printed().len(), Instant::now());
            while self.printed().len() < before + 200 {
                assert!(started.elapsed() < DRIVER_LIMIT, "it prints nothing more: {}", self.driver.said());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            server.kill_and_start_again();
        }
        self.finish().await
    }
}

/// Runs an example to its end. Returns what it prints.
pub(crate) async fn example(client: &str, page: (&str, usize), server: &TestServer, args: &[&str]) -> String {
    Example::start(client, page, server, args).finish().await
}

/// A server whose `claude-code`, which the examples name, says this whatever its prompt is.
pub(crate) fn server_of_example(script: &Value) -> TestServer {
    let mut server = TestServer::prepare("");
    let [agent, file] = ["agent", "script"].map(|name| server.folder.path().join(name));
    std::fs::write(&file, script.to_string()).expect("a script");
    write_script(
        &agent,
        &format!("#!/bin/sh\nexec '{}' \"$@\" < '{}'\n", fake_agent().display(), file.display()),
    );
    server.config = format!(
        "[agents.claude-code]\nformat = \"claude\"\nprogram = \"{}\"\npass_env = [\"PATH\"]\n",
        agent.display()
    );
    server.start_again();
    server
}
