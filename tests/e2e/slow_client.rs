//! A client that stops reading affects only itself.

use std::time::Duration;

use futures_util::SinkExt as _;
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Follower, Place, Socket, Way, connect, connect_to};
use crate::harness::{TestServer, fake_config, numbers, text_of};

/// The time limit for steps that should be quick. The machine may be busy.
const LONG: Duration = Duration::from_mins(5);
const DELTAS: u64 = 100_000;
/// This many clients of each kind read nothing: WebSockets, Socket.IO clients, event streams, Durable Streams,
/// responses, chat completions, threads of AG-UI, downloads of a page, tools and transcripts of MCP. And so many
/// Socket.IO clients poll far too seldom.
const STALLED: usize = 10;
const KINDS: usize = 9;
/// How long these wait between two polls.
const SELDOM: Duration = Duration::from_secs(5);
/// The clients that do read.
const READERS: [Way; 5] = [Way::WebSocket, Way::Sse, Way::Rest, Way::SocketIo, Way::Sse];
/// The memory that a stalled client may take: the stretch of history at which it has stopped (4096 events, as written
/// to it). Its unread data is about 40 MB.
const STALLED_BYTES: u64 = 3 << 20;
/// A long turn: 60 MiB of output, of which 24 MB are text.
const LONG_TURN_MIB: usize = 60;
const LONG_TURN_DELTA_BYTES: usize = 300;
/// A number in the middle of its stream.
const LATE: u64 = 40_000;
/// The receive buffer of a client that reads nothing: as small as the kernel allows.
const RECEIVE_BUFFER_BYTES: u32 = 4096;
/// An MCP client sends this many requests, one after the other, and reads no response. Each has 200 kB or more, so that
/// together they do not fit into the buffers of a connection.
const MCP_REQUESTS: usize = 120;
const MCP_BYTES: usize = 200_000;

/// The server disconnects no client in this test, however slow the machine is. So it holds the stalled clients' data to
/// the end, and the other readers must still get everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stop_reading_disturb_nobody() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 3600\n"));
    let place = Place::of(&server);
    // Stream the same output twice, so that the normal cost of a flood is paid before the stalled clients connect.
    let (old, _) = stream(&server, &place, None).await;
    let before = resident_bytes(server.pid());
    let (_, mut stalled) = stream(&server, &place, Some(&old)).await;
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    let most = ((KINDS + 1) * STALLED) as u64 * STALLED_BYTES;
    assert!(stalled.pollers.try_join_next().is_none(), "they have sessions as long as they poll");
    assert!(grown < most, "{grown} bytes more, and {most} are allowed");
    assert!(KINDS * STALLED <= connections(&place), "they still wait for what they do not take");
    drop(stalled);
}

/// To find what these clients do not have yet, the server goes through what they have. It must not keep it. The last
/// event of a response repeats all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_resume_late_and_stop_reading_hold_only_a_page() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 3600\n"));
    let place = Place::of(&server);
    let script =
        json!({ "mode": "flood", "mib": LONG_TURN_MIB, "delta_bytes": LONG_TURN_DELTA_BYTES, "deltas": 0 });
    let id = server.launch(&script).await;
    let agent = server.wait_within(LONG, &id, |agent| agent["status"] == "completed").await;
    assert!(LATE + LATE / 4 < agent["head"].as_u64().unwrap(), "{agent}");
    let chat = format!("{}?stream=true&starting_after={LATE}", completion(&id));
    let thread = format!("/ag-ui/threads/{id}?after={LATE}.1");
    let whole = response(&id);
    let events = count_events(&server, &format!("{whole}?stream=true")).await;
    let [late, last] = [LATE, events - 2].map(|after| format!("{whole}?stream=true&starting_after={after}"));
    for path in [chat, thread, late, last, whole] {
        // The first client pays what such a stream costs once.
        drop(begun(&place, &path).await);
        let before = resident_bytes(server.pid());
        let mut stalled = Vec::new();
        for _ in 0..STALLED {
            stalled.push(begun(&place, &path).await);
        }
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        let most = STALLED as u64 * STALLED_BYTES;
        assert!(grown < most, "{grown} bytes more, and {most} are allowed: {path}");
    }
}

/// A client that has received the first bytes of what it does not have yet, and reads nothing.
async fn begun(place: &Place, path: &str) -> TcpStream {
    let stream = ask(place, path, "text/event-stream").await;
    let (started, mut received) = (tokio::time::Instant::now(), [0; 2048]);
    loop {
        let length = stream.peek(&mut received).await.unwrap();
        if received[..length].windows(6).any(|bytes| bytes == b"data: " || bytes == b"{\"id\":") {
            return stream;
        }
        assert!(started.elapsed() < LONG, "{}", String::from_utf8_lossy(&received[..length]));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many events a stream has, from its beginning to its end.
async fn count_events(server: &TestServer, path: &str) -> u64 {
    let begin = b"\n\nevent: ";
    let mut stream = server.request(Method::GET, path).send().await.unwrap();
    let (mut count, mut received) = (1, Vec::new());
    while let Some(chunk) = stream.chunk().await.unwrap() {
        received.extend_from_slice(&chunk);
        count += received.windows(begin.len()).filter(|bytes| *bytes == begin).count() as u64;
        received.drain(..received.len().saturating_sub(begin.len() - 1));
    }
    count
}

/// The path of the response that is the first turn of an agent.
fn response(id: &str) -> String {
    format!("/openai/v1/responses/resp_{}00000001", id.replace('-', ""))
}

/// The path of the chat completion that is the first turn of an agent.
fn completion(id: &str) -> String {
    format!("/openai/v1/chat/completions/chatcmpl-{}00000001", id.replace('-', ""))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stop_reading_are_cut_and_miss_nothing_when_they_resume() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 5\n"));
    let place = Place::of(&server);
    let old = server.launch(&json!({ "deltas": DELTAS })).await;
    server.wait_within(LONG, &old, |agent| agent["status"] == "completed").await;
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": DELTAS, "gate": gate, "gate_after": 10 })).await;
    server.wait_within(LONG, &id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let mut stalled = Stalled::open(&place, &id, &old).await;
    stalled.pollers.shutdown().await;
    std::fs::write(&gate, "").unwrap();

    let started = tokio::time::Instant::now();
    while 0 < connections(&place) {
        assert!(started.elapsed() < LONG, "the stalled clients are never cut");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for download in &mut stalled.downloads {
        let mut body = Vec::new();
        let cut = download.read_to_end(&mut body).await.is_err();
        assert!(cut || !body.ends_with(b"]"), "it had not taken all of it");
    }
    drop((stalled.followers, stalled.streams));
    server.wait_within(LONG, &id, |agent| agent["status"] == "completed").await;
    let mut resumed = Follower::new(place.clone(), &id);
    resumed.read_however_often_it_is_cut(Way::Sse, 100).await;
    resumed.read_however_often_it_is_cut(Way::SocketIo, 50_000).await;
    resumed.read_however_often_it_is_cut(Way::WebSocket, usize::MAX >> 1).await;
    assert_eq!(text_of(&resumed.events()), numbers(DELTAS));
    let mut pages = Follower::new(place, &id);
    pages.read_however_often_it_is_cut(Way::Rest, usize::MAX >> 1).await;
    assert!(resumed.bytes() == pages.bytes(), "the same bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_does_not_keep_the_server_from_stopping() {
    // Only the stop itself ends a connection.
    let limits = "[limits]\nsend_timeout_s = 3600\nshutdown_timeout_s = 3600\n";
    let server = TestServer::start_with(&(fake_config() + limits));
    let place = Place::of(&server);
    let id = server.launch(&json!({ "deltas": DELTAS })).await;
    server.wait_within(LONG, &id, |agent| agent["status"] == "completed").await;
    let path = format!("/api/agents/{id}/events?keep=true&since=0");
    let stalled = ask(&place, &path, "text/event-stream").await;
    let started = tokio::time::Instant::now();
    while connections(&place) == 0 {
        assert!(started.elapsed() < LONG, "it is never taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    while !has_ended(server.pid()) {
        assert!(started.elapsed() < LONG, "it waits for a client that does not read");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stalled);
}

/// Whether a process has ended, even if its status has not been read yet.
fn has_ended(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// Clients that have requested everything, and read nothing.
#[derive(Default)]
struct Stalled {
    followers: Vec<(Socket, Socket)>,
    streams: Vec<TcpStream>,
    downloads: Vec<TcpStream>,
    pollers: JoinSet<()>,
}

impl Stalled {
    /// `id` is being streamed, and `old` can already be downloaded.
    async fn open(place: &Place, id: &str, old: &str) -> Self {
        let mut stalled = Self::default();
        for _ in 0..STALLED {
            let mut socket = connect(place).await.unwrap();
            let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
            socket.send(Message::text(subscribe.to_string())).await.unwrap();
            let mut io = connect_to(place, "/socket.io/?EIO=4&transport=websocket").await.unwrap();
            let auth = json!({ "token": place.token, "since": { id: 0 } });
            io.send(Message::text(format!("40{auth}"))).await.unwrap();
            stalled.followers.push((socket, io));
            for path in [
                format!("/api/agents/{id}/events?since=0"),
                format!("/v1/stream/agents/{id}/events?offset=-1&live=sse"),
                format!("{}?stream=true", response(id)),
                format!("{}?stream=true", completion(id)),
                format!("/ag-ui/threads/{id}"),
            ] {
                stalled.streams.push(ask(place, &path, "text/event-stream").await);
            }
            stalled.streams.push(ask_tools(place, id, old).await);
            let path = format!("/api/agents/{old}/events?raw=true");
            stalled.downloads.push(ask(place, &path, "application/json").await);
            let poller = poller(place, id).await;
            stalled.pollers.spawn(poll_seldom(place.clone(), poller));
        }
        stalled
    }
}

/// A Socket.IO client that has asked for everything. Returns the path of its polls.
async fn poller(place: &Place, id: &str) -> String {
    let path = "/socket.io/?EIO=4&transport=polling";
    let open = place.http.get(format!("http://{}{path}", place.authority)).bearer_auth(&place.token);
    let open = open.send().await.unwrap().text().await.unwrap();
    let open: Value = serde_json::from_str(open.strip_prefix('0').unwrap()).unwrap();
    let path = format!("http://{}{path}&sid={}", place.authority, open["sid"].as_str().unwrap());
    let connect = format!("40{}", json!({ "since": { id: 0 } }));
    let connect = place.http.post(&path).bearer_auth(&place.token).body(connect);
    assert_eq!(connect.send().await.unwrap().status(), 200);
    path
}

async fn poll_seldom(place: Place, path: String) {
    loop {
        let poll = place.http.get(&path).bearer_auth(&place.token).send().await.unwrap();
        assert_eq!(poll.status(), 200, "{}", poll.text().await.unwrap());
        tokio::time::sleep(SELDOM).await;
    }
}

async fn ask(place: &Place, path: &str, accept: &str) -> TcpStream {
    let mut stream = narrow(place).await;
    let head = head(place, "GET", path, accept);
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    stream
}

/// A connection that takes as little as possible.
async fn narrow(place: &Place) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
    socket.connect(place.authority.parse().unwrap()).await.unwrap()
}

fn head(place: &Place, method: &str, path: &str, accept: &str) -> String {
    let Place { authority, token, .. } = place;
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\naccept: {accept}\r\n"
    )
}

/// An MCP client that follows `id` with notifications of its progress, and then asks for all of `old` again and again.
async fn ask_tools(place: &Place, id: &str, old: &str) -> TcpStream {
    let tool = |name: &str, agent: &str| {
        let arguments = json!({ "agent_id": agent, "max_bytes": MCP_BYTES });
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": 1 } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let uri = format!("tokenrail://agents/{old}/transcript");
    let transcript =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": uri } });
    let large = [tool("wait_for_agent", old), tool("read_agent", old), transcript];
    let head = head(place, "POST", "/mcp", "application/json, text/event-stream");
    let mut stream = narrow(place).await;
    for body in [tool("wait_for_agent", id)].iter().chain(large.iter().cycle().take(MCP_REQUESTS)) {
        let body = body.to_string();
        let length = body.len();
        let request =
            format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    stream
}

/// Streams to readers that read, and returns the agent's id. If there is an older agent to download, stalled clients
/// connect too.
async fn stream(server: &TestServer, place: &Place, old: Option<&str>) -> (String, Stalled) {
    let gate = server.folder.path().join(format!("gate-{}", old.is_some()));
    let id = server.launch(&json!({ "deltas": DELTAS, "gate": gate, "gate_after": 10 })).await;
    server.wait_within(LONG, &id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let stalled = match old {
        Some(old) => Stalled::open(place, &id, old).await,
        None => Stalled::default(),
    };
    std::fs::write(&gate, "").unwrap();
    let readers = READERS.map(|way| {
        let mut reader = Follower::new(place.clone(), &id);
        // Each reader has its own task: one with much to read must not delay the requests of another.
        Handle::current().spawn(async move {
            assert!(reader.read(way, usize::MAX >> 1).await, "{way:?}: who reads is not disturbed");
            reader
        })
    });
    let readers: Vec<_> = join_all(readers).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(text_of(&readers[0].events()), numbers(DELTAS));
    assert!(readers.iter().all(|reader| reader.bytes() == readers[0].bytes()), "all see the same");
    (id, stalled)
}

/// The connections of the server, as the kernel lists them.
fn connections(place: &Place) -> usize {
    let port: u16 = place.authority.rsplit(':').next().unwrap().parse().unwrap();
    let local = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Established, or ended by the client but not yet by the server.
    words.filter(|words| words[1] == local && matches!(words[3], "01" | "08")).count()
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
