//! Somebody copies a data folder and starts a server on the copy while an agent runs at the first server. Both have one
//! identity: the copy has the agent from then on, and the first server stops and leaves nothing behind.

use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use tokenrail_test_postgres::{Database, database};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::WAYS;
use super::nodes::{copy_of, node, results, until_its_processes_end};
use crate::follower::{Follower, Place};
use crate::harness::{PATIENCE, TestServer, numbers, text_of};

/// The agent prints so much and then nothing more, so that no write tells its server that it has lost the agent.
const DELTAS: u64 = 50;

/// A server whose agent runs, one beside it, and readers of the agent at both.
struct Scene {
    first: TestServer,
    beside: TestServer,
    id: String,
    readers: Vec<JoinHandle<Follower>>,
    _database: Database,
}

impl Scene {
    async fn begin() -> Self {
        let database = database();
        let (mut first, beside) = (node(&database, "first"), node(&database, "beside"));
        assert!(first.stop().success());
        let mut serve = first.command(&["serve", "--log", "warn"]);
        serve.stderr(File::create(first.folder.path().join("log")).unwrap());
        first.start_by(serve).unwrap();
        let id = first.launch(&json!({ "mode": "hang", "deltas": DELTAS })).await;
        let mut readers = Vec::new();
        for at in [0, 1] {
            for way in WAYS {
                let mut servers = [&first, &beside].map(Place::of).into_iter().cycle().skip(at);
                let follower = Follower::new(servers.next().unwrap(), &id);
                readers.push(Handle::current().spawn(follower.read_to_a_result(way, servers)));
            }
        }
        beside.wait_until(&id, |agent| DELTAS < agent["head"].as_u64().unwrap()).await;
        Self { first, beside, id, readers, _database: database }
    }

    /// The copy starts. Returns the outcome of the only turn, and why it ended like this.
    async fn goes_on_with(mut self, mut copy: TestServer, folder: TempDir) -> (String, String) {
        copy.start_again();
        assert_eq!(self.first.wait().code(), Some(1));
        let said = std::fs::read_to_string(self.first.folder.path().join("log")).unwrap();
        assert!(said.contains("with a copy of this data folder"), "{said}");
        assert!(said.contains("remove the file node.id from the copied folder"), "{said}");
        // The supervisor of a run ends by itself soon after its agent.
        until_its_processes_end(&self.id).await;

        self.beside.wait_until(&self.id, |agent| agent["endedAt"].is_string()).await;
        let events = self.beside.events(&self.id).await;
        assert_eq!(copy.events(&self.id).await, events);
        for reader in self.readers {
            let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
            assert_eq!(seen.events(), events);
        }
        let text = text_of(&events);
        assert!(!text.is_empty() && numbers(DELTAS).starts_with(&text), "{text}");
        let outcomes = results(&events);
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        let outcome = (outcomes[0].0.to_owned(), outcomes[0].1.to_owned());

        // As it says, the copy becomes a node of its own.
        assert!(copy.stop().success());
        std::fs::remove_file(copy.data_dir().join("node.id")).unwrap();
        self.first.start_again();
        copy.start_again();
        let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
        let (path, started) = (format!("/api/agents/{}/messages", self.id), Instant::now());
        while copy.post(&path, &body).await.0 != StatusCode::ACCEPTED {
            assert!(started.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let ended = |agent: &serde_json::Value| agent["turn"] == 2 && agent["status"] == "completed";
        self.first.wait_until(&self.id, ended).await;
        assert_eq!(self.first.events(&self.id).await[..events.len()], events);
        drop(folder);
        outcome
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_identity_takes_the_turns_and_the_first_server_ends_its_processes() {
    let scene = Scene::begin().await;
    let (copy, folder) = copy_of(&scene.first);
    let (outcome, _) = scene.goes_on_with(copy, folder).await;
    assert_eq!(outcome, "interrupted", "its run is not in the copy");
}

/// The copy has the run too, as it was at that moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_folder_takes_the_turns_and_the_first_server_ends_its_processes() {
    let scene = Scene::begin().await;
    let (copy, folder) = copy_of(&scene.first);
    let runs = scene.first.data_dir().join("runs");
    let copied = Command::new("cp").arg("-a").arg(runs).arg(copy.data_dir()).output().unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let (outcome, why) = scene.goes_on_with(copy, folder).await;
    assert!(["interrupted", "failed"].contains(&outcome.as_str()), "{outcome}: {why}");
}
