//! What a long turn leaves on disk.

use bytes::Bytes;
use tokenrail_domain::{EventBody, MessageOrdinal, Part, TurnOutcome};
use tokenrail_ports::IArchive;
use tokenrail_ports::testing::samples::{notice, page_of};

use super::*;
use crate::passed_over::TurnPlace;
use crate::sqlite::statements::compaction::{self, CompactCommand, PackedTo};
use crate::unpackable_turn;

const DELTAS: usize = 20_000;

/// Random numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xfff | 0x4000);
        format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff)
    }

    /// Words that resemble English, with a similarly uneven distribution.
    fn words(&mut self) -> Vec<String> {
        let syllables =
            ["the", "an", "ter", "ing", "re", "con", "st", "al", "er", "ble", "o", "mi", "y", "in"];
        let mut word = || {
            let length = 1 + self.next() % 3;
            (0..length).map(|_| syllables[(self.next() % 14) as usize]).collect::<String>()
        };
        (0..2000).map(|_| word()).collect()
    }
}

/// Lines as Claude prints them: each with its own UUID and a few letters of text.
fn deltas(chance: &mut Chance) -> Vec<(String, String)> {
    let words = chance.words();
    let mut text = String::new();
    while text.len() < DELTAS * 12 {
        let rank = (chance.next() % 45) * (chance.next() % 45);
        text.push_str(&words[rank as usize]);
        text.push(' ');
    }
    let (session, mut rest) = (chance.uuid(), text.as_str());
    (0..DELTAS)
        .map(|_| {
            let (piece, after) = rest.split_at(1 + (chance.next() % 11) as usize);
            rest = after;
            let line = format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":1,"delta":{{"type":"text_delta","text":"{piece}"}}}},"session_id":"{session}","parent_tool_use_id":null,"uuid":"{}","thinking_display":"updates","api_message_id":"msg_01jdGpudwmif1n7a1DK3JTfj"}}"#,
                chance.uuid()
            );
            (piece.to_owned(), line)
        })
        .collect()
}

/// Saves all the deltas in batches of different sizes, and ends the turn. Returns the size of the raw lines.
async fn long_turn(store: &SqliteStore, scribe: &mut Scribe, chance: &mut Chance) -> usize {
    saved(store, scribe.say(vec![notice("init")])).await;
    let lines = deltas(chance);
    let mut rest = &lines[..];
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(rest.len().min(1 + (chance.next() % 64) as usize));
        rest = after;
        let body = |text: &String| EventBody::TextDelta {
            message: MessageOrdinal(0),
            part: Part(1),
            text: text.clone(),
        };
        let mut append = scribe.say(batch.iter().map(|(text, _)| body(text)).collect());
        let events = append.events.iter().zip(batch).map(|(event, (_, line))| {
            let at =
                tokenrail_domain::Timestamp(event.at.0 + (event.sequence.0 * event.sequence.0 % 23) as i64);
            Event { raw: Some(Bytes::from(line.clone())), at, ..event.clone() }
        });
        append.events = events.collect();
        saved(store, append).await;
    }
    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    lines.iter().map(|(_, line)| line.len()).sum()
}

fn count(folder: &TempDir, sql: &str) -> i64 {
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_long_turn_takes_less_than_an_eighth_of_its_lines_and_few_rows() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    let raw_bytes = long_turn(&store, &mut scribe, &mut Chance(42)).await;
    let before = everything(&store, &agent).await;
    assert_eq!(before.len(), DELTAS + 4);

    while store.compact_next().await.unwrap() {}
    let bytes = count(&folder, "SELECT sum(length(payload)) FROM journal") as usize;
    println!("{raw_bytes} -> {bytes}: {:.1} %", bytes as f64 / raw_bytes as f64 * 100.0);
    assert!(bytes * 100 < raw_bytes * 12, "{bytes} of {raw_bytes}");
    let blocks = count(&folder, "SELECT count(*) FROM journal");
    assert!(blocks < 100, "{blocks} blocks of about 128 KiB");
    assert_eq!(count(&folder, "SELECT count(*) FROM agent_messages"), 4);
    assert_eq!(count(&folder, "SELECT count(*) FROM journal WHERE codec = 1"), 0);

    assert_eq!(everything(&store, &agent).await, before);
    for after in [0, 1, 1023, 1024, 12_345, 20_003] {
        let page = store.read(agent.id, Sequence(after), page_of(500)).await.unwrap();
        let from = after as usize;
        assert_eq!(page, before[from..before.len().min(from + 500)], "after {after}");
    }
    is_sound(&folder);
}

/// A turn that has ended, with five batches.
async fn ended_turn(store: &SqliteStore, n: u8) -> Agent {
    let (agent, mut scribe) = running(store, n).await;
    for _ in 0..5 {
        saved(store, scribe.say(vec![notice("n")])).await;
    }
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    agent
}

/// The next block as a compaction has read and packed it. It is not written yet.
async fn packed(store: &SqliteStore) -> CompactCommand {
    let limits = store.inner.config.limits.clone();
    let reading = limits.clone();
    let first = TurnPlace::default();
    let read =
        store.read_with(move |db| compaction::read(db, first, PackedTo::default(), &reading)).await.unwrap();
    read.unwrap().1.unwrap().pack(&limits).unwrap()
}

#[tokio::test]
async fn events_that_are_rewritten_while_a_block_is_packed_stay_rewritten() {
    let (store, folder) = fresh();
    let agent = ended_turn(&store, 1).await;
    let mut events = everything(&store, &agent).await;
    let packed = packed(&store).await;
    events[2].body = notice("rewritten");
    store.rewrite(agent.id, Arc::from(&events[2..3])).await.unwrap();
    store.write(packed).await.unwrap();
    assert_eq!(everything(&store, &agent).await, events);

    while store.compact_next().await.unwrap() {}
    assert_eq!(everything(&store, &agent).await, events);
    assert_eq!(count(&folder, "SELECT count(*) FROM journal WHERE codec = 1"), 0);
    is_sound(&folder);
}

#[tokio::test]
async fn turns_are_packed_on_a_thread_that_gives_way() {
    static BACKGROUND: Mutex<Vec<Option<String>>> = Mutex::new(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let before_background_work =
        || BACKGROUND.lock().unwrap().push(std::thread::current().name().map(str::to_owned));
    let store = SqliteStore::open(SqliteConfig { before_background_work, ..config(&folder) }).unwrap();
    ended_turn(&store, 1).await;
    assert!(store.compact_next().await.unwrap());
    for thread in ["checkpoint", "compaction"] {
        while !BACKGROUND.lock().unwrap().contains(&Some(thread.to_owned())) {
            tokio::task::yield_now().await;
        }
    }
}

const NOT_DONE: &str = "SELECT count(*) FROM turns WHERE compacted = 0";

#[tokio::test]
async fn a_short_turn_is_packed_in_one_step() {
    let (store, folder) = fresh();
    ended_turn(&store, 1).await;
    assert_eq!(count(&folder, NOT_DONE), 1);
    assert!(store.compact_next().await.unwrap());
    assert_eq!(count(&folder, NOT_DONE), 0);
    assert!(!store.compact_next().await.unwrap());
}

#[tokio::test]
async fn a_turn_is_not_done_if_its_first_events_are_rewritten_while_its_last_block_is_packed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder);
    config.limits.block_events = 3;
    let store = SqliteStore::open(config).unwrap();
    let agent = ended_turn(&store, 1).await;
    let mut events = everything(&store, &agent).await;
    assert!(store.compact_next().await.unwrap());
    assert!(store.compact_next().await.unwrap());
    assert_eq!(count(&folder, NOT_DONE), 1, "one block is left");
    let packed = packed(&store).await;
    events[0].body = notice("rewritten");
    store.rewrite(agent.id, Arc::from(&events[..1])).await.unwrap();
    store.write(packed).await.unwrap();
    assert_eq!(count(&folder, NOT_DONE), 1);
    while store.compact_next().await.unwrap() {}
    assert_eq!(everything(&store, &agent).await, events);
    assert_eq!(count(&folder, "SELECT count(*) FROM journal WHERE codec = 1"), 0);
    is_sound(&folder);
}

#[tokio::test]
async fn events_of_a_block_that_are_rewritten_before_the_next_one_is_packed_are_packed_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder);
    config.limits.block_events = 3;
    let store = SqliteStore::open(config).unwrap();
    let agent = ended_turn(&store, 1).await;
    let mut events = everything(&store, &agent).await;
    assert!(store.compact_next().await.unwrap());
    events[0].body = notice("rewritten");
    store.rewrite(agent.id, Arc::from(&events[..1])).await.unwrap();
    assert!(store.compact_next().await.unwrap());
    let tight = "SELECT count(*) FROM journal WHERE codec = 2 AND 4 <= first_seq";
    assert_eq!(count(&folder, tight), 1, "it goes on where it was");
    while store.compact_next().await.unwrap() {}
    assert_eq!(count(&folder, NOT_DONE), 0);
    assert_eq!(count(&folder, "SELECT count(*) FROM journal WHERE codec = 1"), 0);
    assert_eq!(everything(&store, &agent).await, events);
    is_sound(&folder);
}

#[tokio::test]
async fn rewritten_events_before_and_after_a_block_are_not_packed_into_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut few = config(&folder);
    few.limits.block_events = 2;
    let store = SqliteStore::open(few).unwrap();
    let agent = ended_turn(&store, 1).await;
    let mut events = everything(&store, &agent).await;
    while store.compact_next().await.unwrap() {}
    for at in [0, 4] {
        events[at].body = notice("rewritten");
        store.rewrite(agent.id, Arc::from(&events[at..=at])).await.unwrap();
    }
    store.close().await;

    let store = SqliteStore::open(config(&folder)).unwrap();
    while store.compact_next().await.unwrap() {}
    assert_eq!(count(&folder, "SELECT count(*) FROM journal WHERE codec = 1"), 0);
    assert_eq!(everything(&store, &agent).await, events);
    is_sound(&folder);
}

#[tokio::test]
async fn batches_of_early_versions_without_checksums_are_packed() {
    let (store, folder) = fresh();
    let agent = ended_turn(&store, 1).await;
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    db.execute("UPDATE journal SET checksum = NULL", []).unwrap();
    let before = everything(&store, &agent).await;
    let packed = packed(&store).await;
    let mut events = before.clone();
    events[2].body = notice("rewritten");
    store.rewrite(agent.id, Arc::from(&events[2..3])).await.unwrap();
    store.write(packed).await.unwrap();
    while store.compact_next().await.unwrap() {}
    assert_eq!(everything(&store, &agent).await, events);
    assert_eq!(count(&folder, "SELECT count(*) FROM journal WHERE codec = 1"), 0);
    is_sound(&folder);
}

#[tokio::test]
async fn a_purge_while_a_block_is_packed_leaves_nothing_behind() {
    let (store, folder) = fresh();
    let agent = ended_turn(&store, 1).await;
    let packed = packed(&store).await;
    store.purge(agent.id, agent.created_at).await.unwrap();
    store.write(packed).await.unwrap();
    assert_eq!(count(&folder, "SELECT count(*) FROM journal"), 0);
    assert!(!store.compact_next().await.unwrap());
    is_sound(&folder);
}

#[tokio::test]
async fn a_turn_that_cannot_be_packed_does_not_hold_up_the_others() {
    let (store, folder) = fresh();
    let agent = ended_turn(&store, 1).await;
    for n in 2..4 {
        ended_turn(&store, n).await;
    }
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    db.execute("UPDATE journal SET payload = x'00' WHERE agent = 1 AND first_seq = 3", []).unwrap();
    let loose = || count(&folder, "SELECT count(DISTINCT agent) FROM journal WHERE codec = 1");
    unpackable_turn::it_does_not_hold_up_the_others(&store, &agent, loose).await;
}
