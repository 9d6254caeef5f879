//! Each problem code has a row in the protocol reference, and the real server returns it here: over HTTP, and over the
//! streams if it can occur there. A new code without both makes this test fail.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{TestServer, fake_config};
use crate::raw;
use crate::socket::Socket;

const TABLE: &str = include_str!("../../crates/presentation/src/error/codes.rs");
const PROTOCOL: &str = include_str!("../../docs/reference/protocol/problems.md");
/// Codes that require a failing disk or two servers, and so programs or rights that not every test has. Another test
/// provokes them.
const ELSEWHERE: [(&str, &str, &str); 3] = [
    (
        "node_unavailable",
        include_str!("../../crates/presentation/src/tests/nodes.rs"),
        "an_agent_of_a_lost_node_can_be_read_but_accepts_no_message",
    ),
    (
        "outcome_unknown",
        include_str!("../crashes/real_crashes/strace.rs"),
        "a_launch_of_which_nobody_knows_whether_it_was_saved_says_so_by_strace",
    ),
    (
        "storage_full",
        include_str!("../e2e/full_disk.rs"),
        "a_full_disk_delays_and_loses_nothing_with_a_small_disk",
    ),
];
/// Codes that no HTTP response has.
const ONLY_ON_SOCKETS: [&str; 1] = ["news_lagged"];
/// Codes in the OpenAPI document of the route that an event stream cannot return. Every query can be parsed, a request
/// for a stream accepts it, a reader writes nothing, and it waits for no writer. A server that stops ends the stream
/// without an error.
const NOT_ON_EVENT_STREAMS: [&str; 6] =
    ["bad_request", "not_acceptable", "outcome_unknown", "shutting_down", "storage_full", "store_busy"];
/// Codes in the document of the corresponding routes that a WebSocket cannot return. Some exist only in HTTP, and
/// others require two servers, or a disk that fails while a permission request is open.
const NOT_ON_SOCKETS: [&str; 8] = [
    "node_unavailable",
    "not_acceptable",
    "outcome_unknown",
    "request_timeout",
    "storage_full",
    "store_busy",
    "unsupported_media_type",
    "upgrade_required",
];

fn set(codes: &[&str]) -> BTreeSet<String> {
    codes.iter().map(|code| (*code).to_owned()).collect()
}

/// The codes that the OpenAPI document names for each route, by method and path.
async fn described() -> BTreeMap<String, BTreeSet<String>> {
    let server = TestServer::start();
    let document = server.get("/openapi.json").await;
    let known = codes();
    let mut routes = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(responses) = operation["responses"].as_object() else { continue };
            let told = responses.values().filter_map(|response| response["description"].as_str());
            let words = told.flat_map(|told| told.split('`')).filter(|word| known.contains(*word));
            routes.insert(format!("{method} {path}"), words.map(str::to_owned).collect());
        }
    }
    routes
}

/// The codes in the server's source.
fn codes() -> BTreeSet<String> {
    let rows = TABLE.split_once("\ncodes! {").expect("the table").1;
    let rows =
        rows.lines().take_while(|line| *line != "}").filter(|line| !line.trim_start().starts_with("//"));
    let words = rows.filter_map(|line| line.split('"').nth(1));
    let code = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    words.filter(code).map(str::to_owned).collect()
}

/// The status and "retryable" of each code, as the protocol reference says.
fn documented() -> BTreeMap<String, (u16, bool)> {
    let section = PROTOCOL.split_once("# Problem codes\n").expect("the section").1;
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let code = cells.next()?.trim_end_matches('`').to_owned();
        Some((code, (cells.next()?.parse().ok()?, cells.next()? == "yes")))
    });
    rows.collect()
}

#[test]
fn each_code_has_its_line_in_the_documentation() {
    let documented: BTreeSet<String> = documented().into_keys().collect();
    assert!(25 < documented.len(), "the table of the protocol reference can be read: {documented:?}");
    assert_eq!(documented, codes());
    for (code, source, test) in ELSEWHERE {
        let body = source.split_once(&format!("async fn {test}(")).expect("the test is there").1;
        let body = body.split_once("\n}\n").expect("its end").0;
        assert!(body.contains(&format!("\"{code}\"")), "{test} does not expect {code}");
    }
}

/// The codes that were returned.
struct Seen {
    documented: BTreeMap<String, (u16, bool)>,
    http: BTreeSet<String>,
    streams: BTreeSet<String>,
    sockets: BTreeSet<String>,
}

impl Seen {
    fn new() -> Self {
        let none = BTreeSet::new();
        Self { documented: documented(), http: none.clone(), streams: none.clone(), sockets: none }
    }

    /// Sends a request and expects this problem, in the documented form.
    async fn http(&mut self, request: RequestBuilder, code: &str) {
        self.check(request, code).await;
        self.http.insert(code.to_owned());
    }

    /// The same for an event stream.
    async fn stream(&mut self, request: RequestBuilder, code: &str) {
        self.check(request.header("accept", "text/event-stream"), code).await;
        self.streams.insert(code.to_owned());
    }

    async fn check(&self, request: RequestBuilder, code: &str) {
        let answer = request.send().await.unwrap();
        let (status, head) = (answer.status().as_u16(), answer.headers().clone());
        let problem: Value = answer.json().await.unwrap_or_else(|error| panic!("{code}: {status}: {error}"));
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(head["content-type"], "application/problem+json", "{code}");
        let found = (status, problem["retryable"].as_bool().unwrap());
        assert_eq!(Some(&found), self.documented.get(code), "{code} as the protocol reference says");
        assert_eq!(
            (&problem["status"], &problem["type"]),
            (&json!(status), &json!(format!("/problems/{code}")))
        );
        assert_eq!(problem["requestId"], head["x-request-id"].to_str().unwrap());
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
        assert_eq!(matches!(status, 429 | 503), head.contains_key("retry-after"), "{code}: Retry-After");
    }

    /// Sends a frame on a WebSocket and expects an `error` frame. The connection stays open.
    async fn socket(&mut self, socket: &mut Socket, kind: &str, payload: &Value, code: &str) {
        socket.say(kind, payload).await;
        self.frame(socket, code).await;
        socket.say("ping", &json!({})).await;
        socket.hear_of("pong").await;
    }

    async fn frame(&mut self, socket: &mut Socket, code: &str) {
        let error = socket.hear_of("error").await;
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["retryable"].as_bool().unwrap(), self.documented[code].1, "{error}");
        assert!(error["message"].is_string(), "{error}");
        self.sockets.insert(code.to_owned());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_code_is_provoked_and_looks_as_documented() {
    let mut seen = Seen::new();
    who_may_not_come(&mut seen).await;
    what_cannot_be_read(&mut seen).await;
    what_makes_no_sense(&mut seen).await;
    what_is_too_much(&mut seen).await;
    what_sockets_are_told(&mut seen).await;
    a_store_that_is_busy_and_one_that_is_broken(&mut seen).await;
    agents_that_run_and_agents_that_are_copies(&mut seen).await;
    a_server_that_shuts_down(&mut seen).await;
    a_socket_that_lags(&mut seen).await;
    let elsewhere: Vec<_> = ELSEWHERE.iter().map(|(code, ..)| *code).collect();
    let elsewhere: BTreeSet<_> = &set(&elsewhere) | &set(&ONLY_ON_SOCKETS);
    assert_eq!(&seen.http | &elsewhere, codes(), "over HTTP");

    // The expected codes of a stream and a WebSocket follow from the server's description of its routes.
    let routes = described().await;
    let of = |route: &str| routes.get(route).cloned().expect("the route is described");
    let events = of("get /api/agents/{id}/events");
    assert!(10 < events.len(), "the description can be read: {events:?}");
    assert_eq!(seen.streams, &events - &set(&NOT_ON_EVENT_STREAMS), "on event streams");
    // Checks that precede every route refuse a WebSocket during its handshake.
    let everywhere = of("get /metrics");
    let same = &(&events | &of("post /api/agents/{id}/permissions/{requestId}")) | &of("get /ws");
    let on_sockets = &(&same - &everywhere) - &set(&NOT_ON_SOCKETS);
    assert_eq!(seen.sockets, &on_sockets | &set(&ONLY_ON_SOCKETS), "on WebSockets");
}

async fn who_may_not_come(seen: &mut Seen) {
    let server = TestServer::start();
    let get = |path: &str| server.request(Method::GET, path);
    let nobody = |path: &str| server.http.get(format!("http://{}{path}", server.authority()));
    seen.http(nobody("/api/agents"), "unauthenticated").await;
    seen.stream(nobody(&format!("/api/agents/{UNKNOWN}/events")), "unauthenticated").await;
    seen.http(get("/api/agents").header("origin", "http://evil.test"), "origin_not_allowed").await;
    seen.http(get("/api/agents").header("host", "evil.test"), "host_not_allowed").await;
    let many = (0..70).fold(get("/api/agents"), |request, number| request.header(format!("x-{number}"), "1"));
    seen.http(many, "headers_too_large").await;

    let events = || get(&format!("/api/agents/{UNKNOWN}/events"));
    seen.stream(events().header("origin", "http://evil.test"), "origin_not_allowed").await;
    seen.stream(events().header("host", "evil.test"), "host_not_allowed").await;
    seen.stream(events().header("content-encoding", "gzip"), "content_encoding_refused").await;
    let many = (0..70).fold(events(), |request, number| request.header(format!("x-{number}"), "1"));
    seen.stream(many, "headers_too_large").await;
    let guess = || nobody(&format!("/api/agents/{UNKNOWN}/events")).bearer_auth("0".repeat(64));
    for _ in 0..GUESSES {
        guess().send().await.unwrap();
    }
    seen.stream(guess(), "rate_limited").await;
}

/// More than `limits.failed_logins_per_minute`.
const GUESSES: usize = 15;

const UNKNOWN: &str = crate::routes::UNKNOWN;

async fn what_cannot_be_read(seen: &mut Seen) {
    let server = TestServer::start_with("[limits]\nbody_timeout_s = 1\n");
    let get = |path: &str| server.request(Method::GET, path);
    let post = |body: &'static str| {
        server.request(Method::POST, "/api/agents").header("content-type", "application/json").body(body)
    };
    let handshake = get("/ws").header("connection", "upgrade").header("upgrade", "websocket");
    seen.http(handshake.header("sec-websocket-version", "13"), "bad_request").await;
    seen.http(post("{"), "malformed_json").await;
    seen.http(post("{}").header("content-encoding", "gzip"), "content_encoding_refused").await;
    seen.http(server.request(Method::POST, "/api/agents").body("x"), "unsupported_media_type").await;
    seen.http(get(&format!("/api/agents/{UNKNOWN}/events")).header("accept", "text/html"), "not_acceptable")
        .await;
    seen.http(get("/ws"), "upgrade_required").await;
    seen.http(server.request(Method::PUT, "/api/agents"), "method_not_allowed").await;
    let mut slow = TcpStream::connect(server.authority()).await.unwrap();
    let lines = ["Content-Type: application/json", "Content-Length: 10"];
    let head = raw::request(&server, "POST", "/api/agents", &lines);
    tokio::io::AsyncWriteExt::write_all(&mut slow, head.as_bytes()).await.unwrap();
    let answer = raw::answer(&mut slow).await.unwrap();
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (seen.documented["request_timeout"].0, "request_timeout")
    );
    seen.http.insert("request_timeout".to_owned());
}

async fn what_makes_no_sense(seen: &mut Seen) {
    let server = TestServer::start();
    let get = |path: &str| server.request(Method::GET, path);
    let post = |path: &str, body: Value| server.request(Method::POST, path).json(&body);
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let events = format!("/api/agents/{id}/events");
    let unknown = format!("/api/agents/{UNKNOWN}/events");
    let answer = json!({ "cancelled": true });
    seen.http(post(&format!("/api/agents/{id}/permissions/1-1"), answer), "already_resolved").await;
    seen.http(get("/nowhere"), "not_found").await;
    seen.http(get(&unknown), "not_found").await;
    seen.stream(get(&unknown), "not_found").await;
    seen.http(get(&format!("{events}?since=x")), "cursor_malformed").await;
    seen.stream(get(&events).header("last-event-id", "x"), "cursor_malformed").await;
    seen.stream(get(&format!("{events}?raw=x")), "validation_failed").await;
    seen.http(get(&format!("{events}?since=9999")), "cursor_ahead").await;
    seen.stream(get(&events).header("last-event-id", "9999"), "cursor_ahead").await;
    seen.http(post("/api/agents", json!({ "prompt": "" })), "validation_failed").await;
    let launch = |more: Value| {
        let mut body = json!({ "type": "fake", "prompt": "{}" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        post("/api/agents", body)
    };
    seen.http(launch(json!({ "cwd": "/etc" })), "cwd_not_allowed").await;
    seen.http(launch(json!({ "type": "nope" })), "runner_unknown").await;
    seen.http(launch(json!({ "images": [{ "data": "R0lGODlh" }] })), "images_not_accepted").await;
    seen.http(get("/ws?dialect=nope"), "dialect_unknown").await;
    let keyed = |name: &str| launch(json!({ "name": name })).header("idempotency-key", "k");
    assert_eq!(keyed("a").send().await.unwrap().status(), 201);
    seen.http(keyed("b"), "idempotency_mismatch").await;
    let gone = format!("/api/agents/{id}");
    assert_eq!(server.request(Method::DELETE, &gone).send().await.unwrap().status(), 204);
    seen.http(post(&format!("{gone}/messages"), json!({ "content": "x" })), "agent_deleted").await;
}

async fn what_is_too_much(seen: &mut Seen) {
    let limits = "[limits]\nlaunches_per_minute = 3\nqueued_turns = 1\nrunning_agents = 1\nqueued_launches = 1\n\
                  connections = 1\n";
    let server = TestServer::start_with(&(fake_config() + limits));
    let launch = |prompt: &Value| {
        server
            .request(Method::POST, "/api/agents")
            .json(&json!({ "type": "fake", "prompt": prompt.to_string() }))
    };
    let large = server.request(Method::POST, "/api/agents").json(&json!({ "prompt": "x".repeat(2 << 20) }));
    seen.http(large, "payload_too_large").await;
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 5, "gate": gate, "gate_after": 1 })).await;
    server.wait_until(&id, |agent| 2 < agent["head"].as_u64().unwrap()).await;
    let message = || {
        server.request(Method::POST, &format!("/api/agents/{id}/messages")).json(&json!({ "content": "x" }))
    };
    assert_eq!(message().send().await.unwrap().status(), 202);
    seen.http(message(), "queue_full").await;
    assert_eq!(launch(&json!({})).send().await.unwrap().status(), 201, "it waits");
    seen.http(launch(&json!({})), "capacity_exhausted").await;
    seen.http(launch(&json!({})), "rate_limited").await;
    let stream = || server.request(Method::GET, &format!("/api/agents/{id}/events?keep=true"));
    let first = stream().header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(first.status(), 200);
    seen.stream(stream(), "capacity_exhausted").await;
    drop(first);
    std::fs::write(&gate, "").unwrap();
}

async fn what_sockets_are_told(seen: &mut Seen) {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsubscriptions_per_connection = 1\n"));
    let id = server.launch(&json!({ "deltas": 1 })).await;
    let other = server.launch(&json!({ "deltas": 1 })).await;
    let mut socket = Socket::open(&server, "").await;
    socket.send(Message::text("{")).await.unwrap();
    seen.frame(&mut socket, "malformed_json").await;
    let wish = |more: Value| {
        let mut wish = json!({ "agentId": id });
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        wish
    };
    seen.socket(&mut socket, "nope", &json!({}), "validation_failed").await;
    seen.socket(&mut socket, "subscribe", &json!({ "agentId": UNKNOWN }), "not_found").await;
    seen.socket(&mut socket, "subscribe", &wish(json!({ "since": "x" })), "cursor_malformed").await;
    seen.socket(&mut socket, "subscribe", &wish(json!({ "since": 9999 })), "cursor_ahead").await;
    seen.socket(&mut socket, "subscribe", &wish(json!({ "dialect": "nope" })), "dialect_unknown").await;
    server.wait_for_status(&id, "completed").await;
    let answer = wish(json!({ "requestId": "1-1", "cancelled": true }));
    seen.socket(&mut socket, "permission", &answer, "already_resolved").await;
    socket.say("subscribe", &wish(json!({}))).await;
    socket.hear_of("subscribed").await;
    seen.socket(&mut socket, "subscribe", &json!({ "agentId": other }), "capacity_exhausted").await;
    let _ = socket.send(Message::text("x".repeat((64 << 10) + 1))).await;
    assert_eq!(socket.end().await, Some(4509));
    seen.sockets.insert("payload_too_large".to_owned());
}

async fn a_store_that_is_busy_and_one_that_is_broken(seen: &mut Seen) {
    let server = TestServer::start();
    server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let mut socket = Socket::open(&server, "").await;
    let launch =
        || server.request(Method::POST, "/api/agents").json(&json!({ "type": "fake", "prompt": "{}" }));
    let database = rusqlite::Connection::open(server.data_dir().join("tokenrail.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    seen.http(launch(), "store_busy").await;
    database.execute_batch("ROLLBACK").unwrap();
    database
        .execute_batch("ALTER TABLE agents RENAME TO elsewhere; ALTER TABLE journal RENAME TO nowhere")
        .unwrap();
    seen.http(launch(), "store_failed").await;
    let stream = server.request(Method::GET, &format!("/api/agents/{UNKNOWN}/events"));
    seen.stream(stream, "store_failed").await;
    seen.socket(&mut socket, "subscribe", &json!({ "agentId": UNKNOWN }), "store_failed").await;
}

async fn agents_that_run_and_agents_that_are_copies(seen: &mut Seen) {
    let server = TestServer::start();
    let runs = server.launch(&json!({ "mode": "hang", "deltas": 1 })).await;
    // Before that, its first turn may still be queued and can be withdrawn.
    server.wait_for_status(&runs, "running").await;
    let runs = format!("/api/agents/{runs}");
    seen.http(server.request(Method::GET, &format!("{runs}/export")), "agent_active").await;
    seen.http(server.request(Method::DELETE, &format!("{runs}/turns/1")), "turn_started").await;
    seen.http(server.request(Method::GET, &format!("{runs}/changes/patch")), "changes_unavailable").await;
    seen.http(server.request(Method::DELETE, "/api/nodes/1"), "node_alive").await;
    let launch = server.request(Method::POST, "/api/agents").json(&json!({ "prompt": "{}", "node": "x" }));
    seen.http(launch, "node_unknown").await;
    let ended = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let (_, copy) = server.post(&format!("/api/agents/{ended}/replay"), &json!({ "speed": 0 })).await;
    let copy = copy["agentId"].as_str().unwrap();
    let message = server.request(Method::POST, &format!("/api/agents/{copy}/messages"));
    seen.http(message.json(&json!({ "content": "hi" })), "agent_read_only").await;
}

async fn a_server_that_shuts_down(seen: &mut Seen) {
    let config = fake_config() + "[limits]\ncancel_grace_s = 3\n";
    let started = crate::started::Started::start(&config, &[], &["--stop-agents"]);
    let server = &started.server;
    let id = server.launch(&json!({ "mode": "ignore_term" })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let mut socket = Socket::open(server, "").await;
    started.ask_to_stop();
    let launch =
        || server.request(Method::POST, "/api/agents").json(&json!({ "type": "fake", "prompt": "{}" }));
    // Until the server has noticed the signal, it works as usual.
    while launch().send().await.unwrap().status() == 201 {}
    seen.http(launch(), "shutting_down").await;
    assert_eq!(socket.end().await, Some(4401));
    seen.sockets.insert("shutting_down".to_owned());
}

/// A client that reads nothing while more lifecycle events come than the server keeps for it.
async fn a_socket_that_lags(seen: &mut Seen) {
    const NEWS_KEPT: usize = 1024;
    let limits = "[limits]\nlaunches_per_minute = 100000\nsend_timeout_s = 600\nlist_field_bytes = 1048576\n";
    let server =
        TestServer::start_with(&format!("[agents.missing]\nprogram = \"no-such-program\"\n{limits}"));
    let mut socket = Socket::open(&server, "").await;
    // Each launch sends the whole prompt in a lifecycle event. Together they are more than the buffers between server
    // and client.
    let large = "x".repeat(900 << 10);
    for _ in 0..12 {
        server.launch_as("missing", &large).await;
    }
    // At least two lifecycle events each: the agent was created, and it has failed.
    for _ in 0..NEWS_KEPT / 2 + 50 {
        server.launch_as("missing", "x").await;
    }
    seen.frame(&mut socket, "news_lagged").await;
}
