//! The resources of waiting followers and of many agents, and how a connection becomes a stream.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::full_disk::until;
use crate::harness::{PATIENCE, TestServer, fake_config, text_of};

/// Followers of each kind that are measured, and those before them, which take the one-time allocations.
const IDLE: u64 = 1000;
const BEFORE: u64 = 50;
/// The limit for one follower. Measured: 3 KiB, 6 KiB and 4 KiB. While HTTP's dispatcher kept the connection: 12, 22
/// and 15 KiB.
const IDLE_BYTES: u64 = 8 << 10;

const AGENTS: usize = 60;
/// The maximum number of threads of a server, however many agents it runs.
const THREADS: usize = 40;

/// A follower of a silent agent takes a socket and a few KiB: HTTP's dispatcher, its buffers and the request are freed.
#[tokio::test]
async fn who_only_waits_takes_a_few_kib() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 10 })).await;
    let events =
        format!("GET /api/agents/{id}/events?keep=true&since=3 HTTP/1.1\r\nAccept: text/event-stream\r\n");
    let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 3 } }).to_string();
    let gate = server.folder.path().join("gate");
    let running = server.launch(&json!({ "deltas": 10, "gate": gate, "gate_after": 5 })).await;
    let resumed = format!(
        "POST /v1/runs/run-{running}-1/stream HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    );
    let kinds = [
        (&*events, Vec::new(), "result"),
        (UPGRADE, masked(&subscribe), "agent:complete"),
        (&*resumed, b"{}".to_vec(), "\"content\":\"4 \""),
    ];
    // All of them stay connected. Otherwise one kind would reuse the memory that the other has freed.
    let mut waiting = Vec::new();
    for (head, said, heard) in kinds {
        let mut before = 0;
        for count in 0..BEFORE + IDLE {
            if count == BEFORE {
                before = resident_bytes(&server);
            }
            let mut client = Raw::ask(&server, head, &said).await;
            client.hear(heard).await;
            waiting.push(client);
        }
        let each = resident_bytes(&server).saturating_sub(before) / IDLE;
        println!("{heard}: {each} bytes");
        assert!(each < IDLE_BYTES, "{each} bytes for each who waits, of {IDLE_BYTES}");
    }
}

/// The server's threads get a processor soon after they are woken, even from its own checkpoints. Agents do not take
/// over its short time slice.
#[tokio::test]
async fn the_server_has_short_time_slices_and_its_agents_have_the_usual_ones() {
    let Some(usual) =
        sched_value(Path::new("/proc/self/sched"), "se.slice").filter(|_| has_slices_of_threads())
    else {
        println!("NOT RUN: this kernel does not set or report the time slice of a thread");
        return;
    };
    let script = "[agents.text]\nprogram = \"/bin/cat\"\nargs = [\"/proc/self/sched\"]\nformat = \"text\"\n";
    let server = TestServer::start_with(&format!("{}{script}", fake_config()));
    // "memory" has nothing to do with agents or clients, and begins before the configuration is read.
    let threads = scheduled(&server).into_iter().filter(|(name, ..)| name != "memory");
    let (checkpoints, tokens): (Vec<_>, Vec<_>) = threads.partition(|(name, ..)| name == "checkpoint");
    let (_, _, usual_priority) = tokens[0];
    // The first thread only waits. It was set, too.
    assert!(
        1 < tokens.len() && tokens.iter().all(|token| (token.1, token.2) == (200_000, usual_priority)),
        "{tokens:?}"
    );
    assert_eq!(checkpoints.len(), 1);
    until(async || {
        let gives_way = ("checkpoint".to_owned(), usual, usual_priority + 4);
        scheduled(&server).contains(&gives_way)
    })
    .await;

    let (_, launched) = server.post("/api/agents", &json!({ "type": "text", "prompt": "go" })).await;
    let id = launched["id"].as_str().unwrap();
    server.wait_for_status(id, "completed").await;
    let printed = server.folder.path().join("sched");
    fs::write(&printed, text_of(&server.events(id).await)).unwrap();
    assert_eq!(sched_value(&printed, "se.slice"), Some(usual));
}

/// Whether this is Linux 6.12 or later.
fn has_slices_of_threads() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split(['.', '-']).take(2).map(|number| number.parse().unwrap()).collect();
    vec![6, 12] <= numbers
}

/// The name, the time slice in nanoseconds and the priority of each thread. A larger number is a lower priority.
fn scheduled(server: &TestServer) -> Vec<(String, u64, u64)> {
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    threads
        .filter_map(|thread| {
            let thread = thread.unwrap().path();
            let name = fs::read_to_string(thread.join("comm")).ok()?.trim().to_owned();
            let of = |value| sched_value(&thread.join("sched"), value);
            Some((name, of("se.slice")?, of("prio")?))
        })
        .collect()
}

/// A value in a file like `/proc/<pid>/sched`. `None` if the kernel does not report it, or the thread has ended.
fn sched_value(sched: &Path, name: &str) -> Option<u64> {
    let told = fs::read_to_string(sched).ok()?;
    let value = told.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    Some(value.rsplit(' ').next()?.parse().unwrap())
}

/// Frames in the same packet as the request for a WebSocket are not lost when the connection is handed over.
#[tokio::test]
async fn what_is_said_together_with_the_handshake_is_heard() {
    let server = TestServer::start();
    let ping = json!({ "type": "ping", "payload": {} }).to_string();
    let mut said = masked(&ping);
    // More than the dispatcher reads at once.
    for _ in 0..40 {
        said.extend(masked(&format!("{ping}{}", " ".repeat(1000))));
    }
    let mut client = Raw::ask(&server, UPGRADE, &said).await;
    client.hear("101 Switching Protocols").await;
    for _ in 0..41 {
        client.hear("\"pong\"").await;
    }
}

/// An event stream is the last response of its connection, and says so. A request after it is not handled, because its
/// client could not get a response.
#[tokio::test]
async fn behind_an_event_stream_no_request_is_dealt_with() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 10 })).await;
    let body = json!({ "type": "fake", "prompt": "{}" }).to_string();
    let launch = format!(
        "POST /api/agents HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.authority(),
        server.token(),
        body.len()
    );
    // The dispatcher would read ahead a request without a body.
    let delete = format!(
        "DELETE /api/agents/{id} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.authority(),
        server.token()
    );
    let events = format!("GET /api/agents/{id}/events?since=0 HTTP/1.1\r\nAccept: text/event-stream\r\n");
    let resumed = format!("POST /v1/runs/run-{id}-1/stream HTTP/1.1\r\n");
    for (stream, behind) in [(&events, &launch), (&events, &delete), (&resumed, &launch), (&resumed, &delete)]
    {
        let mut client = Raw::ask(&server, stream, behind.as_bytes()).await;
        let heard = client.rest().await;
        assert!(heard.contains("connection: close\r\n"), "{heard}");
        assert!(heard.ends_with("\r\n0\r\n\r\n"), "it ends as chunks end: {heard}");
        assert_eq!(heard.matches("HTTP/1.1 ").count(), 1, "{heard}");
        let agents = server.get("/api/agents").await;
        assert_eq!(agents.as_array().map(Vec::len), Some(1), "{behind}: {agents}");
    }
}

/// The server notices a disconnect immediately, and not only when it writes to the client.
#[tokio::test]
async fn who_goes_is_noticed_at_once() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 10 })).await;
    let events =
        format!("GET /api/agents/{id}/events?keep=true&since=3 HTTP/1.1\r\nAccept: text/event-stream\r\n");
    let (mut stream, mut socket) =
        (Raw::ask(&server, &events, b"").await, Raw::ask(&server, UPGRADE, b"").await);
    stream.hear("result").await;
    socket.hear("101").await;
    assert_eq!(open_streams(&server).await, 2);
    drop((stream, socket));
    let started = Instant::now();
    while open_streams(&server).await != 0 {
        assert!(started.elapsed() < PATIENCE, "they are waited for");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The number of threads is limited: many agents need only a few more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_do_not_grow_with_agents() {
    let limits = "[limits]\nlaunches_per_minute = 10000\nrunning_agents = 100\n";
    let server = TestServer::start_with(&(fake_config() + limits));
    let gate = server.folder.path().join("gate");
    let mut most = 0;
    let mut ids = Vec::new();
    for _ in 0..AGENTS {
        ids.push(server.launch(&json!({ "deltas": 10, "gate": gate, "gate_after": 5 })).await);
        most = most.max(threads(&server));
    }
    for id in &ids {
        server.wait_until(id, |agent| 5 <= agent["head"].as_u64().unwrap_or_default()).await;
        most = most.max(threads(&server));
    }
    fs::write(&gate, "").expect("opens the gate");
    for id in &ids {
        server.wait_for_status(id, "completed").await;
        most = most.max(threads(&server));
    }
    println!("{most} threads");
    assert!(most <= THREADS, "{most} threads of {THREADS}");
}

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A client that sends exactly the given bytes.
struct Raw {
    socket: TcpStream,
    heard: Vec<u8>,
}

impl Raw {
    /// Sends a request, and `behind` in the same packet.
    async fn ask(server: &TestServer, head: &str, behind: &[u8]) -> Self {
        let mut socket = TcpStream::connect(server.authority()).await.expect("a connection");
        let (host, token) = (server.authority(), server.token());
        let head = format!("{head}Host: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        socket.write_all(&[head.as_bytes(), behind].concat()).await.expect("sent");
        Self { socket, heard: Vec::new() }
    }

    /// Waits until this text has come, and discards everything up to its end.
    async fn hear(&mut self, what: &str) {
        loop {
            let found = self.heard.windows(what.len()).position(|bytes| bytes == what.as_bytes());
            if let Some(at) = found {
                self.heard.drain(..at + what.len());
                return;
            }
            let read = timeout(PATIENCE, self.socket.read_buf(&mut self.heard)).await;
            let read = read.unwrap_or_else(|_| panic!("{what:?} does not come")).expect("bytes");
            assert!(0 < read, "{what:?} has not come: {}", String::from_utf8_lossy(&self.heard));
        }
    }

    async fn rest(&mut self) -> String {
        let end = timeout(PATIENCE, self.socket.read_to_end(&mut self.heard)).await;
        end.expect("an end").expect("bytes");
        String::from_utf8_lossy(&self.heard).into_owned()
    }
}

/// A text frame of a client, masked with zeros.
fn masked(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("short");
    let head = match length {
        0..126 => vec![0x81, 0x80 | length as u8],
        _ => [&[0x81, 0xfe][..], &length.to_be_bytes()].concat(),
    };
    [&head, &[0; 4][..], text.as_bytes()].concat()
}

fn resident_bytes(server: &TestServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a field");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

fn threads(server: &TestServer) -> usize {
    fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs").count()
}

async fn open_streams(server: &TestServer) -> u64 {
    let metrics = server.request(Method::GET, "/metrics").send().await.expect("an answer");
    let metrics = metrics.text().await.expect("text");
    let line = metrics.lines().find_map(|line| line.strip_prefix("tokenrail_open_streams "));
    line.and_then(|count| count.parse().ok()).expect("a number")
}
