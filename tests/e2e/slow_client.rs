//! A client that stops reading affects only itself.

mod senders;
mod stalled;

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use self::stalled::{Kind, Stalled, ask};
use crate::follower::{Follower, Place, Way};
use crate::harness::{TestServer, fake_config, numbers, text_of};

/// The time limit for steps that should be quick. The machine may be busy.
const LONG: Duration = Duration::from_mins(5);
/// After this time, the server has returned what a burst has left, even after several tries in vain.
const RETURNED: Duration = Duration::from_mins(2);
const DELTAS: u64 = 100_000;
/// This many clients of each kind read nothing.
const STALLED: usize = 10;
/// The clients that do read.
const READERS: [Way; 5] = [Way::WebSocket, Way::Sse, Way::Rest, Way::SocketIo, Way::Sse];
/// The memory that a stalled client may take: the page at which it has stopped (up to 512 events, as they were written
/// to it, about 200 KB here), and the buffers of its connection.
const STALLED_BYTES: u64 = 1 << 20;
/// What an agent takes by itself, with or without clients: its newest 4096 events.
const AGENT_BYTES: u64 = 6 << 20;
/// What one kind of client does not read, if it is alone: about 8 MB for each client.
const OWED_DELTAS: u64 = 20_000;
/// A long turn: 60 MiB of output, of which 24 MB are text.
const LONG_TURN_MIB: usize = 60;
const LONG_TURN_DELTA_BYTES: usize = 300;
/// A number in the middle of its stream.
const LATE: u64 = 40_000;

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
    let most = AGENT_BYTES + (Kind::ALL.len() * STALLED) as u64 * STALLED_BYTES;
    let grown = held_more(server.pid(), before, most).await;
    assert!(stalled.pollers.try_join_next().is_none(), "they have sessions as long as they poll");
    println!("{} KiB more", grown / 1024);
    assert!(grown < most, "{grown} bytes more, and {most} are allowed");
    // Those that poll are connected now and then.
    assert!(
        (Kind::ALL.len() - 1) * STALLED <= connections(&place),
        "they still wait for what they do not take"
    );
    drop(stalled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_each_kind_that_stop_reading_hold_only_a_page() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 3600\n"));
    let place = Place::of(&server);
    let old = server.launch(&json!({ "deltas": OWED_DELTAS })).await;
    server.wait_within(LONG, &old, |agent| agent["status"] == "completed").await;
    for kind in Kind::ALL {
        // The first client pays what such a stream costs once.
        let _first = owed_by_kind(&server, &place, kind, 1, &old).await;
        let before = resident_bytes(server.pid());
        let mut stalled = owed_by_kind(&server, &place, kind, STALLED, &old).await;
        stalled.have_begun().await;
        let most = AGENT_BYTES + STALLED as u64 * STALLED_BYTES;
        let grown = held_more(server.pid(), before, most).await;
        println!("{kind:?}: {} KiB more", grown / 1024);
        assert!(grown < most, "{kind:?}: {grown} bytes more, and {most} are allowed");
    }
}

/// Clients of one kind that do not read what an agent says to its end.
async fn owed_by_kind(server: &TestServer, place: &Place, kind: Kind, count: usize, old: &str) -> Stalled {
    let gate = server.folder.path().join(format!("gate-{kind:?}-{count}"));
    let id = server.launch(&json!({ "deltas": OWED_DELTAS, "gate": gate, "gate_after": 10 })).await;
    server.wait_within(LONG, &id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let mut stalled = Stalled::default();
    for _ in 0..count {
        stalled.open_one(kind, place, &id, old).await;
    }
    std::fs::write(&gate, "").unwrap();
    server.wait_within(LONG, &id, |agent| agent["status"] == "completed").await;
    stalled
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
        let most = STALLED as u64 * STALLED_BYTES;
        let grown = held_more(server.pid(), before, most).await;
        println!("{path}: {} KiB more", grown / 1024);
        assert!(grown < most, "{grown} bytes more, and {most} are allowed: {path}");
    }
}

/// A client that has received the first bytes of what it does not have yet, and reads nothing.
async fn begun(place: &Place, path: &str) -> TcpStream {
    has_begun(ask(place, path, "text/event-stream").await).await
}

/// Waits until a client has received the first bytes of a stream.
async fn has_begun(stream: TcpStream) -> TcpStream {
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

/// How much more memory the server holds than before. A burst leaves free memory behind, which the server returns to
/// the system a few seconds later; it cannot return what it still needs for the clients.
async fn held_more(pid: u32, before: u64, most: u64) -> u64 {
    let started = tokio::time::Instant::now();
    loop {
        let grown = resident_bytes(pid).saturating_sub(before);
        if grown < most || RETURNED < started.elapsed() {
            return grown;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
