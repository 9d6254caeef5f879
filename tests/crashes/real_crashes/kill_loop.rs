//! Many kills under load. Each reader records an event before it counts as seen, and the records are checked.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Handle;

use crate::Chance;
use crate::client::{Client, finished};
use crate::follower::Way;
use crate::foreign_follower::{ForeignFollower, Vocabulary};
use crate::harness::{PATIENCE, TestServer, fake_config, numbers};
use crate::judge;

/// The number of kills, unless `TOKENRAIL_TEST_KILLS` is set.
const KILLS: usize = 150;
/// Concurrent agents, each with 200 events per second, one reader for each of `WAYS`, and one in the words of another
/// protocol.
const AGENTS: u64 = Vocabulary::ALL.len() as u64;
const PACE_US: u64 = 5_000;
const WAYS: [Way; 4] = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo];
const LIMITS: &str = "[limits]\nlaunches_per_minute = 100000\ncancel_grace_s = 1\n";

/// What happens to one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    ToTheEnd,
    TwoTurns,
    /// It is cancelled, and cannot end by itself before that.
    Held,
    /// It is cancelled at a random time, and may have ended before.
    Race,
}

impl Plan {
    const ALL: [Self; 4] = [Self::ToTheEnd, Self::TwoTurns, Self::Held, Self::Race];
}

/// Shared between the clients and the test that kills the server.
struct Watch {
    folder: PathBuf,
    stop: AtomicBool,
    /// The active readers: the agent, and the file with the reader's record.
    histories: Mutex<Vec<(String, PathBuf)>>,
    /// The readers in the words of other protocols: the agent, and how many of its events the reader has seen.
    reached: Mutex<Vec<(String, Arc<AtomicU64>)>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_seen_is_there_after_each_of_many_kills() {
    let kills = std::env::var("TOKENRAIL_TEST_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    let mut server = TestServer::start_with(&(fake_config() + LIMITS));
    let folder = server.folder.path().to_owned();
    let (stop, histories, reached) = Default::default();
    let watch = Arc::new(Watch { folder, stop, histories, reached });
    let lives: Vec<_> = (0..AGENTS)
        .map(|number| Handle::current().spawn(life(Client::of(&server), Arc::clone(&watch), number)))
        .collect();

    let mut chance = Chance(1);
    for kill in 1..=kills {
        wait_for_a_moment(&server, &mut chance).await;
        server.kill_9();
        examine(&server, &watch, kill);
        if chance.below(5) == 0 {
            cut_a_start_short(&mut server, &mut chance);
            examine(&server, &watch, kill);
        }
        server.start_again();
        assert!(lives.iter().all(|life| !life.is_finished()), "a reader or a client has found a fault");
    }
    watch.stop.store(true, Ordering::Relaxed);
    let mut launched = 0;
    for life in lives {
        launched += tokio::time::timeout(4 * PATIENCE, life).await.expect("in time").expect("no fault");
    }
    judge::no_process_is_left(&server, 1);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), "at the end");
    let doctor = server.command(&["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("ok      database"), "{doctor:?}");
    // Every launch happened once, whatever its response was: each agent was purged, and left one tombstone.
    let sql = "SELECT (SELECT count(*) FROM tombstones), (SELECT count(*) FROM agents)";
    let row = server.database().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(row, (launched, 0));
    println!("{kills} kills, {launched} agents");
}

/// Waits for a random time, for a moment right after a commit, or for a very short time after the start.
async fn wait_for_a_moment(server: &TestServer, chance: &mut Chance) {
    let longest_ms = [600, 200, 40][chance.below(3) as usize];
    let pause_us = chance.below(longest_ms * 1000);
    tokio::time::sleep(Duration::from_micros(pause_us)).await;
    if longest_ms == 200 {
        let log = server.data_dir().join("tokenrail.db-wal");
        let state = || std::fs::metadata(&log).ok().map(|log| (log.len(), log.modified().unwrap()));
        let (before, started) = (state(), tokio::time::Instant::now());
        while state() == before && started.elapsed() < Duration::from_millis(50) {
            tokio::task::yield_now().await;
        }
    }
}

fn cut_a_start_short(server: &mut TestServer, chance: &mut Chance) {
    let mut start = server.command(&["serve", "--log", "warn"]);
    let mut process = start.stdout(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_micros(chance.below(20_000)));
    process.kill().unwrap();
    process.wait().unwrap();
}

/// The server is down: everything that any reader has seen must be on disk.
fn examine(server: &TestServer, watch: &Watch, kill: usize) {
    judge::database_is_sound(&server.data_dir(), &format!("after kill {kill}"));
    let db = server.database();
    let sql = "SELECT head FROM heads JOIN agents ON agents.key = heads.agent WHERE agents.id = ?1";
    let histories = watch.histories.lock().unwrap().clone();
    for (id, history) in histories {
        let seen = std::fs::read_to_string(&history).unwrap_or_default().lines().count();
        // An agent may have been purged since the list was copied. Then there is nothing to compare.
        let head: i64 = db.query_row(sql, [&id], |row| row.get(0)).unwrap_or(i64::MAX);
        assert!(seen as i64 <= head, "after kill {kill} {id} ends at {head}, and {seen} events were seen");
    }
    let reached = watch.reached.lock().unwrap().clone();
    for (id, reached) in reached {
        let head: i64 = db.query_row(sql, [&id], |row| row.get(0)).unwrap_or(i64::MAX);
        let reached = reached.load(Ordering::Relaxed);
        assert!(
            reached as i64 <= head,
            "after kill {kill} {id} ends at {head}, and {reached} events were seen"
        );
    }
}

/// Launches one agent after the other. Returns how many.
async fn life(client: Client, watch: Arc<Watch>, number: u64) -> i64 {
    let (mut chance, mut launched) = (Chance(100 + number), 0);
    while !watch.stop.load(Ordering::Relaxed) {
        launched += 1;
        let vocabulary = Vocabulary::ALL[number as usize];
        agent(&client, &watch, &format!("{number}-{launched}"), vocabulary, &mut chance).await;
    }
    launched
}

async fn agent(client: &Client, watch: &Watch, name: &str, vocabulary: Vocabulary, chance: &mut Chance) {
    let deltas = 100 + chance.below(1900);
    let plan = Plan::ALL[chance.below(4) as usize];
    let mut script = json!({ "deltas": deltas, "pace_us": PACE_US });
    if plan == Plan::Held {
        let never = watch.folder.join("never");
        (script["gate"], script["gate_after"]) = (json!(never), json!(chance.below(deltas)));
    }
    let id = client.launch(&script, name).await;
    let turns = if plan == Plan::TwoTurns { 2 } else { 1 };
    let readers: Vec<_> = WAYS
        .iter()
        .enumerate()
        .map(|(index, way)| {
            let history = watch.folder.join(format!("seen-{name}-{index}"));
            watch.histories.lock().unwrap().push((id.clone(), history.clone()));
            (client.follow(&id, *way, turns, &history), history)
        })
        .collect();
    let foreign = ForeignFollower::new(client.place.clone(), &id, vocabulary);
    watch.reached.lock().unwrap().push((id.clone(), Arc::clone(&foreign.reached)));
    let foreign = Handle::current().spawn(foreign.read_turns(turns));
    let a_while = Duration::from_micros(chance.below(deltas * PACE_US));
    let asked = match plan {
        Plan::ToTheEnd => judge::Asked::WholeOverKills,
        Plan::TwoTurns => {
            client.say(&id, &json!({ "deltas": 50 }), name).await;
            judge::Asked::WholeOverKills
        }
        Plan::Held => {
            tokio::time::sleep(a_while).await;
            client.cancel_in_time(&id).await
        }
        Plan::Race => {
            tokio::time::sleep(a_while).await;
            client.cancel(&id).await;
            judge::Asked::CancelledInARace
        }
    };
    let mut seen = Vec::new();
    for (reader, history) in readers {
        seen.push((finished(reader).await, history));
    }
    let there = client.events(&id).await;
    for (reader, history) in &seen {
        judge::saw_what_is_there(reader, history, &there);
    }
    judge::read_what_was_said(&finished(foreign).await, &there).await;
    judge::said_what_was_asked(&there, &[numbers(deltas), numbers(50)][..turns], asked);
    watch.histories.lock().unwrap().retain(|(other, _)| *other != id);
    watch.reached.lock().unwrap().retain(|(other, _)| *other != id);
    for (_, history) in seen {
        std::fs::remove_file(history).unwrap();
    }
    client.purge(&id).await;
}
