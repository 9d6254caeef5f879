//! Socket.IO's clients in JavaScript and Python, each over WebSocket, long polling, and the change between them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::harness::{PATIENCE, TestServer, fake_agent, numbers, write_script};
use crate::real_clients::{Driver, clients, node};

type Start = fn(&TestServer, &str) -> Driver;

/// The longest wait for a client. If its server is killed while the client changes from long polling to a WebSocket,
/// the client in JavaScript notices only that pings are missing: after 25 seconds and 20 more.
const CLIENT_PATIENCE: Duration = PATIENCE.saturating_add(Duration::from_secs(25 + 20));

/// The page whose examples run here.
const PAGE: &str = "reference/protocol/socket-io.md";

/// The drivers fail to log in more often than the limit allows.
fn start() -> TestServer {
    let limits = "[limits]\nfailed_logins_per_minute = 100000\n";
    TestServer::start_with(&(crate::harness::fake_config() + limits))
}

async fn play(start_driver: Start, story: &str) {
    let server = start();
    start_driver(&server, story).finish().await;
}

async fn play_over_restarts(start_driver: Start, story: &str) {
    let mut server = start();
    let driver = start_driver(&server, story);
    // Once for each choice of transports.
    driver.finish_over_kills(&mut server).await;
}

/// A server for a client that was written for another server of the same events: what its agents say is in the file
/// `script`, because their prompts are the client's.
fn with_foreign_agents() -> TestServer {
    let mut server = TestServer::prepare("");
    let agent = server.folder.path().join("agent");
    let script = server.folder.path().join("script");
    let run = format!("#!/bin/sh\nexec '{}' \"$@\" < '{}'\n", fake_agent().display(), script.display());
    write_script(&agent, &run);
    server.config = format!(
        "[agents.claude-code]\nformat = \"claude\"\nprogram = \"{}\"\npass_env = [\"PATH\"]\n",
        agent.display()
    );
    server.start_again();
    server
}

fn start_foreign(server: &TestServer, story: &str) -> Driver {
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/seed-client");
    Driver::start("socket-io", "socket_io_seed.mjs", server, &[&code.to_string_lossy(), story])
}

/// The first block of a language on the page.
fn example(language: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(docs.join(PAGE)).unwrap();
    let (_, block) = page.split_once(&format!("```{language}\n")).expect("a block");
    block.split_once("```").expect("its end").0.to_owned()
}

/// An example of the page as it stands there, while it runs.
struct Example {
    driver: Driver,
    printed: PathBuf,
}

impl Example {
    fn start(mut program: Command, folder: &str, language: &str, server: &TestServer, id: &str) -> Self {
        let [script, printed, log] =
            ["example", "printed", "log"].map(|name| server.folder.path().join(name));
        std::fs::write(&script, example(language)).unwrap();
        program.args([&format!("http://{}", server.authority()), server.token(), id]);
        program.current_dir(clients().join(folder)).stdin(File::open(&script).unwrap());
        program.stdout(File::create(&printed).unwrap()).stderr(File::create(&log).unwrap());
        let process = program.spawn().unwrap();
        Self { driver: Driver { process, log }, printed }
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.printed).unwrap()
    }

    /// Waits for its end. Returns what it has printed.
    async fn finish(self) -> String {
        self.driver.finish().await;
        std::fs::read_to_string(self.printed).unwrap()
    }
}

/// An example must print the text of an agent.
async fn play_example(program: Command, folder: &str, language: &str) {
    let server = start();
    let id = server.launch(&json!({ "deltas": 50, "pace_us": 1000 })).await;
    let example = Example::start(program, folder, language, &server, &id);
    assert_eq!(example.finish().await, numbers(50));
}

/// The server of an example is killed before the agent has begun, and again in the middle of its text.
async fn play_example_over_restarts(program: Command, folder: &str, language: &str) {
    let limits = "[limits]\nrunning_agents = 1\n";
    let mut server = TestServer::start_with(&(crate::harness::fake_config() + limits));
    let [first, second] = ["first", "second"].map(|name| server.folder.path().join(name));
    server.launch(&json!({ "deltas": 1, "gate": first })).await;
    let id = server.launch(&json!({ "deltas": 50, "gate": second, "gate_after": 20 })).await;
    let example = Example::start(program, folder, language, &server, &id);
    until(async || follows(&server).await).await;
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["head"], 0, "it waits for the other agent");
    server.kill_and_start_again();
    std::fs::write(first, "").unwrap();
    until(async || example.printed() == numbers(20)).await;
    server.kill_and_start_again();
    std::fs::write(second, "").unwrap();
    assert_eq!(example.finish().await, numbers(50));
}

/// Whether a client follows agents.
async fn follows(server: &TestServer) -> bool {
    let metrics = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    !metrics.lines().any(|line| line == "tokenrail_open_streams 0")
}

/// Waits until something holds.
async fn until(holds: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < CLIENT_PATIENCE, "it never came to that");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

macro_rules! with_each_client {
    ($($client:ident $start:expr;)*) => {
        $(mod $client {
            use crate::real_clients::Driver;

            #[tokio::test]
            async fn a_room_tells_all_events_and_requests_are_acknowledged() {
                super::play($start, "talk").await;
            }

            #[tokio::test]
            async fn only_the_token_lets_a_client_in() {
                super::play($start, "access").await;
            }

            #[tokio::test]
            async fn binary_data_is_refused_in_words() {
                super::play($start, "binary").await;
            }

            #[tokio::test]
            async fn a_client_misses_nothing_if_its_server_is_killed() {
                super::play_over_restarts($start, "restart").await;
            }
        })*
    };
}

with_each_client! {
    javascript |server, story| Driver::start("socket-io", "socket_io.mjs", server, &[story]);
    python |server, story| Driver::start_python("socket-io-py", "socket_io.py", server, &[story]);
}

fn in_node() -> Command {
    let mut node = Command::new(node(&clients()));
    node.args(["--input-type=module", "-"]);
    node
}

fn in_python() -> Command {
    let mut python = Command::new(clients().join("socket-io-py/bin/python"));
    python.args(["-u", "-"]);
    python
}

mod javascript_in_words {
    use super::{
        Driver, in_node, play_example, play_example_over_restarts, play_over_restarts, start_foreign,
        with_foreign_agents,
    };

    #[tokio::test]
    async fn the_example_of_the_page_runs() {
        play_example(in_node(), "socket-io", "js").await;
    }

    #[tokio::test]
    async fn the_example_of_the_page_outlives_its_server() {
        play_example_over_restarts(in_node(), "socket-io", "js").await;
    }

    #[tokio::test]
    async fn a_client_misses_nothing_if_its_server_is_killed_while_a_tool_runs() {
        play_over_restarts(
            |server, story| Driver::start("socket-io", "socket_io.mjs", server, &[story]),
            "tool",
        )
        .await;
    }

    #[tokio::test]
    async fn the_test_of_a_foreign_client_runs_unchanged() {
        let server = with_foreign_agents();
        start_foreign(&server, "test").finish().await;
    }

    #[tokio::test]
    async fn the_hook_of_a_foreign_client_shows_each_message_once() {
        let mut server = with_foreign_agents();
        let driver = start_foreign(&server, "hook");
        driver.finish_over_kills(&mut server).await;
    }
}

mod python_in_words {
    use super::{in_python, play_example, play_example_over_restarts};

    #[tokio::test]
    async fn the_example_of_the_page_runs() {
        play_example(in_python(), "socket-io-py", "python").await;
    }

    #[tokio::test]
    async fn the_example_of_the_page_outlives_its_server() {
        play_example_over_restarts(in_python(), "socket-io-py", "python").await;
    }
}
