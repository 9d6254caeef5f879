//! The synchronous standby takes over while the old primary lives on, cut off from the standby and from one node, but
//! not from the other one, for which it is the first of the addresses. Nobody sees two truths.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, Flush, Proxy, Replication, Server};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::failovers::{metric, until_ready};
use super::nodes::{LOST_AFTER_S, node_with, results, until_it_serves, until_its_processes_end};
use super::{WAYS, config};
use crate::follower::{Follower, Place};
use crate::harness::{PATIENCE, TestServer, numbers, text_of};

const DELTAS: u64 = 20_000;

/// How long everything may take to be well again. After a failover, nodes wait for each other.
const WELL_AGAIN: Duration = Duration::from_mins(2);

/// A node comes over long before, however busy the machine is.
const PATIENT_S: u64 = WELL_AGAIN.as_secs();

/// `behind` stays at the old primary, and `ahead` goes on at the new one.
struct Split {
    behind: TestServer,
    ahead: TestServer,
    /// Between `behind` and the standby, and between `ahead` and the primary.
    networks: [Proxy; 2],
    database: Database,
    primary: Server,
    standby: Server,
}

/// An agent, its file to make it end soon, and its readers at both nodes.
struct Agent {
    id: String,
    hurry: PathBuf,
    readers: Vec<JoinHandle<Follower>>,
}

impl Split {
    /// A node that is silent for so long is declared lost.
    fn prepare(lost_after_s: u64) -> Self {
        let primary = Server::start(Flush::Off);
        let database = primary.database();
        let standby = primary.standby(Replication::Synchronous);
        let networks = [Proxy::start(&standby), Proxy::start(&primary)];
        let node = |addresses: [String; 2], name| {
            let hosts = addresses.join(",");
            let config = config(&database).replace(&primary.address(), &hosts);
            node_with(format!("{config}[cluster]\nlost_after_s = {lost_after_s}\n"), name)
        };
        let behind = node([primary.address(), networks[0].address()], "behind");
        let ahead = node([networks[1].address(), standby.address()], "ahead");
        Self { behind, ahead, networks, database, primary, standby }
    }

    async fn agent_at(&self, server: &TestServer) -> Agent {
        let hurry = server.folder.path().join("hurry");
        let id = server.launch(&json!({ "deltas": DELTAS, "pace_us": 5000, "hurry": hurry })).await;
        let mut readers = Vec::new();
        for server in [&self.behind, &self.ahead] {
            for way in WAYS {
                let follower = Follower::new(Place::of(server), &id);
                let reading = follower.read_to_a_result(way, std::iter::empty());
                readers.push(Handle::current().spawn(reading));
            }
        }
        for server in [&self.behind, &self.ahead] {
            server.wait_until(&id, |agent| 50 < agent["head"].as_u64().unwrap()).await;
        }
        Agent { id, hurry, readers }
    }

    /// Returns how many events of this agent the new primary has.
    async fn happens(&self, agent: &Agent) -> u64 {
        for network in &self.networks {
            network.refuse();
        }
        // What is acknowledged by now, the standby has.
        self.standby.fall_behind(&self.primary);
        self.standby.promote();
        until_ready(&self.ahead, StatusCode::OK).await;
        assert_eq!(metric(&self.ahead, "tokenrail_database_timeline").await, 2);
        head_of(&self.ahead, &agent.id).await
    }

    /// The old primary saves nothing for `behind`, and shows nothing that the new one lacks.
    async fn nothing_is_acknowledged(&self, agent: &Agent, head: u64) {
        let launch = json!({ "type": "fake", "prompt": json!({ "deltas": 3 }).to_string() });
        let (status, problem) = self.behind.post("/api/agents", &launch).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
        let path = format!("/api/agents/{}/messages", agent.id);
        let (status, problem) = self.behind.post(&path, &json!({ "content": "more" })).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
        let path = format!("/api/agents/{}/events?since={head}", agent.id);
        let answer = self.behind.request(Method::GET, &path).send().await.unwrap();
        let (status, said) = (answer.status(), answer.text().await.unwrap());
        // The standby may have got something of which the old primary was not told.
        let is_refused = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT].contains(&status);
        assert!(is_refused || said == "[]", "{status} {said}");
        assert_eq!(metric(&self.behind, "tokenrail_database_timeline").await, 1);
    }

    /// The addresses of `behind` are as before, and the old primary still runs.
    async fn behind_comes_over(&self) {
        self.networks[0].release();
        let started = Instant::now();
        loop {
            let shown = self.behind.request(Method::GET, "/metrics").send().await;
            let text = match shown {
                Ok(answer) => answer.text().await.unwrap_or_default(),
                Err(_) => String::new(),
            };
            if text.lines().any(|line| line == "tokenrail_database_timeline 2") {
                break;
            }
            assert!(started.elapsed() < WELL_AGAIN, "{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // If it was declared lost, it starts anew.
        let are_alive = |nodes: &Value| {
            nodes.as_array().is_some_and(|nodes| nodes.iter().all(|node| node["state"] == "alive"))
        };
        until(&self.ahead, "/api/nodes", are_alive).await;
        until_it_serves(&self.behind).await;
        until_ready(&self.behind, StatusCode::OK).await;
    }

    /// The one turn has ended once, everybody has seen the same, and the agent goes on. Returns how it ended.
    async fn end_of(&self, agent: Agent) -> String {
        let Agent { id, hurry: _, readers } = agent;
        for server in [&self.behind, &self.ahead] {
            until_agent(server, &id, |agent| agent["endedAt"].is_string()).await;
        }
        until_its_processes_end(&id).await;
        let events = self.ahead.events(&id).await;
        assert_eq!(self.behind.events(&id).await, events);
        for reader in readers {
            let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
            assert_eq!(seen.events(), events);
        }
        let (text, whole) = (text_of(&events), numbers(DELTAS));
        let outcomes = results(&events);
        match outcomes[..] {
            [("completed", "-")] => assert_eq!(text, whole),
            [("interrupted", "node_lost")] => assert!(whole.starts_with(&text)),
            _ => panic!("{outcomes:?}"),
        }
        let (path, started) = (format!("/api/agents/{id}/messages"), Instant::now());
        let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
        while self.behind.post(&path, &body).await.0 != StatusCode::ACCEPTED {
            assert!(started.elapsed() < WELL_AGAIN);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        until_agent(&self.ahead, &id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
        outcomes[0].0.to_owned()
    }

    async fn ends(self, agents: [Agent; 2]) -> [String; 2] {
        for agent in &agents {
            std::fs::write(&agent.hurry, "").unwrap();
        }
        let [first, second] = agents;
        let ids = [first.id.clone(), second.id.clone()];
        let outcomes = [self.end_of(first).await, self.end_of(second).await];
        let listed = self.ahead.get("/api/agents").await;
        assert_eq!(self.behind.get("/api/agents").await, listed);
        let refused =
            listed.as_array().unwrap().iter().filter(|agent| ids.iter().all(|id| agent["agentId"] != *id));
        assert_eq!(refused.count(), 0, "no refused launch is there: {listed}");
        let on_new = self.standby.sql_in(&self.database, "SELECT count(*) FROM agents");
        assert_eq!(on_new, "2");
        for server in [&self.behind, &self.ahead] {
            assert_eq!(metric(server, "tokenrail_changes_lost_total").await, 0);
            assert_eq!(metric(server, "tokenrail_invariant_violations_total").await, 0);
        }
        outcomes
    }
}

async fn head_of(server: &TestServer, id: &str) -> u64 {
    server.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap()
}

/// Waits until a server says this of an agent. It may be away meanwhile.
async fn until_agent(server: &TestServer, id: &str, holds: impl Fn(&Value) -> bool) {
    until(server, &format!("/api/agents/{id}"), holds).await;
}

async fn until(server: &TestServer, path: &str, holds: impl Fn(&Value) -> bool) {
    let started = Instant::now();
    loop {
        let mut said = String::new();
        if let Some(answer) = server.answer_if_there(path).await {
            said = answer.text().await.unwrap_or_default();
            if holds(&serde_json::from_str(&said).unwrap_or_default()) {
                return;
            }
        }
        assert!(started.elapsed() < WELL_AGAIN, "{said}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_at_an_old_primary_that_lives_comes_over_and_loses_nothing() {
    let split = Split::prepare(PATIENT_S);
    let agents = [split.agent_at(&split.behind).await, split.agent_at(&split.ahead).await];
    split.happens(&agents[0]).await;
    split.behind_comes_over().await;
    assert_eq!(split.ends(agents).await, ["completed", "completed"]);
}

/// In the end, the other node takes over its turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_lives_acknowledges_nothing_for_the_node_that_stays_with_it() {
    let split = Split::prepare(LOST_AFTER_S);
    let agents = [split.agent_at(&split.behind).await, split.agent_at(&split.ahead).await];
    let head = split.happens(&agents[0]).await;
    split.nothing_is_acknowledged(&agents[0], head).await;
    // What waited for the standby becomes visible at the old primary.
    split.primary.end_connections(&split.database);
    split.nothing_is_acknowledged(&agents[0], head).await;
    until_agent(&split.ahead, &agents[0].id, |agent| agent["status"] == "interrupted").await;
    split.nothing_is_acknowledged(&agents[0], head).await;
    split.behind_comes_over().await;
    assert_eq!(split.ends(agents).await, ["interrupted", "completed"]);
}
