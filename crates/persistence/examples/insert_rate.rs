//! How many events the store takes a second: `cargo run --release -p tokenrail-persistence --example insert_rate`.
//!
//! Each agent appends batch after batch, waiting for each, as the server does.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement for the terminal")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokenrail_domain::{Event, Sequence};
use tokenrail_persistence::{SqliteConfig, SqliteStore, Synchronous};
use tokenrail_ports::testing::samples::{Scribe, launch, page_of, text_delta};
use tokenrail_ports::{Append, IAgentRepository, IJournal};

const RUN: Duration = Duration::from_secs(2);

const LINE: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"token "}},"session_id":"2ed47069-625f-46a8-8039-fad1b050e0f2","parent_tool_use_id":null,"uuid":"9ff3e1c0-aded-4f78-8ba2-2d40ca3d7221","thinking_display":"updates"}"#;

#[tokio::main]
async fn main() {
    println!("{:8} {:>7} {:>6} {:>12} {:>10}", "commit", "agents", "batch", "events/s", "appends/s");
    for synchronous in [Synchronous::Normal, Synchronous::Full] {
        for (agents, batch) in [(1, 1), (1, 64), (1, 512), (16, 1), (16, 64), (100, 1), (100, 8)] {
            let appends = measure(synchronous, agents, batch).await;
            let (name, events) = (format!("{synchronous:?}"), appends * batch as f64);
            println!("{name:8} {agents:7} {batch:6} {events:12.0} {appends:10.0}");
        }
    }
    reading().await;
}

/// Appends per second.
async fn measure(synchronous: Synchronous, agents: u8, batch: usize) -> f64 {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let store = open(folder.path(), synchronous);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..agents {
        tasks.spawn(one_agent(store.clone(), n, batch));
    }
    let appends: usize = tasks.join_all().await.into_iter().sum();
    store.close().await;
    appends as f64 / RUN.as_secs_f64()
}

async fn one_agent(store: SqliteStore, n: u8, batch: usize) -> usize {
    let mut scribe = started(&store, n).await;
    let (begin, mut appends) = (Instant::now(), 0);
    while begin.elapsed() < RUN {
        store.append(lines(&mut scribe, batch)).await.expect("it is saved");
        appends += 1;
    }
    appends
}

async fn reading() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let store = open(folder.path(), Synchronous::Normal);
    let mut scribe = started(&store, 1).await;
    for _ in 0..200 {
        store.append(lines(&mut scribe, 512)).await.expect("it is saved");
    }
    let (begin, mut after) = (Instant::now(), Sequence::START);
    loop {
        let page = store.read(launch(1).0.id, after, page_of(4096)).await.expect("it is read");
        let Some(last) = page.last() else { break };
        after = last.sequence;
    }
    println!("read: {:.0} events/s", after.0 as f64 / begin.elapsed().as_secs_f64());
    store.close().await;
}

fn open(folder: &std::path::Path, synchronous: Synchronous) -> SqliteStore {
    SqliteStore::open(SqliteConfig { synchronous, ..SqliteConfig::new(folder) }).expect("it opens")
}

async fn started(store: &SqliteStore, n: u8) -> Scribe {
    let (agent, turn) = launch(n);
    let mut scribe = Scribe::new(&agent);
    store.create(agent, turn.clone().into(), None).await.expect("it is saved");
    store.append(scribe.start(&turn)).await.expect("it is saved");
    scribe
}

fn lines(scribe: &mut Scribe, batch: usize) -> Append {
    let append = scribe.say(vec![text_delta(0, "token "); batch]);
    let raw = Some(Bytes::from_static(LINE.as_bytes()));
    let events: Vec<Event> =
        append.events.iter().map(|event| Event { raw: raw.clone(), ..event.clone() }).collect();
    Append { events: Arc::from(events), ..append }
}
