//! Nothing of what was purged is left in the files of the store.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokenrail_domain::{
    AgentId, EventBody, ImageType, JsonText, SessionId, Timestamp, TurnNumber, TurnOutcome,
};
use tokenrail_ports::testing::samples::{Scribe, image, launch, queued_turn, text_delta};
use tokenrail_ports::{Deletion, Idempotency, KeyLife, NewTurn};

use super::*;

/// The places in which each agent has its word. A failure names the place that was not wiped.
const PLACES: [&str; 11] =
    ["name", "prompt", "metadata", "options", "chat", "session", "output", "key", "turn", "deltas", "image"];
/// Bytes of a stored payload to search for: compressed data does not contain the word itself.
const PIECE: usize = 24;

fn word(n: u8, place: &str) -> String {
    format!("Xylophon-{n}-{place}-{}", "q".repeat(usize::from(n) % 7 * 40))
}

fn key(n: u8) -> Idempotency {
    let (scope, key) = ("launch".to_owned(), word(n, "key"));
    let body = format!(r#"{{"prompt":"{}"}}"#, word(n, "prompt"));
    Idempotency {
        scope,
        key,
        body,
        used_at: Timestamp(1),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    }
}

/// Digits that no other agent has, so that their compressed form is unique too.
fn noise(n: u8) -> String {
    let mut state = u64::from(n) + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32).to_string()
    };
    std::iter::repeat_with(next).take(5_000).collect()
}

/// An agent that has its word in every place.
async fn talkative(store: &SqliteStore, n: u8) -> AgentId {
    let note = |place| JsonText::new_unchecked(format!(r#"{{"note":"{}"}}"#, word(n, place)));
    let (agent, turn) = launch(n);
    let agent = Agent {
        name: Some(word(n, "name")),
        prompt: word(n, "prompt"),
        metadata: Some(note("metadata")),
        options: Some(note("options")),
        chat: Some(word(n, "chat")),
        ..agent
    };
    let turn = tokenrail_domain::Turn { prompt: agent.prompt.clone(), ..turn };
    let mut scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), Some(key(n))).await.unwrap();
    store.append(scribe.start(&turn)).await.unwrap();
    for piece in 0..20 {
        let delta = text_delta(0, &format!("{}{}", word(n, "deltas"), piece.to_string().repeat(300)));
        let mut append = scribe.say(vec![delta]);
        append.session = SessionId::new(&word(n, "session")).ok();
        store.append(append).await.unwrap();
    }
    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete])).await;
    let (result, large) = (word(n, "output"), noise(n));
    let output = EventBody::Error(Box::new(tokenrail_domain::AgentError {
        class: tokenrail_domain::ErrorClass::Unknown,
        code: None,
        text: format!("{result}{large}"),
        retry_after_ms: None,
        recoverable: false,
    }));
    saved(store, scribe.say(vec![output])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let more = queued_turn(agent.id, TurnNumber(0), &word(n, "turn"));
    let more = NewTurn::new(more, vec![image(ImageType::Png, &word(n, "image"))]);
    store.enqueue(more, 16, None).await.unwrap();
    agent.id
}

/// Pieces of the large payloads of an agent, as stored.
fn pieces(folder: &TempDir, id: AgentId) -> BTreeSet<Vec<u8>> {
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    let sql = "SELECT payload FROM journal JOIN agents ON agents.key = journal.agent WHERE agents.id = ?1";
    let mut payloads = db.prepare(sql).unwrap();
    let payloads = payloads.query_map([id.to_string()], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    // Repetitive data compress to bytes that other payloads may contain too.
    let telling = |piece: &Vec<u8>| 7 < piece.iter().collect::<BTreeSet<_>>().len();
    let large = payloads.map(Result::unwrap).filter(|payload| 10_000 < payload.len());
    large
        .flat_map(|payload| [3, 2].map(|part| payload[payload.len() / part..][..PIECE].to_vec()))
        .filter(telling)
        .collect()
}

/// The items of `wanted` that are in any file of the folder.
fn found(folder: &TempDir, wanted: impl IntoIterator<Item = Vec<u8>>) -> Vec<String> {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.map(|path| (std::fs::read(&path).unwrap(), path)).collect();
    let mut found = Vec::new();
    for word in wanted {
        for (bytes, path) in &files {
            let times = memchr::memmem::find_iter(bytes, &word).count();
            if 0 < times {
                found.push(format!("{:?} {times} times in {path:?}", String::from_utf8_lossy(&word)));
            }
        }
    }
    found
}

fn words(n: u8) -> Vec<Vec<u8>> {
    PLACES.iter().map(|place| word(n, place).into_bytes()).collect()
}

#[tokio::test]
async fn nothing_of_a_purged_agent_is_in_the_files_after_a_stop() {
    let (store, folder) = fresh();
    let mut agents = Vec::new();
    for n in 1..=40 {
        agents.push((n, talkative(&store, n).await));
    }
    let mut purged = BTreeSet::new();
    // A later compaction stores the same data in another form.
    for (n, id) in agents.iter().filter(|(n, _)| n % 3 == 0) {
        purged.extend(words(*n));
        purged.extend(pieces(&folder, *id));
    }
    while store.compact_next().await.unwrap() {}
    for (n, id) in agents.iter().filter(|(n, _)| n % 3 == 0) {
        purged.extend(pieces(&folder, *id));
        store.delete(*id, Timestamp(i64::from(*n)), Deletion::Purge).await.unwrap();
        assert!(store.purge(*id, Timestamp(i64::from(*n))).await.unwrap());
    }
    assert!(
        13 * (PLACES.len() + 2) <= purged.len() && !found(&folder, words(1)).is_empty(),
        "what stays is found"
    );
    store.close().await;
    assert_eq!(found(&folder, purged.clone()), [""; 0]);
    let store = SqliteStore::open(config(&folder)).unwrap();
    assert_eq!(found(&folder, purged), [""; 0]);
    store.close().await;
    is_sound(&folder);
}

async fn wiped_within(folder: &TempDir, wanted: &BTreeSet<Vec<u8>>, patience: Duration) {
    let started = Instant::now();
    loop {
        let found = found(folder, wanted.clone());
        if found.is_empty() {
            return;
        }
        assert!(started.elapsed() < patience, "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A reader of old data prevents the log from being emptied. The wipe follows when it has ended.
#[tokio::test]
async fn what_was_purged_is_wiped_while_the_server_runs_and_after_a_long_read() {
    let (store, folder) = fresh();
    let (first, second) = (talkative(&store, 1).await, talkative(&store, 2).await);
    let mut purged: BTreeSet<_> = words(1).into_iter().chain(pieces(&folder, first)).collect();
    assert!(store.purge(first, Timestamp(1)).await.unwrap());
    wiped_within(&folder, &purged, Duration::from_secs(20)).await;

    purged.extend(words(2).into_iter().chain(pieces(&folder, second)));
    let mut reader = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    let reading = reader.transaction().unwrap();
    let prompt: String = reading.query_row("SELECT prompt FROM agents", [], |row| row.get(0)).unwrap();
    assert_eq!(prompt, word(2, "prompt"));
    assert!(store.purge(second, Timestamp(1)).await.unwrap());
    let again: String = reading.query_row("SELECT prompt FROM agents", [], |row| row.get(0)).unwrap();
    assert_eq!(again, prompt, "who reads is not disturbed");
    drop(reading);
    drop(reader);
    wiped_within(&folder, &purged, Duration::from_secs(20)).await;
    store.close().await;
}

/// A read, or a checkpoint, may be in the way of the last wipe for a moment.
#[tokio::test]
async fn a_stop_waits_for_a_short_read_to_wipe() {
    let (store, folder) = fresh();
    let id = talkative(&store, 1).await;
    let reader = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT prompt FROM agents").unwrap();
    assert!(store.purge(id, Timestamp(1)).await.unwrap());
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(reader);
    });
    store.close().await;
    reading.join().unwrap();
    let after = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    let is_due: bool = after.query_row("SELECT to_wipe FROM commits", [], |row| row.get(0)).unwrap();
    assert!(!is_due, "the last wipe was left to the next start");
}

/// An agent whose row grows when its turn ends, so that SQLite moves it to another page.
async fn growing(store: &SqliteStore, n: u8) -> Scribe {
    let (agent, turn) = launch(n);
    let agent = Agent { name: Some(word(n, "name")), prompt: word(n, "prompt"), ..agent };
    let turn = tokenrail_domain::Turn { prompt: agent.prompt.clone(), ..turn };
    let mut scribe = Scribe::new(&agent);
    store.create(agent, turn.clone().into(), Some(key(n))).await.unwrap();
    store.append(scribe.start(&turn)).await.unwrap();
    scribe
}

/// When SQLite moves a row, it leaves a copy behind that `secure_delete` alone does not overwrite. If the database is
/// too large to be rewritten, or the server dies first, the wipe stays pending.
#[tokio::test]
async fn what_was_not_wiped_is_wiped_by_the_next_life() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = config(&folder);
    small.limits.wipe_bytes = 0;
    let store = SqliteStore::open(small).unwrap();
    let mut scribes = Vec::new();
    for n in 1..=200 {
        scribes.push(growing(&store, n).await);
    }
    for (n, scribe) in (1..).zip(&mut scribes) {
        let mut append = scribe.end(TurnOutcome::Completed);
        append.session = SessionId::new(&format!("session-{}", "s".repeat(usize::from(n % 5_u8) * 25))).ok();
        saved(&store, append).await;
    }
    let mut purged = BTreeSet::new();
    for n in (1..=200).map(|n: u8| n.wrapping_mul(77)).filter(|n| (1..=200).contains(n) && n % 4 != 0) {
        purged.extend(words(n));
        assert!(store.purge(launch(n).0.id, Timestamp(1)).await.unwrap());
    }
    store.close().await;
    assert!(!found(&folder, purged.clone()).is_empty(), "there is something to wipe");
    let store = SqliteStore::open(config(&folder)).unwrap();
    wiped_within(&folder, &purged, Duration::from_secs(20)).await;
    store.close().await;
}

/// The rewrite would put the whole database into the log, where it would stay until the reader has ended.
#[tokio::test]
async fn a_purge_makes_no_copy_of_the_database_in_the_log_while_somebody_reads() {
    let (store, folder) = fresh();
    for n in 1..=100 {
        talkative(&store, n).await;
    }
    let mut reader = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    let reading = reader.transaction().unwrap();
    let agents: i64 = reading.query_row("SELECT count(*) FROM agents", [], |row| row.get(0)).unwrap();
    assert_eq!(agents, 100);
    assert!(store.purge(launch(1).0.id, Timestamp(1)).await.unwrap());
    let bytes = |file: &str| std::fs::metadata(folder.path().join(file)).map_or(0, |file| file.len());
    let before = bytes("tokenrail.db-wal");
    store.close().await;
    let grown = bytes("tokenrail.db-wal").saturating_sub(before);
    let database: u64 = reading
        .query_row("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap()
        .unsigned_abs();
    assert!(grown < database / 2, "the log has grown by {grown} bytes, the database has {database}");
    drop(reading);
    drop(reader);
    // The deferred wipe is not forgotten.
    let purged: BTreeSet<_> = words(1).into_iter().collect();
    let store = SqliteStore::open(config(&folder)).unwrap();
    wiped_within(&folder, &purged, Duration::from_secs(20)).await;
    store.close().await;
}
