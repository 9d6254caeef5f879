//! A scripted model: the Messages API of Anthropic, the Responses and the Chat Completions API of `OpenAI`, and the
//! Gemini API on 127.0.0.1. They are complete enough for the real programs, and need no account.
//!
//! * [`script`]: what the model replies ([`Reply`]), and [`Gate`], which holds a reply until the test releases it
//! * [`wire`]: replies as server-sent events and as JSON; [`responses`], [`chat`], [`generate`]: in the formats of the
//!   other APIs
//! * [`request`]: the requests of the program
//! * [`claude`]: how to start the real program so that it only talks to this server
//!
//! Each request of the conversation takes the next reply of the script, whether it is a first try or a retry, streamed
//! or not. Other requests (for titles, or probes) offer no tools. They get a plain answer and take no reply, unless the
//! server was started for clients that never offer tools.
#![expect(clippy::expect_used, reason = "a test ends where its own tools fail")]

mod chat;
pub(crate) mod claude;
mod generate;
#[cfg(test)]
mod real_claude;
mod request;
mod responses;
mod script;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

use actix_web::http::header;
use actix_web::web::{Bytes, Data, JsonConfig, PayloadConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

pub(crate) use request::Request;
pub(crate) use script::{Gate, Reply};

/// One request contains the whole conversation, and the description of every tool.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// A running server. It stops when it is dropped.
pub(crate) struct ModelServer {
    url: String,
    seen: Data<Seen>,
    stop: actix_web::dev::ServerHandle,
}

/// The remaining replies, and the requests so far.
struct Seen {
    script: Mutex<VecDeque<Reply>>,
    requests: watch::Sender<Vec<Request>>,
    /// Requests without tools belong to the conversation too.
    without_tools: bool,
    /// If a request comes before its reply, it waits: the test decides on the reply when it has seen the request.
    told: Option<Notify>,
}

impl ModelServer {
    /// Listens on a free port, with its own thread and runtime, so that any kind of test can use it.
    pub(crate) fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_for(script, false, None)
    }

    /// The same for clients that never offer tools: each of their requests takes a reply.
    pub(crate) fn start_without_tools(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_for(script, true, None)
    }

    /// The same without a script: each request of the Messages API waits for [`ModelServer::say`].
    pub(crate) fn start_to_be_told() -> Self {
        Self::start_for([], false, Some(Notify::new()))
    }

    /// Replies to the oldest request that waits, or else to the next one.
    pub(crate) fn say(&self, reply: Reply) {
        self.seen.script.lock().unwrap_or_else(PoisonError::into_inner).push_back(reply);
        if let Some(told) = &self.seen.told {
            told.notify_one();
        }
    }

    fn start_for(script: impl IntoIterator<Item = Reply>, without_tools: bool, told: Option<Notify>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let script = Mutex::new(script.into_iter().collect());
        let seen = Data::new(Seen { script, requests: watch::Sender::default(), without_tools, told });
        let (tell, handle) = std::sync::mpsc::channel();
        let state = seen.clone();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = serve(listener, state);
                tell.send(server.handle()).expect("the test waits for this");
                server.await
            })
        });
        let stop = handle.recv().expect("a server that has started");
        Self { url: format!("http://{address}"), seen, stop }
    }

    /// The value for `ANTHROPIC_BASE_URL` and similar variables.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The requests of the conversation so far, the oldest first.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.requests.borrow().clone()
    }

    /// Waits until the conversation has this many requests, and returns the last of them.
    pub(crate) async fn request(&self, number: usize) -> Request {
        let mut requests = self.seen.requests.subscribe();
        let found = requests.wait_for(|requests| number <= requests.len()).await;
        found.expect("the sender lives as long as we")[number - 1].clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // The call itself sends the stop. Waiting for the end would need a runtime, and the port is not used again.
        drop(self.stop.stop(false));
    }
}

fn serve(listener: TcpListener, seen: Data<Seen>) -> actix_web::dev::Server {
    let app = move || {
        App::new()
            .app_data(seen.clone())
            .app_data(PayloadConfig::new(REQUEST_BYTES_MAX))
            .app_data(JsonConfig::default().limit(REQUEST_BYTES_MAX))
            .route("/", web::get().to(HttpResponse::Ok))
            .route("/", web::head().to(HttpResponse::Ok))
            .route("/v1/messages", web::post().to(messages))
            .route("/v1/messages/count_tokens", web::post().to(count_tokens))
            .route("/v1/chat/completions", web::post().to(chat_completions))
            .route("/v1/responses", web::post().to(answer_of_openai))
            .route("/v1beta/models/{call}", web::post().to(answer_of_gemini))
            .default_service(web::to(not_found))
    };
    let server = HttpServer::new(app).workers(1).disable_signals().listen(listener);
    server.expect("a listening socket").run()
}

async fn messages(asked: HttpRequest, body: web::Json<Value>, seen: Data<Seen>) -> HttpResponse {
    let request = Request::new(body.into_inner()).with_headers(asked.headers());
    let (mut reply, number) = seen.reply_to(&request);
    if let (Some(told), 1..) = (&seen.told, number) {
        reply = loop {
            if let Some(reply) = seen.next_reply() {
                break reply;
            }
            told.notified().await;
        };
    }
    wire::respond(reply, number, &request, request.wants_stream())
}

async fn answer_of_openai(asked: HttpRequest, body: web::Json<Value>, seen: Data<Seen>) -> HttpResponse {
    let (reply, number) = seen.reply_to(&Request::new(body.into_inner()).with_headers(asked.headers()));
    responses::respond(reply, number)
}

async fn chat_completions(asked: HttpRequest, body: web::Json<Value>, seen: Data<Seen>) -> HttpResponse {
    let request = Request::new(body.into_inner()).with_headers(asked.headers());
    let (reply, number) = seen.reply_to(&request);
    chat::respond(reply, number, &request)
}

async fn answer_of_gemini(call: web::Path<String>, body: web::Json<Value>, seen: Data<Seen>) -> HttpResponse {
    let (reply, _) = seen.reply_to(&Request::new(body.into_inner()));
    generate::respond(reply, call.ends_with(":streamGenerateContent"))
}

impl Seen {
    fn next_reply(&self) -> Option<Reply> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next reply of the script, and the number of the request. A request outside the conversation gets a plain
    /// answer.
    fn reply_to(&self, request: &Request) -> (Reply, usize) {
        if !(self.without_tools || request.offers_tools()) {
            return (Reply::text(["Beside the conversation"]), 0);
        }
        let reply = if self.told.is_some() { None } else { self.next_reply() };
        let mut number = 0;
        self.requests.send_modify(|requests| {
            requests.push(request.clone());
            number = requests.len();
        });
        // No client retries this status, so a script that is too short is noticed at once.
        let too_short = || Reply::error(400, "invalid_request_error", "the script of the test has ended");
        (reply.unwrap_or_else(too_short), number)
    }
}

async fn count_tokens(body: Bytes) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "input_tokens": body.len() / 4 }))
}

async fn not_found(request: HttpRequest) -> HttpResponse {
    let message = format!("there is no {} {}", request.method(), request.path());
    let error = json!({ "type": "error", "error": { "type": "not_found_error", "message": message } });
    HttpResponse::NotFound().insert_header((header::CONNECTION, "close")).json(error)
}
