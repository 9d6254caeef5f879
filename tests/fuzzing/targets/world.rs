//! The application and its presentation in this process, with an agent that prints its prompt.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use actix_web::body::MessageBody;
use actix_web::dev::Service as _;
use actix_web::http::header::HeaderMap;
use actix_web::test::{TestRequest, init_service};
use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use tokenrail_application::{
    AfterLastTurn, AgentService, AgentType, AgentTypes, Deletion, Launch, Limits, Outside,
};
use tokenrail_domain::{AgentId, Event, EventBody, Notice, Sequence, Timestamp};
use tokenrail_parser::ClaudeParser;
use tokenrail_ports::testing::samples::WHOLE;
use tokenrail_ports::testing::{MemoryStore, PretendRepository, PretendRuns, PretendWorkspace};
use tokenrail_ports::{
    Abilities, Adoption, IAgentRun, IAgentRunner, IClock, IJournal as _, IRandom, Probe, RunEnd, RunOutput,
    RunnerError, TurnOrder,
};
use tokenrail_presentation::{Api, PresentationConfig, app};
use tokenrail_runner::FramerLimits;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::asker::{Asker, REQUESTS};
use super::line_framer::framed;

pub(crate) const HOST: &str = "localhost:7117";

/// A small limit, so that inputs of a few hundred bytes contain lines above it.
pub(crate) const LINES: FramerLimits = FramerLimits { line_bytes: 2000, head_bytes: 100 };

/// After this many uses a world is replaced, because it keeps every agent in memory.
const USES: u32 = 500;

/// A complete response. Of a stream that stays open, only what is available at once is read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// The body has ended.
    pub(crate) whole: bool,
}

type Call = Rc<dyn Fn(TestRequest) -> LocalBoxFuture<'static, Answer>>;

/// One application.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) service: AgentService,
    store: Arc<MemoryStore>,
    call: Call,
    deleted: Rc<OnceCell<AgentId>>,
}

thread_local! {
    static RUNTIME: actix_web::rt::Runtime = actix_web::rt::Runtime::new().expect("a runtime");
    static NOW: RefCell<Kept> = const { RefCell::new(Kept(None)) };
}

/// This thread's world, its agent, and how often it was used.
struct Kept(Option<(World, AgentId, u32)>);

impl Drop for Kept {
    /// At the end of a thread, the web server's own thread locals may be gone, and dropping it would panic.
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

/// Runs `what` with this thread's world, and with an agent in it that has ended.
pub(crate) fn with<T, F: Future<Output = T>>(what: impl FnOnce(World, AgentId) -> F) -> T {
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let taken = NOW.with_borrow_mut(|kept| kept.0.take()).filter(|(.., uses)| *uses < USES);
            let (world, agent, uses) = match taken {
                Some(known) => known,
                None => new().await,
            };
            NOW.with_borrow_mut(|kept| kept.0 = Some((world.clone(), agent, uses + 1)));
            what(world, agent).await
        })
    })
}

/// The next input gets a new world.
pub(crate) fn forget() {
    drop(NOW.with_borrow_mut(|kept| kept.0.take()));
}

async fn new() -> (World, AgentId, u32) {
    let (api, service, store) = api();
    let app = Rc::new(init_service(app(api)).await);
    let call: Call = Rc::new(move |request| {
        let app = app.clone();
        async move {
            let response = app.call(request.to_request()).await.expect("problems are answers");
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let (body, whole) = body(response.into_body()).await;
            Answer { status, headers, body, whole }
        }
        .boxed_local()
    });
    let world = World { service, store, call, deleted: Rc::default() };
    let agent = world.launch(TALK).await;
    world.ended(agent).await;
    (world, agent, 0)
}

/// The output of the agent whose journal all inputs read.
const TALK: &[u8] =
    b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}\n\
{\"type\":\"result\",\"subtype\":\"success\"}\n";

/// An application on the current runtime. It requires no token.
pub(crate) fn api() -> (Api, AgentService, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::new(1));
    let printer = AgentType {
        runner: Arc::new(Printer),
        workspace: Arc::new(PretendWorkspace),
        parser: Arc::new(|| Box::new(ClaudeParser::new())),
        runner_name: "process".into(),
        abilities: Abilities::default(),
        format: "claude".into(),
    };
    let asker = AgentType {
        runner: Arc::new(Asker),
        parser: Arc::new(|| Box::new(ClaudeParser::two_way())),
        ..printer.clone()
    };
    let outside = Outside {
        journal: store.clone(),
        agents: store.clone(),
        archive: store.clone(),
        nodes: store.clone(),
        inbox: store.clone(),
        credentials: None,
        bus: Arc::new(tokenrail_ports::testing::MemoryBus::new(1)),
        clock: Arc::new(StoppedClock),
        random: Arc::new(Counting::default()),
        runs: Arc::new(PretendRuns),
        git: Arc::new(PretendRepository::default()),
        types: AgentTypes {
            listed: BTreeMap::from([("printer".to_owned(), printer), ("asker".to_owned(), asker)]),
            ..AgentTypes::default()
        },
        default_type: Some("printer".to_owned()),
    };
    let mut limits = Limits::default();
    limits.admission.launches_per_minute = u32::MAX;
    let service = AgentService::new(outside, limits, Handle::current());
    let config = PresentationConfig::new(7117);
    let secrets = Counting::default();
    let random = Arc::new(move || {
        let mut secret = [0; 32];
        secret[..10].copy_from_slice(&secrets.bytes());
        secret
    });
    (Api::new(service.clone(), config, random), service, store)
}

async fn body(body: impl MessageBody) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut body = std::pin::pin!(body);
    loop {
        // A live stream may yield to other tasks a few times, but no time passes.
        let mut next = None;
        for _ in 0..50 {
            next = std::future::poll_fn(|cx| body.as_mut().poll_next(cx)).now_or_never();
            if next.is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        match next {
            Some(Some(Ok(chunk))) => bytes.extend_from_slice(&chunk),
            Some(Some(Err(_))) => panic!("the body breaks off"),
            Some(None) => return (bytes, true),
            None => return (bytes, false),
        }
    }
}

impl World {
    /// Launches an agent with this output.
    pub(crate) async fn launch(&self, output: &[u8]) -> AgentId {
        // Each byte becomes one character.
        let prompt = output.iter().map(|byte| char::from(*byte)).collect();
        let launched = self.service.launch(Launch { prompt, ..Launch::default() }).await;
        launched.expect("it can be launched").agent.id
    }

    /// An agent that is deleted, and has ended before.
    pub(crate) async fn deleted(&self) -> AgentId {
        let make = async || {
            let agent = self.launch(TALK).await;
            self.ended(agent).await;
            self.service.delete(agent, Deletion::KeepHistory).await.expect("it can be deleted");
            agent
        };
        *self.deleted.get_or_init(make).await
    }

    /// Launches an agent, and waits until it has sent its permission requests.
    pub(crate) async fn ask(&self) -> AgentId {
        let launch = Launch { kind: Some("asker".to_owned()), prompt: "x".to_owned(), ..Launch::default() };
        let agent = self.service.launch(launch).await.expect("it can be launched").agent.id;
        let (_, mut follower) = self
            .service
            .follow(agent, Some(Sequence::START), AfterLastTurn::Wait)
            .await
            .expect("it is there");
        let mut asked = 0;
        while asked < REQUESTS.len() {
            let tokenrail_application::Next::Page(page) = follower.next().await.expect("it can be read")
            else {
                panic!("it asks before it ends");
            };
            let is_request = |event: &&Event| match &event.body {
                EventBody::Notice(notice) => notice.subtype == Notice::PERMISSION_REQUEST,
                _ => false,
            };
            asked += page.events().iter().filter(is_request).count();
        }
        agent
    }

    pub(crate) async fn ended(&self, agent: AgentId) {
        let (_, mut follower) =
            self.service.follow(agent, None, AfterLastTurn::End).await.expect("it is there");
        while let tokenrail_application::Next::Page(_) = follower.next().await.expect("it can be read") {}
    }

    pub(crate) async fn call(&self, request: TestRequest) -> Answer {
        (self.call)(request).await
    }

    /// Like `call`, but `None` if the response waits for more than what other tasks do at once.
    pub(crate) async fn call_at_once(&self, request: TestRequest) -> Option<Answer> {
        let mut call = (self.call)(request);
        for _ in 0..500 {
            let answer = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
            if let Poll::Ready(answer) = answer {
                return Some(answer);
            }
            tokio::task::yield_now().await;
        }
        None
    }

    pub(crate) async fn journal(&self, agent: AgentId) -> Vec<Event> {
        self.store.read(agent, Sequence::START, WHOLE).await.expect("memory can be read")
    }
}

/// The lines of an output, as the runners cut them.
pub(crate) fn lines_of(output: &[u8]) -> Vec<tokenrail_ports::OutputLine> {
    framed(&[output], LINES)
}

struct Printer;

struct Printing(Vec<tokenrail_ports::OutputLine>);

#[async_trait]
impl IAgentRunner for Printer {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        let output: Vec<u8> = order.prompt.chars().map(|c| c as u8).collect();
        Ok(Box::new(Printing(lines_of(&output))))
    }

    async fn adopt(&self, _: &TurnOrder, _: u64) -> Result<Adoption, RunnerError> {
        Ok(Adoption::Gone)
    }

    async fn probe(&self) -> Probe {
        Probe::default()
    }
}

#[async_trait]
impl IAgentRun for Printing {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        if self.0.is_empty() {
            return Ok(RunOutput::Ended(RunEnd::default()));
        }
        let some = self.0.len().div_ceil(2);
        Ok(RunOutput::Lines(self.0.drain(..some).collect()))
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        self.0.clear();
        Ok(())
    }

    async fn leave(&mut self) {}
}

struct StoppedClock;

impl IClock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_795_299_000_000)
    }
}

#[derive(Default)]
struct Counting(AtomicU32);

impl IRandom for Counting {
    fn bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}
