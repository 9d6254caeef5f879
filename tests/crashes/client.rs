//! A client that outlives its server: it repeats a request, with the same key, until it gets an answer.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::follower::{Follower, Place, Way};
use crate::harness::TestServer;
use crate::judge::Asked;

/// Far longer than any outage of these tests.
const PATIENCE: Duration = Duration::from_mins(2);
/// An agent with more events than these has begun: the prompt, and the agent's first notice.
const SPOKEN: u64 = 2;

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) place: Place,
}

impl Client {
    pub(crate) fn of(server: &TestServer) -> Self {
        Self { place: Place::of(server) }
    }

    /// The final answer. An answer that asks for a retry does not count.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: &str,
    ) -> (StatusCode, String) {
        let started = tokio::time::Instant::now();
        loop {
            let url = format!("http://{}{path}", self.place.authority);
            let mut request = self.place.http.request(method.clone(), url).bearer_auth(&self.place.token);
            if let Some(body) = body {
                request = request.header("idempotency-key", key).json(body);
            }
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                let again = matches!(status.as_u16(), 503 | 507);
                if !again && let Ok(text) = answer.text().await {
                    return (status, text);
                }
            }
            assert!(started.elapsed() < PATIENCE, "{method} {path} is never answered");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn launch(&self, script: &Value, key: &str) -> String {
        let body = json!({ "type": "fake", "prompt": script.to_string() });
        let (status, text) = self.ask(Method::POST, "/api/agents", Some(&body), key).await;
        assert_eq!(status, StatusCode::CREATED, "{text}");
        let agent: Value = serde_json::from_str(&text).expect("JSON");
        agent["agentId"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn say(&self, id: &str, script: &Value, key: &str) {
        let body = json!({ "content": script.to_string() });
        let path = format!("/api/agents/{id}/messages");
        let (status, text) = self.ask(Method::POST, &path, Some(&body), key).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{text}");
    }

    pub(crate) async fn cancel(&self, id: &str) {
        let (status, text) = self.ask(Method::POST, &format!("/api/agents/{id}/cancel"), None, "").await;
        assert_eq!(status, StatusCode::ACCEPTED, "{text}");
    }

    /// Cancels an agent that cannot end by itself, after its first output. Returns how its turn must end then. If the
    /// server was killed before the agent had begun, the turn was interrupted, and nothing is left to cancel.
    pub(crate) async fn cancel_in_time(&self, id: &str) -> Asked {
        let started = tokio::time::Instant::now();
        loop {
            let (status, text) = self.ask(Method::GET, &format!("/api/agents/{id}"), None, "").await;
            assert_eq!(status, StatusCode::OK, "{text}");
            let agent: Value = serde_json::from_str(&text).expect("JSON");
            if agent["endedAt"].is_string() {
                assert_eq!(agent["status"], "interrupted", "nothing else ends it: {agent}");
                return Asked::WholeOverKills;
            }
            if SPOKEN < agent["head"].as_u64().expect("a number") {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "it never speaks: {agent}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.cancel(id).await;
        Asked::CancelledInTime
    }

    /// Stops and purges the agent. If the first answer was lost, the answer to the retry is that the agent is unknown.
    pub(crate) async fn purge(&self, id: &str) {
        let path = format!("/api/agents/{id}?purge=true");
        let (status, text) = self.ask(Method::DELETE, &path, None, "").await;
        assert!(matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_FOUND), "{status} {text}");
    }

    /// Every event, byte for byte.
    pub(crate) async fn events(&self, id: &str) -> Vec<Box<RawValue>> {
        let mut events: Vec<Box<RawValue>> = Vec::new();
        loop {
            let path = format!("/api/agents/{id}/events?since={}", events.len());
            let (status, text) = self.ask(Method::GET, &path, None, "").await;
            assert_eq!(status, StatusCode::OK, "{text}");
            let page: Vec<Box<RawValue>> = serde_json::from_str(&text).expect("a list");
            if page.is_empty() {
                return events;
            }
            events.extend(page);
        }
    }

    /// A reader that continues through every outage until it has seen the end of `turns` turns.
    pub(crate) fn follow(&self, id: &str, way: Way, turns: usize, history: &Path) -> JoinHandle<Follower> {
        let file = OpenOptions::new().create(true).append(true).open(history).expect("a file");
        let mut follower = Follower::new(self.place.clone(), id);
        follower.history = Some(file);
        Handle::current().spawn(async move {
            while follower.results() < turns {
                if !follower.read(way, usize::MAX >> 1).await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            follower
        })
    }
}

/// What a reader has seen after it has reached its end.
pub(crate) async fn finished<T>(reader: JoinHandle<T>) -> T {
    tokio::time::timeout(PATIENCE, reader).await.expect("a reader comes to its end").expect("without a fault")
}
