//! A simulated power loss: the disk keeps what the server flushed, and any part of what it wrote but did not flush.
//!
//! The test records one real server: every write, flush and name change of its database, and everything that it sent to
//! clients. At chosen points it applies each kind of [`Loss`], and a new store reads what is left. In the mode `full`,
//! everything that any client was sent must still be there. In both modes the database must be sound, and contain the
//! beginning of every journal.

mod disk;
mod tape;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::corruption::{Said, read};
use crate::Chance;
use crate::client::{Client, finished};
use crate::follower::Way;
use crate::harness::{PATIENCE, TestServer, fake_config};
use crate::judge;
use disk::{Disk, Loss};
use tape::{Call, Step};

/// Power losses in each mode, unless `TOKENRAIL_TEST_POWER_LOSSES` is set.
const LOSSES: usize = 1200;
/// How many results are checked at the same time.
const AT_ONCE: usize = 4;
const AGENT_ID: &str = "\"agentId\":\"";
const NUMBER: &str = "\",\"sequenceNumber\":";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_shown_survives_a_loss_of_power_by_strace() {
    let taped = taped("full").await;
    let tally = lose_power(&taped).await;
    println!("full: {tally:?}");
    assert_eq!(tally.forgetful, 0, "something that was shown is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_synchronous_normal_the_end_may_be_lost_and_nothing_else_by_strace() {
    let taped = taped("normal").await;
    let tally = lose_power(&taped).await;
    println!("normal: {tally:?}");
    assert!(0 < tally.forgetful, "a disk that forgets was not noticed");
    assert_eq!(tally.forgetful_without_loss, 0, "the death of the server alone loses nothing");
}

/// The recording of one server, from its start to its stop.
struct Taped {
    folder: String,
    steps: Vec<Step>,
    /// Everything that was saved at its end.
    truth: Arc<Vec<Said>>,
}

#[derive(Debug, Default)]
struct Tally {
    losses: usize,
    /// Losses after which something was missing that a client had been sent.
    forgetful: usize,
    /// The number of these after [`Loss::Nothing`].
    forgetful_without_loss: usize,
}

async fn taped(synchronous: &str) -> Taped {
    let settings = format!("[storage]\nsynchronous = \"{synchronous}\"\n[limits]\nwal_bytes = 1048576\n");
    let mut server = TestServer::start_with(&(fake_config() + &settings));
    // The first start only reserved the port. Remove its data.
    server.stop();
    fs::remove_dir_all(server.data_dir()).unwrap();
    let tape = server.folder.path().join("tape");
    let plain = server.command(&["serve", "--log", "warn"]);
    let mut command = Command::new("strace");
    command.args(tape::OPTIONS).arg("-o").arg(&tape).arg(plain.get_program()).args(plain.get_args());
    // The server would set this by restarting itself, and strace would lose it then.
    command.env("MALLOC_ARENA_MAX", "2").current_dir(server.folder.path()).stdin(Stdio::null());
    server.start_by(command).expect("it serves");
    story(&server).await;
    server.stop();
    let truth = Arc::new(read(&server.data_dir()).await.expect("it is sound"));
    // strace may still write its last lines after the server has ended.
    let started = std::time::Instant::now();
    let mut text = fs::read_to_string(&tape).unwrap();
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let now = fs::read_to_string(&tape).unwrap();
        if now.len() == text.len() && now.ends_with('\n') {
            break;
        }
        assert!(started.elapsed() < PATIENCE);
        text = now;
    }
    Taped { folder: server.data_dir().to_str().unwrap().to_owned(), steps: tape::read(&text), truth }
}

/// Turns that are followed live, a checkpoint of the idle log, and a log that is checkpointed while it is written.
async fn story(server: &TestServer) {
    let client = Client::of(server);
    let id = client.launch(&json!({ "deltas": 120, "pace_us": 2000 }), "first").await;
    let follow = |way| client.follow(&id, way, 3, &server.folder.path().join(format!("{way:?}")));
    let readers = [Way::Sse, Way::WebSocket, Way::Rest].map(follow);
    let other = client.launch(&json!({ "mode": "tool", "deltas": 30 }), "other").await;
    client.say(&id, &json!({ "deltas": 60, "pace_us": 1000 }), "second").await;
    server.wait_for_status(&other, "completed").await;
    server.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
    let log = server.data_dir().join("tokenrail.db-wal");
    let started = std::time::Instant::now();
    while 0 < fs::metadata(&log).unwrap().len() {
        assert!(started.elapsed() < PATIENCE, "the log is never emptied");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    client.say(&id, &json!({ "deltas": 150, "pace_us": 1000 }), "third").await;
    for reader in readers {
        finished(reader).await;
    }
}

async fn lose_power(taped: &Taped) -> Tally {
    let losses = std::env::var("TOKENRAIL_TEST_POWER_LOSSES").map_or(LOSSES, |count| count.parse().unwrap());
    let points = points(&taped.steps, losses / Loss::ALL.len());
    let (mut disk, mut chance, mut tally) = (Disk::new(&taped.folder), Chance(11), Tally::default());
    let mut shown = Shown::default();
    let mut judging = JoinSet::new();
    // The calls that begin at a line, and the flushes that return at it.
    let mut steps = taped.steps.iter().peekable();
    let mut flushes: BTreeMap<usize, Vec<(&str, usize)>> = BTreeMap::new();
    for step in &taped.steps {
        if let Call::Flush { path } = &step.call {
            flushes.entry(step.done).or_default().push((path, step.begun));
        }
    }
    let end = points.last().copied().unwrap_or_default();
    for line in 0..=end {
        while let Some(step) = steps.next_if(|step| step.begun <= line) {
            disk.begin(step);
            shown.note(&step.call);
        }
        for (path, begun) in flushes.remove(&line).unwrap_or_default() {
            disk.flushed(path, begun);
        }
        if !points.contains(&line) {
            continue;
        }
        for loss in Loss::ALL {
            let files = disk.after(loss, &mut chance);
            let (truth, shown) = (Arc::clone(&taped.truth), shown.clone());
            judging.spawn(async move {
                (loss, judged(files, &truth, &shown, &format!("line {line}, {loss:?}")).await)
            });
            while AT_ONCE <= judging.len() {
                tally.count(judging.join_next().await.unwrap().unwrap());
            }
        }
    }
    while let Some(judged) = judging.join_next().await {
        tally.count(judged.unwrap());
    }
    assert!(taped.truth.iter().all(|(id, ..)| shown.agents.contains_key(&id.to_string())), "all were shown");
    tally
}

/// The lines after which power is lost: about half of them where a flush begins or returns, the others anywhere.
fn points(steps: &[Step], count: usize) -> BTreeSet<usize> {
    let (mut chance, mut points) = (Chance(3), BTreeSet::new());
    let flushes: Vec<_> = steps.iter().filter(|step| matches!(step.call, Call::Flush { .. })).collect();
    let last = steps.last().expect("a step").begun;
    while points.len() < count {
        let flush = flushes[chance.below(flushes.len() as u64) as usize];
        points.insert(match chance.below(4) {
            0 => flush.begun,
            1 => flush.done,
            _ => chance.below(last as u64) as usize,
        });
    }
    points
}

/// What clients were sent: for each agent, the number of its newest event.
#[derive(Default, Clone)]
struct Shown {
    agents: BTreeMap<String, usize>,
}

impl Shown {
    fn note(&mut self, call: &Call) {
        let Call::Send { bytes } = call else { return };
        let text = String::from_utf8_lossy(bytes);
        for named in text.split(AGENT_ID).skip(1) {
            let Some(id) = named.get(..36) else { continue };
            let number = named[36..].strip_prefix(NUMBER).and_then(|rest| {
                let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
                // If the digits end the buffer, the number may continue in the next one.
                (digits.len() < rest.len()).then(|| digits.parse().ok())?
            });
            let newest = self.agents.entry(id.to_owned()).or_default();
            *newest = number.unwrap_or(0).max(*newest);
        }
    }
}

/// Whether everything that was sent to clients is there. Panics if anything is wrong.
async fn judged(files: BTreeMap<String, Vec<u8>>, truth: &[Said], shown: &Shown, what: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let read = read_after_loss(folder.path(), what).await;
    for (id, events, messages) in &read {
        let (_, there, _) = truth.iter().find(|(other, ..)| other == id).expect("an agent that there was");
        assert!(there.starts_with(events), "{what}: wrong events of {id}");
        assert!(messages.iter().all(|message| events.contains(message)), "{what}: wrong messages of {id}");
    }
    shown.agents.iter().all(|(id, newest)| {
        read.iter().any(|(other, events, _)| other.to_string() == *id && *newest <= events.len())
    })
}

/// A new store opens what is left.
async fn read_after_loss(folder: &Path, what: &str) -> Vec<Said> {
    let read = read(folder).await.unwrap_or_else(|| panic!("{what}: it cannot be read"));
    judge::database_is_sound(folder, what);
    read
}

impl Tally {
    fn count(&mut self, (loss, has_everything): (Loss, bool)) {
        self.losses += 1;
        self.forgetful += usize::from(!has_everything);
        self.forgetful_without_loss += usize::from(!has_everything && loss == Loss::Nothing);
    }
}
