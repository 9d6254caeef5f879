//! Agents that are launched for a short time, and answered, cancelled, deleted or purged, each at any server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::nodes::{results, until_its_processes_end};
use super::absent::Absent;
use super::clients::Client;
use super::cluster::{Cluster, number_of};
use super::{Dice, PATIENCE, judge};
use crate::harness::text_of;

/// Of so many visits, at least one ends at another node than that of the agent, and one while that is away.
const VISITS_PER_PLACE: usize = 40;

/// What was done with an agent.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// With this option.
    Answered(&'static str),
    Cancelled,
    Deleted,
    Purged,
}

/// Where the server was that did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// At the agent's node.
    AtHome,
    /// At another one.
    Elsewhere,
    /// At another one, while the agent's node was away.
    InItsAbsence,
}

/// One agent.
pub(super) struct Visit {
    id: String,
    deed: Deed,
    /// `None` if the server said that there was nothing left to do: an earlier request had done it without an answer,
    /// or the turn had ended.
    done: Option<Where>,
}

/// Who launches one agent after the other.
pub(super) struct Guest {
    client: Client,
    absent: Absent,
    visits: Vec<Visit>,
    /// How many there were of all guests.
    visited: Arc<AtomicUsize>,
}

/// An agent that was launched, and its node.
struct Launched {
    id: String,
    node: String,
}

impl Guest {
    pub(super) fn new(cluster: &Cluster, dice: Dice) -> Self {
        Self {
            client: Client { places: cluster.places(), dice },
            absent: cluster.absent(),
            visits: Vec::new(),
            visited: cluster.visited(),
        }
    }

    pub(super) async fn visit_until(mut self, over: watch::Receiver<bool>) -> Vec<Visit> {
        while !*over.borrow() {
            tokio::time::sleep(self.client.dice.millis(500, 2500)).await;
            let visit = match self.client.dice.below(5) {
                0..=1 => self.answer().await,
                2 => self.cancel().await,
                3 => self.delete(Deed::Deleted, "").await,
                _ => self.delete(Deed::Purged, "?purge=true").await,
            };
            self.visits.push(visit);
            self.visited.fetch_add(1, Ordering::Relaxed);
        }
        self.visits
    }

    /// Launches once, however often it has to ask.
    async fn launch(&mut self, kind: &str, prompt: &str) -> Launched {
        let key = format!("guest-{}-{:x}", self.visits.len(), self.client.dice.0);
        let body = json!({ "type": kind, "prompt": prompt });
        let agent = self.client.ask(Method::POST, "/api/agents", &key, &body).await.expect("a launch").body;
        let text = |name: &str| agent[name].as_str().unwrap_or_default().to_owned();
        Launched { id: text("agentId"), node: text("node") }
    }

    /// Does something with an agent. The error is the code of the problem.
    async fn act(
        &mut self,
        agent: &Launched,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(StatusCode, Where), String> {
        let path = format!("/api/agents/{}{path}", agent.id);
        let waited = self.client.dice.below(2) == 0 && self.absent.until_away(&agent.node).await;
        let is_absent = waited || self.absent.has(&agent.node);
        let answer = if waited {
            self.client.elsewhere(number_of(&agent.node)).ask(method, &path, "", body).await
        } else {
            self.client.ask(method, &path, "", body).await
        };
        match answer {
            Ok(answer) if answer.node == agent.node => Ok((answer.status, Where::AtHome)),
            Ok(answer) if is_absent => Ok((answer.status, Where::InItsAbsence)),
            Ok(answer) => Ok((answer.status, Where::Elsewhere)),
            Err(problem) => Err(problem["code"].as_str().unwrap_or_default().to_owned()),
        }
    }

    async fn answer(&mut self) -> Visit {
        let agent = self.launch("asking", "Clean up").await;
        let (path, started) = (format!("/api/agents/{}", agent.id), Instant::now());
        loop {
            let shown = self.client.ask(Method::GET, &path, "", &Value::Null).await.expect("an agent").body;
            if shown["openQuestions"] == 1 || shown["endedAt"].is_string() {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "it does not ask: {shown}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let option = ["allow", "reject"][self.client.dice.index(2)];
        let body = json!({ "optionId": option });
        let done = match self.act(&agent, Method::POST, "/permissions/1-1", &body).await {
            Ok((StatusCode::OK, place)) => Some(place),
            // It waits for the agent.
            Ok(_) => None,
            Err(code) => {
                assert!(["already_resolved", "not_found"].contains(&code.as_str()), "{}: {code}", agent.id);
                None
            }
        };
        Visit { id: agent.id, deed: Deed::Answered(option), done }
    }

    async fn hanging(&mut self) -> Launched {
        let agent = self.launch("fake", &json!({ "mode": "hang", "deltas": 20 }).to_string()).await;
        tokio::time::sleep(self.client.dice.millis(0, 2000)).await;
        agent
    }

    async fn cancel(&mut self) -> Visit {
        let agent = self.hanging().await;
        let (_, place) = self.act(&agent, Method::POST, "/cancel", &json!({})).await.expect("a cancel");
        Visit { id: agent.id, deed: Deed::Cancelled, done: Some(place) }
    }

    async fn delete(&mut self, deed: Deed, query: &str) -> Visit {
        let agent = self.hanging().await;
        let done = match self.act(&agent, Method::DELETE, query, &Value::Null).await {
            Ok((_, place)) => Some(place),
            Err(code) => {
                assert_eq!(code, "not_found", "{}", agent.id);
                None
            }
        };
        Visit { id: agent.id, deed, done }
    }
}

/// Each agent ended as it was told to, or with its server, and once. Returns what the agents came to.
pub(super) async fn each_went_as_it_was_asked(cluster: &Cluster, visits: &[Visit]) -> String {
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    for Visit { id, deed, done } in visits {
        let outcome = match deed {
            Deed::Answered(option) => answered(cluster, id, option, done.is_some()).await,
            Deed::Cancelled => ended(cluster, id, "cancelled").await,
            Deed::Deleted => is_gone(cluster, id, StatusCode::OK).await,
            Deed::Purged => is_gone(cluster, id, StatusCode::NOT_FOUND).await,
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    let done = |place: Where| visits.iter().filter(|visit| visit.done == Some(place)).count();
    let (elsewhere, absent) = (done(Where::Elsewhere), done(Where::InItsAbsence));
    let least = visits.len() / VISITS_PER_PLACE;
    assert!(
        least <= elsewhere && least <= absent,
        "{elsewhere} elsewhere, {absent} in the absence of their node"
    );
    format!(
        "{} guests ({elsewhere} elsewhere, {absent} in the absence of their node): {outcomes:?}",
        visits.len()
    )
}

/// The one turn has ended in this way, or was interrupted because its node was lost or killed. Returns how.
async fn ended(cluster: &Cluster, id: &str, expected: &str) -> String {
    let events = events(cluster, id).await;
    let results = results(&events);
    let &[(outcome, code)] = results.as_slice() else { panic!("{id}: {results:?}") };
    // A turn that never started has only its prompt and its result.
    let has_printed = events.len() != 2;
    let may_be = (outcome, code) == (expected, "-")
        || (outcome, code) == ("interrupted", "node_lost")
        || cluster.may_be_unstarted(outcome, code, has_printed);
    assert!(may_be, "{id}: {results:?}");
    outcome.to_owned()
}

async fn answered(cluster: &Cluster, id: &str, option: &str, counts: bool) -> String {
    let outcome = ended(cluster, id, "completed").await;
    let events = events(cluster, id).await;
    let asked = of_type(&events, "permission_request").count();
    let resolved: Vec<&Value> =
        of_type(&events, "permission_resolved").map(|event| &event["content"]).collect();
    assert!(asked <= 1 && resolved.len() <= asked, "{id}: asked {asked} times: {resolved:?}");
    if outcome == "completed" {
        let said = if option == "allow" { "It was allowed." } else { "It was refused." };
        assert_eq!(text_of(&events), said, "{id}");
    }
    if counts || outcome == "completed" {
        assert_eq!(resolved.len(), 1, "{id}: an answer was accepted");
        assert_eq!(resolved[0]["optionId"], option, "{id}");
    }
    outcome
}

async fn events(cluster: &Cluster, id: &str) -> Vec<Value> {
    let journal = judge::journal(cluster, id).await;
    journal.iter().map(|event| serde_json::from_str(event.get()).expect("JSON")).collect()
}

fn of_type<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["metadata"]["eventType"] == kind)
}

/// It is in no list, and shown with this status, and nothing of it runs.
async fn is_gone(cluster: &Cluster, id: &str, shown: StatusCode) -> String {
    until_its_processes_end(id).await;
    for server in cluster.servers() {
        assert_eq!(judge::status_of(server, &format!("/api/agents/{id}")).await, shown, "{id}");
        let listed: Vec<Value> = judge::answer_that(server, "/api/agents", |_| true).await;
        assert!(listed.iter().all(|agent| agent["agentId"] != id), "{id} is listed");
    }
    if shown == StatusCode::OK { "deleted".to_owned() } else { "purged".to_owned() }
}
