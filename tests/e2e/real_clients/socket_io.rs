//! Socket.IO's clients in JavaScript and Python, each over WebSocket, long polling, and the change between them.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::{TestServer, numbers};
use crate::real_clients::{Driver, clients, made, node};

type Start = fn(&TestServer, &str) -> Driver;

/// The page whose examples run here.
const PAGE: &str = "reference/protocol/socket-io.md";

/// How often a story loses its server: once for each choice of transports.
const RESTARTS: usize = 3;

/// The drivers fail to log in more often than the limit allows.
fn start() -> TestServer {
    let limits = "[limits]\nfailed_logins_per_minute = 100000\n";
    TestServer::start_with(&(crate::harness::fake_config() + limits))
}

async fn play(start_driver: Start, story: &str) {
    let server = start();
    start_driver(&server, story).finish().await;
}

async fn play_over_restarts(start_driver: Start) {
    let mut server = start();
    let driver = start_driver(&server, "restart");
    for at in 0..RESTARTS {
        made(&server.folder.path().join(format!("reached-{at}"))).await;
        server.kill_and_start_again();
    }
    driver.finish().await;
}

/// The first block of a language on the page.
fn example(language: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(docs.join(PAGE)).unwrap();
    let (_, block) = page.split_once(&format!("```{language}\n")).expect("a block");
    block.split_once("```").expect("its end").0.to_owned()
}

/// Runs an example of the page as it stands there. It must print the text of an agent.
async fn play_example(mut program: Command, folder: &str, language: &str) {
    let server = start();
    let id = server.launch(&json!({ "deltas": 50, "pace_us": 1000 })).await;
    let script = server.folder.path().join("example");
    std::fs::write(&script, example(language)).unwrap();
    program.args([&format!("http://{}", server.authority()), server.token(), &id]);
    program.current_dir(clients().join(folder)).stdin(File::open(&script).unwrap());
    let output = tokio::task::spawn_blocking(move || program.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), numbers(50));
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
                super::play_over_restarts($start).await;
            }
        })*
    };
}

with_each_client! {
    javascript |server, story| Driver::start("socket-io", "socket_io.mjs", server, &[story]);
    python |server, story| Driver::start_python("socket-io-py", "socket_io.py", server, &[story]);
}

mod javascript_in_words {
    use super::{Command, Driver, clients, node, play, play_example};

    #[tokio::test]
    async fn the_example_of_the_page_runs() {
        let mut node = Command::new(node(&clients()));
        node.args(["--input-type=module", "-"]);
        play_example(node, "socket-io", "js").await;
    }

    /// Code that was written for another server of the same events.
    #[tokio::test]
    async fn foreign_code_runs_unchanged() {
        play(|server, story| Driver::start("socket-io", "socket_io.mjs", server, &[story]), "seed").await;
    }
}

mod python_in_words {
    use super::{Command, clients, play_example};

    #[tokio::test]
    async fn the_example_of_the_page_runs() {
        let mut python = Command::new(clients().join("socket-io-py/bin/python"));
        python.args(["-u", "-"]);
        play_example(python, "socket-io-py", "python").await;
    }
}
