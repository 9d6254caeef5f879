//! The page, its client library and the command line behind nginx, which sends them to one of two servers. That one is
//! killed in mid stream: they go on at the other one, and miss nothing.

use std::fmt::Write as _;
use std::process::Stdio;

use tokenrail_test_postgres::database;
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::timeout;

use super::nginx::{Nginx, PASS_ON};
use super::{Browser, Look, ended, says};
use crate::harness::{PATIENCE, TestServer, free_port, program};
use crate::model_server::{Gate, ModelServer, Reply};
use crate::postgres::config;
use crate::postgres::nodes::node_with;

/// A command that follows an agent.
struct Tail {
    process: tokio::process::Child,
    output: BufReader<ChildStdout>,
    shown: String,
}

impl Tail {
    fn start(url: &str, token: &str, id: &str) -> Self {
        let mut process = Command::new(program())
            .args(["tail", id])
            .env("TOKENRAIL_URL", url)
            .env("TOKENRAIL_TOKEN", token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output, shown: String::new() }
    }

    /// Reads until it has shown this text, or everything.
    async fn until(&mut self, text: &str) {
        while !self.shown.contains(text) {
            let mut piece = [0; 4096];
            let read = timeout(PATIENCE, self.output.read(&mut piece)).await;
            let count = read.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.shown)).unwrap();
            self.shown += std::str::from_utf8(&piece[..count]).unwrap();
            assert_ne!(count, 0, "no {text:?} in {:?}", self.shown);
        }
    }
}

/// All requests go to the first server, as long as it can be reached.
fn one_after_the_other(port: u16, servers: [&TestServer; 2]) -> String {
    let [first, second] = servers.map(TestServer::authority);
    format!(
        "upstream tokenrail {{ server {first}; server {second} backup; }}
         server {{
             listen 127.0.0.1:{port};
             location / {{
                 proxy_pass http://tokenrail;
                 {PASS_ON}
             }}
         }}"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_and_the_command_line_go_on_at_another_server() {
    let gate = Gate::new();
    let pieces = ["It was ", "a dark ", "and stormy ", "night"];
    let model =
        ModelServer::start_without_tools([Reply::text(pieces).gated(&gate), Reply::text(["The end"])]);
    let (database, port) = (database(), free_port());
    let public = format!("http://127.0.0.1:{port}");
    let server = |name| {
        let mut config = format!("[server]\npublic_url = \"{public}\"\n{}", config(&database));
        let url = model.url();
        write!(
            config,
            "[agents.model]\nrunner = \"http\"\nformat = \"openai-chat\"\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n"
        )
        .unwrap();
        node_with(config, name)
    };
    let (mut first, second) = (server("first"), server("second"));
    let _nginx = Nginx::start(&one_after_the_other(port, [&first, &second]), &public).await;

    let id = second.launch_as("model", "Tell me a story").await;
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&format!("{public}/agents/{id}#token={}", second.token())).await;
    let mut tail = Tail::start(&public, second.token(), &id);
    gate.pass(2);
    tab.until(&says("It was a dark")).await;
    tail.until("a dark").await;
    first.kill_9();
    gate.open();

    tab.until(&ended(1)).await;
    tab.until(&says(&pieces.concat())).await;
    tail.until("night").await;
    assert!(timeout(PATIENCE, tail.process.wait()).await.unwrap().unwrap().success(), "{}", tail.shown);
    assert!(tail.shown.contains(&pieces.concat()), "{}", tail.shown);

    // And what the page sends goes there.
    tab.fill("#composer-text", "Go on").await;
    tab.press("Enter").await;
    tab.until(&ended(2)).await;
    tab.until(&says("The end")).await;
}
