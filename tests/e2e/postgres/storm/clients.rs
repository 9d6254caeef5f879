//! Who writes to the agents and who reads, at any server. They go on at another one if theirs is away.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::by_tail::read_by_tail;
use super::{Dice, PATIENCE};
use crate::follower::{Follower, Place, Way};
use crate::harness::TestServer;

/// A client takes its server for dead after this time.
const SILENCE: Duration = Duration::from_secs(3);

/// A prompt that was accepted. The one of turn 1 comes first.
pub(super) struct Asked {
    pub(super) prompt: String,
    pub(super) deltas: u64,
    /// Each start of the agent program for this prompt has a line in it.
    pub(super) starts: PathBuf,
    pub(super) cancelled: bool,
}

/// What a server has answered, and its name.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
    pub(super) node: String,
}

/// Who asks one server after the other.
pub(super) struct Client {
    pub(super) places: Vec<Place>,
    pub(super) dice: Dice,
}

impl Client {
    /// Who knows that the server with this number is away, and asks the others.
    pub(super) fn elsewhere(&self, number: usize) -> Self {
        let mut places = self.places.clone();
        places.remove(number);
        Self { places, dice: Dice(self.dice.0) }
    }

    /// Asks until one server accepts, or refuses for good. Only a refusal that may be over later is taken for an answer
    /// that is none.
    pub(super) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<Answer, Value> {
        let started = tokio::time::Instant::now();
        let mut last = String::new();
        while started.elapsed() < PATIENCE {
            let place = self.places[self.dice.index(self.places.len())].clone();
            match place_answers(&place, &method, path, key, body).await {
                Ok(answer) if answer.status.is_success() => return Ok(answer),
                Ok(Answer { body, .. }) if body["retryable"] == true => last = body.to_string(),
                Ok(Answer { body, .. }) => return Err(body),
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{method} {path} is never answered: {last}");
    }
}

/// Who launches one agent, sends it messages and cancels turns.
pub(super) struct Author {
    id: String,
    client: Client,
    folder: PathBuf,
    asked: Vec<Asked>,
}

impl Author {
    pub(super) async fn launch(server: &TestServer, places: Vec<Place>, folder: &Path, dice: Dice) -> Self {
        let folder = folder.to_owned();
        let client = Client { places, dice };
        let mut author = Self { id: String::new(), client, folder, asked: Vec::new() };
        let asked = author.invent(&server.pid().to_string(), false);
        author.id = server.launch_as("fake", &asked.prompt).await;
        author.asked.push(asked);
        author
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// A turn that takes 1 to 7 seconds, or never ends by itself.
    fn invent(&mut self, name: &str, hangs: bool) -> Asked {
        let deltas = 20 + self.client.dice.below(130);
        // Nobody else draws this.
        let starts = self.folder.join(format!("starts-{name}-{}-{:x}", self.asked.len(), self.client.dice.0));
        let mode = if hangs { "hang" } else { "stream" };
        let prompt = json!({ "mode": mode, "deltas": deltas, "pace_us": 50_000, "log_start": starts });
        Asked { prompt: prompt.to_string(), deltas, starts, cancelled: false }
    }

    /// Keeps the agent at work until it is over. Returns the prompts.
    pub(super) async fn write_until(mut self, over: watch::Receiver<bool>) -> Vec<Asked> {
        while !*over.borrow() {
            tokio::time::sleep(self.client.dice.millis(100, 1500)).await;
            let agent = self.ask(Method::GET, "", "", &Value::Null).await;
            if agent["queued"].as_u64().unwrap() < 2 {
                self.send().await;
            }
        }
        self.asked
    }

    /// Sends one message, and cancels some of them.
    async fn send(&mut self) {
        let (is_cancelled, hangs) = (self.client.dice.below(4) == 0, self.client.dice.below(2) == 0);
        let asked = self.invent(&self.id.clone(), is_cancelled && hangs);
        let (key, body) = (asked.starts.display().to_string(), json!({ "content": asked.prompt }));
        let accepted = self.ask(Method::POST, "/messages", &key, &body).await;
        self.asked.push(asked);
        assert_eq!(accepted["turn"], self.asked.len(), "{}: each prompt is one turn", self.id);
        if is_cancelled {
            tokio::time::sleep(self.client.dice.millis(0, 3000)).await;
            self.asked.last_mut().unwrap().cancelled = true;
            let path = format!("/cancel?turn={}", self.asked.len());
            self.ask(Method::POST, &path, "", &json!({})).await;
        }
    }

    /// Asks until one server accepts.
    async fn ask(&mut self, method: Method, path: &str, key: &str, body: &Value) -> Value {
        let path = format!("/api/agents/{}{path}", self.id);
        let answer = self.client.ask(method, &path, key, body).await;
        answer.unwrap_or_else(|problem| panic!("{path}: {problem}")).body
    }
}

async fn place_answers(
    place: &Place,
    method: &Method,
    path: &str,
    key: &str,
    body: &Value,
) -> reqwest::Result<Answer> {
    let url = format!("http://{}{path}", place.authority);
    let mut request = place.http.request(method.clone(), url).bearer_auth(&place.token).timeout(SILENCE);
    if !key.is_empty() {
        request = request.header("idempotency-key", key);
    }
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = request.send().await?;
    let (status, node) = (answer.status(), answer.headers().get("tokenrail-node"));
    let node = node.and_then(|name| name.to_str().ok()).unwrap_or_default().to_owned();
    // A server that was stopped for a while answers without a body that the request is late.
    let text = answer.text().await?;
    let body = serde_json::from_str(&text).unwrap_or_else(|_| json!({ "retryable": true, "text": text }));
    Ok(Answer { status, body, node })
}

/// What follows an agent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Program {
    /// A client of this test.
    OwnClient(Way),
    /// `tokenrail tail`.
    Tail,
}

impl Program {
    /// Reads until the end of a turn, or until `most` more events have come. Returns false if it has lost its server.
    async fn read(self, follower: &mut Follower, most: usize) -> bool {
        match self {
            Self::OwnClient(way) => follower.read(way, most).await,
            Self::Tail => read_by_tail(follower, most).await,
        }
    }
}

/// Who follows one agent from its first event to its last.
pub(super) struct Reader {
    id: String,
    program: Program,
    /// The number of the last event, once it is known.
    head: watch::Sender<usize>,
    task: JoinHandle<Follower>,
}

impl Reader {
    pub(super) fn start(id: &str, program: Program, places: Vec<Place>) -> Self {
        let mut follower = Follower::new(places[0].clone(), id);
        (follower.silence, follower.pause) = (SILENCE, Duration::from_millis(50));
        let (head, mut known) = watch::channel(usize::MAX >> 1);
        let task = Handle::current().spawn(async move {
            let mut servers = places.iter().cycle().skip(1);
            loop {
                let most = known.borrow_and_update().saturating_sub(follower.seen.len());
                if most == 0 {
                    return follower;
                }
                let went_well = tokio::select! {
                    went_well = program.read(&mut follower, most) => went_well,
                    _ = known.changed() => true,
                };
                if !went_well {
                    follower.move_to(servers.next().expect("they never end").clone());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
        Self { id: id.to_owned(), program, head, task }
    }

    /// It has exactly these events, byte for byte.
    pub(super) async fn has_seen(mut self, journal: &[Box<RawValue>]) {
        let _ = self.head.send(journal.len());
        let (id, program) = (&self.id, self.program);
        let seen = tokio::time::timeout(PATIENCE, &mut self.task).await;
        let seen = seen.unwrap_or_else(|_| panic!("{program:?} of {id} never comes to its end")).unwrap();
        assert_eq!(seen.bytes().len(), journal.len(), "{program:?} of {id}");
        for (seen, there) in seen.bytes().into_iter().zip(journal) {
            assert_eq!(seen, there.get(), "{program:?} of {id}");
        }
    }
}
