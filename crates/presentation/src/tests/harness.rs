//! A presentation to test: the real application over a memory store, and an agent that does what its prompt says.

mod script;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use actix_http::Request;
use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::test::{TestRequest, init_service};
use async_trait::async_trait;
use serde_json::Value;
use tokenrail_application::{AfterLastTurn, AgentService, AgentType, AgentTypes, Limits, Outside};
use tokenrail_domain::{AgentId, Timestamp};
use tokenrail_ports::testing::{MemoryBus, MemoryStore, PretendRepository, PretendRuns, StoppedClock};
use tokenrail_ports::{Abilities, CwdNotAllowed, FolderError, ICredentials, INodes, IRandom, IWorkspace};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::script::{ScriptParser, ScriptRunner};
use crate::{Api, PresentationConfig, app};

pub(crate) const TOKEN: &str = "0123456789abcdef";
pub(crate) const HOST: &str = "localhost:7117";

/// A presentation to test.
pub(crate) struct Harness {
    pub(crate) api: Api,
    pub(crate) service: AgentService,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<StoppedClock>,
    /// For agents that do `tell by hand`.
    pub(crate) permits: Arc<Semaphore>,
}

/// The time of the harness.
const NOW: Timestamp = Timestamp(1_795_299_000_000);

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The code of a problem. Checks that the rest of the problem is valid.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        let code = problem["code"].as_str().unwrap();
        assert_eq!(problem["status"], self.status.as_u16());
        assert_eq!(problem["type"], format!("/problems/{code}"));
        assert_eq!(problem["requestId"], self.header("x-request-id"));
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        code.to_owned()
    }
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// A harness with an agent type for chats.
    pub(crate) fn for_chats() -> Self {
        Self::build(|_, _| {}, Some("script".to_owned()))
    }

    pub(crate) fn with(change: impl FnOnce(&mut PresentationConfig, &mut Limits)) -> Self {
        Self::build(change, None)
    }

    pub(crate) fn build(
        change: impl FnOnce(&mut PresentationConfig, &mut Limits),
        default_type: Option<String>,
    ) -> Self {
        Self::of(change, default_type, PretendRepository::default(), true)
    }

    /// A harness whose type `script` accepts no images, and whose type `seeing` does.
    pub(crate) fn blind() -> Self {
        Self::of(|_, _| {}, None, PretendRepository::default(), false)
    }

    /// A harness whose agents all work in this repository.
    pub(crate) fn in_repository(repository: PretendRepository) -> Self {
        Self::of(|_, _| {}, None, repository, true)
    }

    fn of(
        change: impl FnOnce(&mut PresentationConfig, &mut Limits),
        default_type: Option<String>,
        repository: PretendRepository,
        images: bool,
    ) -> Self {
        Self::on((MemoryStore::new(1), MemoryBus::new(1)), change, default_type, repository, images)
    }

    /// A harness on a store that may be shared, with the node's bus.
    pub(crate) fn on(
        (store, bus): (MemoryStore, MemoryBus),
        change: impl FnOnce(&mut PresentationConfig, &mut Limits),
        default_type: Option<String>,
        repository: PretendRepository,
        images: bool,
    ) -> Self {
        let mut config = PresentationConfig { token: Some(TOKEN.into()), ..PresentationConfig::new(7117) };
        let mut limits = Limits::default();
        change(&mut config, &mut limits);
        let store = Arc::new(store);
        let clock = Arc::new(StoppedClock::at(NOW));
        let permits = Arc::new(Semaphore::new(0));
        let script = AgentType {
            runner: Arc::new(ScriptRunner { permits: Arc::clone(&permits) }),
            workspace: Arc::new(Anywhere),
            parser: Arc::new(|| Box::<ScriptParser>::default()),
            runner_name: "process".into(),
            abilities: Abilities { deltas: true, images, ..Abilities::default() },
            format: "script".into(),
        };
        let mut listed = BTreeMap::from([("script".to_owned(), script.clone())]);
        if !images {
            let abilities = Abilities { images: true, ..script.abilities };
            listed.insert("seeing".to_owned(), AgentType { abilities, ..script });
        }
        let outside = Outside {
            journal: store.clone(),
            agents: store.clone(),
            archive: store.clone(),
            nodes: store.clone(),
            inbox: store.clone(),
            credentials: store.is_shared().then(|| store.clone() as Arc<dyn ICredentials>),
            bus: Arc::new(bus),
            clock: clock.clone(),
            random: Arc::new(Counting(AtomicU8::new(0))),
            runs: Arc::new(PretendRuns),
            git: Arc::new(repository),
            types: AgentTypes { listed, ..AgentTypes::default() },
            default_type,
        };
        let service = AgentService::new(outside, limits, Handle::current());
        let tickets = AtomicU8::new(0);
        let random = Arc::new(move || [tickets.fetch_add(1, Ordering::Relaxed); 32]);
        Self { api: Api::new(service.clone(), config, random), service, store, clock, permits }
    }

    /// Sends a request with the token and a valid host, unless it has its own.
    pub(crate) async fn call(&self, request: TestRequest) -> Answer {
        let request = request.insert_header(("host", HOST));
        self.call_raw(request.insert_header(("authorization", format!("Bearer {TOKEN}")))).await
    }

    /// Sends a request unchanged.
    pub(crate) async fn call_raw(&self, request: TestRequest) -> Answer {
        let app = init_service(app(self.api.clone())).await;
        read(call(&app, request.to_request()).await).await
    }

    pub(crate) async fn get(&self, uri: &str) -> Answer {
        self.call(TestRequest::get().uri(uri)).await
    }

    /// Whether the body of the response breaks off.
    pub(crate) async fn breaks_off(&self, uri: &str) -> bool {
        let app = init_service(app(self.api.clone())).await;
        let request = TestRequest::get().uri(uri).insert_header(("host", HOST));
        let request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
        let request = request.insert_header(("accept", "text/event-stream"));
        to_bytes(call(&app, request.to_request()).await.into_body()).await.is_err()
    }

    /// The first blocks of an event stream, without comments: up to the first block that is the last one for the
    /// client, which then leaves. If there is none, all of them.
    pub(crate) async fn get_until(&self, uri: &str, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        self.until(TestRequest::get().uri(uri), is_last).await
    }

    /// The same with a request that has a body.
    pub(crate) async fn post_until(
        &self,
        uri: &str,
        body: &str,
        is_last: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let request = TestRequest::post().uri(uri).insert_header(("content-type", "application/json"));
        self.until(request.set_payload(body.to_owned()), is_last).await
    }

    async fn until(&self, request: TestRequest, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let app = init_service(app(self.api.clone())).await;
        let request = request.insert_header(("host", HOST));
        let request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
        let response = call(&app, request.to_request()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = pin!(response.into_body());
        let (mut rest, mut blocks) = (Vec::new(), Vec::new());
        while let Some(chunk) = poll_fn(|cx| body.as_mut().poll_next(cx)).await {
            rest.extend_from_slice(&chunk.map_err(|_| "the body breaks off").unwrap());
            while let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
                let block = String::from_utf8(rest.drain(..end + 2).collect()).unwrap();
                if block.starts_with(':') {
                    continue;
                }
                let is_last = is_last(&block);
                blocks.push(block);
                if is_last {
                    return blocks;
                }
            }
        }
        blocks
    }

    pub(crate) async fn post(&self, uri: &str, body: &str) -> Answer {
        let request = TestRequest::post().uri(uri).insert_header(("content-type", "application/json"));
        self.call(request.set_payload(body.to_owned())).await
    }

    /// Launches an agent that does what the prompt says. Returns its id.
    pub(crate) async fn launch(&self, prompt: &str) -> String {
        let answer = self
            .post("/api/agents", &serde_json::json!({"type": "script", "prompt": prompt}).to_string())
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["agentId"].as_str().unwrap().to_owned()
    }

    /// Launches an agent and waits until it has ended. Returns its id.
    pub(crate) async fn launch_to_end(&self, prompt: &str) -> String {
        let id = self.launch(prompt).await;
        self.ended(&id).await;
        id
    }

    /// Waits until the agent has ended.
    pub(crate) async fn ended(&self, id: &str) {
        let id: AgentId = id.parse().unwrap();
        let (_, mut follower) = self.service.follow(id, None, AfterLastTurn::End).await.unwrap();
        while let tokenrail_application::Next::Page(_) = follower.next().await.unwrap() {}
    }
}

async fn call<S, B>(app: &S, request: Request) -> ServiceResponse<B>
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
{
    app.call(request).await.unwrap()
}

async fn read<B: MessageBody>(response: ServiceResponse<B>) -> Answer {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = to_bytes(response.into_body()).await.map_err(|_| "the body breaks off").unwrap();
    Answer { status, headers, text: String::from_utf8(body.to_vec()).unwrap() }
}

struct Anywhere;

#[async_trait]
impl IWorkspace for Anywhere {
    async fn remove(&self, _: AgentId) -> std::io::Result<()> {
        Ok(())
    }

    async fn folder(&self, _: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError> {
        match asked {
            Some(folder) if folder.starts_with("/forbidden") => Err(CwdNotAllowed.into()),
            folder => Ok(folder.unwrap_or_else(|| "/work".into()).into()),
        }
    }
}

struct Counting(AtomicU8);

impl IRandom for Counting {
    fn bytes(&self) -> [u8; 10] {
        [self.0.fetch_add(1, Ordering::Relaxed); 10]
    }
}
