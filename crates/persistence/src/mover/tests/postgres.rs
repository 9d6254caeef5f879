//! Moves into a real database.

mod again;
mod refusals;
mod whole;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Copied, ImageType, NewName, Replay, Sequence, SessionId, StopReason,
    Timestamp, Turn, TurnImage, TurnNumber, TurnOutcome, TurnResult,
};
use tokenrail_ports::testing::samples::{
    self, Scribe, every_body, image, launch, notice, queued_turn, text_delta,
};
use tokenrail_ports::{
    Deletion, IAgentRepository as _, IArchive as _, IJournal as _, INodes as _, Idempotency, KeyLife, NewTurn,
};
use tokenrail_test_postgres::{Database, database};

use crate::mover::{MoveCounts, MoveError, MoveStep, move_to_postgres};
use crate::{NodeIdentity, Password, PostgresConfig, PostgresStore, SqliteConfig, SqliteStore, Synchronous};

fn config(database: &Database) -> PostgresConfig {
    let password = Some(Password::new(database.password()));
    let node = Some(NodeIdentity { folder: [7; 16], name: "node".into() });
    PostgresConfig { password, node, ..PostgresConfig::new(database.url()) }
}

fn sqlite(folder: &Path) -> SqliteStore {
    SqliteStore::open(SqliteConfig { synchronous: Synchronous::Normal, ..SqliteConfig::new(folder) }).unwrap()
}

async fn moved(folder: &Path, database: &Database) -> Result<MoveCounts, MoveError> {
    move_to_postgres(folder, config(database), &mut |_| {}).await
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("tokenrail.db")
}

fn edit(folder: &TempDir, sql: &str) {
    Connection::open(file(folder)).unwrap().execute_batch(sql).unwrap();
}

/// The agents of a folder, by their keys.
fn ids(folder: &TempDir) -> Vec<AgentId> {
    let db = Connection::open(file(folder)).unwrap();
    let mut statement = db.prepare("SELECT id FROM agents ORDER BY key").unwrap();
    let ids = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    ids.map(|id| id.unwrap().parse().unwrap()).collect()
}

fn key(name: &str, body: &str) -> Idempotency {
    Idempotency {
        scope: "a\0b".into(),
        key: name.into(),
        body: body.into(),
        used_at: Timestamp(samples::LAUNCHED_AT.0 + 9),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    }
}

/// An agent that runs: in its folder there may be output that is not saved yet.
struct Running {
    agent: Agent,
    scribe: Scribe,
    queued: Turn,
}

/// A folder with one of everything. No server uses it.
struct History {
    folder: TempDir,
    running: Running,
    /// It is gone, but for its id.
    purged: Agent,
}

async fn history() -> History {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path());
    finished_and_compacted(&store).await;
    let running = running(&store, 2).await;
    deleted(&store, 3).await;
    let purged = launch(4).0;
    store.create(purged.clone(), launch(4).1.into(), None).await.unwrap();
    store.purge(purged.id, Timestamp(44)).await.unwrap();
    strange_texts(&store, 5).await;
    to_purge(&store, 6).await;
    copies(&store).await;
    failed(&store, 9).await;
    store.close().await;
    // Rows of the first versions have no checksums.
    let early = launch(9).0.id;
    edit(
        &folder,
        "UPDATE turns SET base_commit = '0123456789012345678901234567890123456789' WHERE number = 1",
    );
    edit(
        &folder,
        &format!(
            "UPDATE journal SET checksum = NULL WHERE agent = (SELECT key FROM agents WHERE id = '{early}');
            UPDATE agent_messages SET checksum = NULL WHERE agent_id = '{early}'"
        ),
    );
    History { folder, running, purged }
}

async fn started(store: &SqliteStore, n: u8) -> (Agent, Scribe) {
    let (agent, turn) = launch(n);
    let mut scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    store.append(scribe.start(&turn)).await.unwrap();
    (agent, scribe)
}

async fn finished_and_compacted(store: &SqliteStore) {
    let (agent, turn) = launch(1);
    let mut scribe = Scribe::new(&agent);
    let files = vec![image(ImageType::Png, "one\0"), image(ImageType::Webp, "two")];
    let turn = NewTurn::new(turn, files);
    store.create(agent.clone(), turn.clone(), Some(key("launch\0", "{}"))).await.unwrap();
    store.append(scribe.start(turn.turn())).await.unwrap();
    store.append(scribe.say(every_body())).await.unwrap();
    for at in 0..300 {
        store.append(scribe.say(vec![text_delta(7, &format!("{at} \0"))])).await.unwrap();
    }
    let complete = scribe.complete(7);
    store.append(scribe.say(vec![complete])).await.unwrap();
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    while store.compact_next().await.unwrap() {}
    let next = queued_turn(agent.id, TurnNumber(0), "and then?");
    store.enqueue(next.into(), 16, Some(key("more", "[]"))).await.unwrap();
    let next = store.open_turns(agent.id).await.unwrap().remove(0);
    store.append(scribe.start(&next)).await.unwrap();
    store.append(scribe.end(TurnOutcome::Cancelled)).await.unwrap();
}

async fn running(store: &SqliteStore, n: u8) -> Running {
    let (agent, mut scribe) = started(store, n).await;
    let mut append = scribe.say(vec![notice("init"), text_delta(0, "Hel"), text_delta(0, "lo")]);
    append.session = SessionId::new("session-7").ok();
    store.append(append).await.unwrap();
    let queued = NewTurn::new(queued_turn(agent.id, TurnNumber(0), "wait"), vec![image(ImageType::Gif, "g")]);
    store.enqueue(queued, 16, None).await.unwrap();
    let stopped = queued_turn(agent.id, TurnNumber(0), "stopped");
    store.enqueue(stopped.into(), 16, None).await.unwrap();
    store.stop_turn(agent.id.turn(TurnNumber(3)), StopReason::Cancelled).await.unwrap();
    let queued = store.open_turns(agent.id).await.unwrap().remove(1);
    Running { agent, scribe, queued }
}

async fn deleted(store: &SqliteStore, n: u8) {
    let (agent, mut scribe) = started(store, n).await;
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    store.delete(agent.id, Timestamp(5000), Deletion::KeepHistory).await.unwrap();
}

async fn to_purge(store: &SqliteStore, n: u8) {
    let (agent, _) = started(store, n).await;
    store.delete(agent.id, Timestamp(6000), Deletion::Purge).await.unwrap();
}

async fn strange_texts(store: &SqliteStore, n: u8) {
    let (agent, turn) = launch(n);
    let strange = "\0 Grüße 🦀 \\N \t \r\n \u{feff}";
    let agent = Agent { prompt: strange.into(), chat: Some(strange.into()), cwd: "/\0".into(), ..agent };
    store.create(agent.clone(), Turn { prompt: strange.into(), ..turn }.into(), None).await.unwrap();
    let named = Some(NewName::Text(strange.into()));
    let changes = AgentEdit { name: named, pinned: Some(true), archived: Some(true) };
    store.edit(agent.id, changes).await.unwrap();
}

/// A replay that has not begun, and an import that is not finished.
async fn copies(store: &SqliteStore) {
    let replay = Replay { of: launch(1).0.id, until: Sequence(7), speed: 2.5 };
    let idle = Agent {
        copy: Some(Copied::Replay(replay)),
        turn: TurnNumber(0),
        queued: 0,
        status: tokenrail_domain::AgentStatus::Completed,
        ..launch(7).0
    };
    store.create_idle(idle).await.unwrap();
    let imported = Agent { copy: Some(Copied::File), turn: TurnNumber(0), queued: 0, ..launch(8).0 };
    store.begin_import(imported.clone()).await.unwrap();
    let turn = Turn {
        state: tokenrail_domain::TurnState::Ended(TurnOutcome::Failed),
        first_sequence: Some(Sequence(1)),
        last_sequence: Some(Sequence(2)),
        ..queued_turn(imported.id, TurnNumber(1), "look")
    };
    let kept = image(ImageType::Jpeg, "kept");
    let images = vec![TurnImage::Lost(kept.summary()), TurnImage::File(kept)];
    store.import_turns(imported.id, vec![NewTurn::with_lost(turn, images)]).await.unwrap();
}

async fn failed(store: &SqliteStore, n: u8) {
    let (_, mut scribe) = started(store, n).await;
    store.append(scribe.say(every_body())).await.unwrap();
    let result = TurnResult { error: Some(samples::error()), ..samples::result(TurnOutcome::Failed) };
    store.append(scribe.end_with(result)).await.unwrap();
}
