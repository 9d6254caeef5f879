//! Folders and files that cannot be used.

use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use tokenrail_domain::{AgentStatus, Copied, ImageType, Turn, TurnImage, TurnNumber, TurnOutcome, TurnState};
use tokenrail_ports::testing::samples::{WHOLE_LIST, every_body, image, text_delta};
use tokenrail_ports::{IArchive, NewTurn, StoreError, TurnRange};

use super::*;
use crate::sqlite::error::OpenError;

fn refused(config: SqliteConfig) -> OpenError {
    match SqliteStore::open(config) {
        Err(error) => error,
        Ok(_) => panic!("it was opened"),
    }
}

/// A closed store that is not empty.
async fn filled() -> TempDir {
    let (store, folder) = fresh();
    let (_, mut scribe) = running(&store, 1).await;
    saved(&store, scribe.say(every_body())).await;
    saved(&store, scribe.say(vec![text_delta(5, &"x".repeat(50_000))])).await;
    let complete = scribe.complete(5);
    saved(&store, scribe.say(vec![complete])).await;
    saved(&store, scribe.end(TurnOutcome::Completed)).await;
    store.close().await;
    folder
}

fn edit(folder: &TempDir, sql: &str) {
    let db = Connection::open(database(folder)).unwrap();
    db.execute_batch(sql).unwrap();
}

fn database(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("tokenrail.db")
}

#[test]
fn a_folder_is_used_by_one_server_at_a_time() {
    let (store, folder) = fresh();
    let second = refused(config(&folder));
    assert!(matches!(&second, OpenError::Locked { folder: named } if named == folder.path()), "{second}");
    drop(store);
    SqliteStore::open(config(&folder)).unwrap();
}

#[test]
fn a_lock_that_a_killed_server_has_left_for_a_moment_is_waited_for() {
    let (store, folder) = fresh();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(store);
        });
        SqliteStore::open(config(&folder)).unwrap();
    });
}

#[test]
fn a_newer_schema_is_refused_and_not_touched() {
    let (store, folder) = fresh();
    drop(store);
    edit(&folder, "PRAGMA user_version = 99");
    let error = refused(config(&folder));
    assert!(matches!(error, OpenError::NewerSchema { found: 99, known: 12 }), "{error}");
    let found = crate::sqlite_doctor(folder.path());
    assert!(matches!(found, Err(OpenError::NewerSchema { found: 99, known: 12 })), "{found:?}");
    edit(&folder, "PRAGMA user_version = 1");
    let found = crate::sqlite_doctor(folder.path());
    assert!(matches!(found, Err(OpenError::OlderSchema { missing: 11 })), "{found:?}");
    assert!(found.unwrap_err().to_string().ends_with("(11 migrations to apply)"));
    assert!(OpenError::OlderSchema { missing: 1 }.to_string().ends_with("(1 migration to apply)"));
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    edit(&folder, "CREATE TABLE recipes (name)");
    let error = refused(config(&folder));
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(database(&folder), "not a database, but long enough to look like one ".repeat(100))
        .unwrap();
    let error = refused(config(&folder));
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    // No user, not even root, can create folders here.
    let config = SqliteConfig::new("/sys/tokenrail-data");
    let error = refused(config);
    assert!(matches!(&error, OpenError::NotWritable { path } if path.starts_with("/sys")), "{error}");
}

#[test]
fn a_file_in_the_place_of_the_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, "").unwrap();
    let error = refused(SqliteConfig::new(&path));
    assert!(matches!(&error, OpenError::Io { path: named, .. } if *named == path), "{error}");
}

#[tokio::test]
async fn folder_and_files_are_private() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("new/data");
    let store = SqliteStore::open(SqliteConfig::new(&folder)).unwrap();
    running(&store, 1).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
}

#[tokio::test]
async fn damaged_pages_are_found() {
    let folder = filled().await;
    is_sound(&folder);
    let mut file = std::fs::OpenOptions::new().write(true).open(database(&folder)).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in 2..pages {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0xa5; 200]).unwrap();
    }
    let found = crate::sqlite_doctor(folder.path());
    assert!(!matches!(&found, Ok(diagnosis) if diagnosis.faults.is_empty()), "{found:?}");
    if let Ok(store) = SqliteStore::open(config(&folder)) {
        let read = store.read(launch(1).0.id, Sequence::START, WHOLE).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    }
}

/// Damages a filled database with this statement, and then reads its journal.
async fn read_after(sql: &str) -> Result<Vec<Event>, StoreError> {
    let folder = filled().await;
    edit(&folder, sql);
    let store = SqliteStore::open(config(&folder)).unwrap();
    store.read(launch(1).0.id, Sequence::START, WHOLE).await
}

#[tokio::test]
async fn a_broken_payload_is_an_error_and_not_a_wrong_answer() {
    let read = read_after(
        "UPDATE journal SET payload = substr(payload, 1, length(payload) - 3) WHERE first_seq = 2",
    )
    .await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
}

#[tokio::test]
async fn a_changed_letter_is_an_error_and_not_a_wrong_answer() {
    let folder = filled().await;
    let db = Connection::open(database(&folder)).unwrap();
    let sql = "SELECT payload FROM journal WHERE first_seq > 2 ORDER BY first_seq LIMIT 1";
    let mut payload: Vec<u8> = db.query_row(sql, [], |row| row.get(0)).unwrap();
    let letter = payload.iter().position(|byte| *byte == b'x').unwrap();
    payload[letter + 100] = b'y';
    let sql = "UPDATE journal SET payload = ?1
        WHERE first_seq = (SELECT min(first_seq) FROM journal WHERE first_seq > 2)";
    assert_eq!(db.execute(sql, [payload]).unwrap(), 1);
    db.execute("UPDATE agent_messages SET content = content || '.' WHERE sequence_number = 1", []).unwrap();
    drop(db);
    let store = SqliteStore::open(config(&folder)).unwrap();
    let read = store.read(launch(1).0.id, Sequence::START, WHOLE).await;
    assert!(matches!(&read, Err(StoreError::Corrupt(what)) if what.contains("checksum")), "{read:?}");
    let read = store.messages(launch(1).0.id, Sequence::START, WHOLE).await;
    assert!(matches!(&read, Err(StoreError::Corrupt(what)) if what.contains("checksum")), "{read:?}");
}

#[tokio::test]
async fn a_hole_is_an_error_and_not_skipped() {
    let read = read_after("DELETE FROM journal WHERE first_seq = 2").await;
    assert!(matches!(&read, Err(StoreError::Corrupt(what)) if what.contains("missing")), "{read:?}");
}

#[tokio::test]
async fn a_journal_that_does_not_end_at_its_head_is_refused() {
    for sql in ["UPDATE heads SET head = head - 1", "UPDATE heads SET head = head + 1", "DELETE FROM heads"] {
        let folder = filled().await;
        edit(&folder, sql);
        let error = refused(config(&folder));
        assert!(matches!(error, OpenError::Corrupt { .. }), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_database_that_was_emptied_is_not_taken_for_a_new_one() {
    let folder = filled().await;
    std::fs::write(database(&folder), "").unwrap();
    let error = refused(config(&folder));
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    std::fs::remove_file(database(&folder)).unwrap();
    SqliteStore::open(config(&folder)).unwrap();
}

#[test]
fn a_first_start_that_was_cut_short_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(database(&folder), "").unwrap();
    SqliteStore::open(config(&folder)).unwrap();
}

#[tokio::test]
async fn rows_of_the_first_version_are_read_and_added_to() {
    let folder = filled().await;
    let range = TurnRange { limit: 9, ..TurnRange::default() };
    let store = SqliteStore::open(config(&folder)).unwrap();
    let turns = store.list_turns(launch(1).0.id, range, WHOLE_LIST).await.unwrap();
    assert!(
        turns.items.iter().any(|turn| turn.ended_at.is_some() && turn.stop_reason.is_some()),
        "{turns:?}"
    );
    store.close().await;
    edit(
        &folder,
        "ALTER TABLE heads DROP COLUMN epoch;
        DROP TABLE prompt_images;
        ALTER TABLE turns DROP COLUMN images;
        ALTER TABLE turns DROP COLUMN base_commit;
        ALTER TABLE turns DROP COLUMN ended_at;
        ALTER TABLE turns DROP COLUMN stop_reason;
        ALTER TABLE commits DROP COLUMN to_wipe;
        ALTER TABLE journal DROP COLUMN checksum;
        ALTER TABLE agent_messages DROP COLUMN checksum;
        DROP INDEX agents_pinned;
        DROP INDEX agents_launched_by;
        ALTER TABLE agents DROP COLUMN launch_depth;
        ALTER TABLE agents DROP COLUMN launched_by;
        ALTER TABLE agents DROP COLUMN pinned;
        ALTER TABLE agents DROP COLUMN archived;
        ALTER TABLE agents DROP COLUMN copy;
        ALTER TABLE agents DROP COLUMN replay_of;
        ALTER TABLE agents DROP COLUMN replay_until;
        ALTER TABLE agents DROP COLUMN replay_speed;
        PRAGMA user_version = 1",
    );
    let store = SqliteStore::open(config(&folder)).unwrap();
    let id = launch(1).0.id;
    let events = store.read(id, Sequence::START, WHOLE).await.unwrap();
    assert!(!store.messages(id, Sequence::START, WHOLE).await.unwrap().events.is_empty());
    assert_eq!(store.list_turns(id, range, WHOLE_LIST).await.unwrap(), turns, "their ends are found");
    let agent = store.get(id).await.unwrap().unwrap();
    assert_eq!((agent.pinned, agent.archived), (false, false));
    while store.compact_next().await.unwrap() {}
    assert_eq!(store.read(id, Sequence::START, WHOLE).await.unwrap(), events);
    store.close().await;
    is_sound(&folder);
}

#[tokio::test]
async fn a_message_that_was_never_ended_is_found() {
    let (store, folder) = fresh();
    let (_, mut scribe) = running(&store, 1).await;
    saved(&store, scribe.say(vec![text_delta(5, "and then")])).await;
    is_sound(&folder);
    saved(&store, scribe.end(TurnOutcome::Completed)).await;
    let faults = crate::sqlite_doctor(folder.path()).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.detail.contains("a message was never ended")), "{faults:?}");
}

#[tokio::test]
async fn each_broken_rule_is_found() {
    for (sql, rule) in [
        ("DELETE FROM heads", "every agent has a row in heads"),
        (
            "UPDATE heads SET head = head + 1",
            "the stored head equals the latest sequence number in the journal",
        ),
        ("DELETE FROM journal WHERE first_seq = 2", "sequence numbers have no gaps"),
        ("UPDATE journal SET turn = 7 WHERE first_seq = 2", "every batch belongs to a turn"),
        (
            "INSERT INTO prompt_images (agent, turn, position, media_type, data, checksum)
            SELECT min(key), 70, 0, 'image/png', x'', 0 FROM agents",
            "every image belongs to a turn",
        ),
        ("UPDATE turns SET images = 'image/png 68'", "a turn has the images that it lists"),
        (
            "INSERT INTO prompt_images (agent, turn, position, media_type, data, checksum)
            SELECT min(key), 1, 0, 'image/png', x'', 0 FROM agents;
            UPDATE turns SET images = 'image/png 0'",
            "every image is readable",
        ),
        ("UPDATE turns SET last_sequence = 3", "no event follows the result"),
        ("UPDATE agent_messages SET type = 'error' WHERE type = 'response'", "an ended turn has one"),
        ("UPDATE agent_messages SET type = 'response' WHERE type = 'error'", "there are as many results"),
        (
            "UPDATE agent_messages SET sequence_number = 99 WHERE type = 'response'",
            "every message has a sequence number",
        ),
        (
            "UPDATE agents SET status = 'running'",
            "an agent has a running turn if and only if its status is running",
        ),
        ("UPDATE agents SET status = 'initializing'", "an agent that has not started"),
        ("UPDATE heads SET open_from = 1", "no message is incomplete unless a turn is running"),
        ("UPDATE agents SET status = 'failed'", "the status of an ended agent matches its latest result"),
        ("UPDATE turns SET first_sequence = 2", "a turn begins after the previous turn has ended"),
        ("UPDATE turns SET number = 2", "turn numbers have no gaps"),
        ("INSERT INTO tombstones SELECT id, 0 FROM agents", "a purged id is never reused"),
        (
            "UPDATE agent_messages SET content = 'changed' WHERE sequence_number = 1",
            "every event is readable",
        ),
        ("DELETE FROM agent_messages WHERE type = 'system'", "every event is readable"),
    ] {
        let folder = filled().await;
        edit(&folder, sql);
        let faults = crate::sqlite_doctor(folder.path()).unwrap().faults;
        assert!(faults.iter().any(|fault| fault.rule.starts_with(rule)), "{sql}: {faults:?}");
    }
}

/// An agent that is about to be imported, and its first turn.
fn to_import() -> (Agent, Turn) {
    let (agent, turn) = launch(1);
    let status = AgentStatus::Interrupted;
    (Agent { copy: Some(Copied::File), status, turn: TurnNumber::default(), queued: 0, ..agent }, turn)
}

/// An import adds turns before their events. Until it is finished, a backup must work, and `doctor` must find no fault.
#[tokio::test]
async fn an_import_in_progress_is_no_damage() {
    let (store, folder) = fresh();
    let (agent, turn) = to_import();
    let second = Turn {
        number: TurnNumber(2),
        state: TurnState::Ended(TurnOutcome::Completed),
        first_sequence: Some(Sequence(3)),
        last_sequence: Some(Sequence(4)),
        ..turn
    };
    store.begin_import(agent).await.unwrap();
    store.import_turns(second.agent, vec![second.into()]).await.unwrap();
    is_sound(&folder);
}

/// The server that has exported an agent may have lost images.
#[tokio::test]
async fn an_imported_turn_may_lack_the_images_that_were_lost_before_and_no_others() {
    let (store, folder) = fresh();
    let (agent, turn) = to_import();
    let turn = Turn {
        state: TurnState::Ended(TurnOutcome::Completed),
        first_sequence: Some(Sequence(1)),
        last_sequence: Some(Sequence(2)),
        ..turn
    };
    let (lost, kept) = (image(ImageType::Gif, "lost").summary(), image(ImageType::Png, "kept"));
    let new = NewTurn::with_lost(turn, vec![TurnImage::Lost(lost), TurnImage::File(kept)]);
    store.begin_import(agent).await.unwrap();
    store.import_turns(new.turn().agent, vec![new]).await.unwrap();
    is_sound(&folder);
    for change in ["position = 0", "position = 2", "media_type = 'image/gif'"] {
        edit(&folder, &format!("UPDATE prompt_images SET {change}"));
        let faults = crate::sqlite_doctor(folder.path()).unwrap().faults;
        let is_found = |fault: &crate::Fault| fault.rule == "a turn has the images that it lists";
        assert!(faults.iter().any(is_found), "{change}: {faults:?}");
        edit(&folder, "UPDATE prompt_images SET position = 1, media_type = 'image/png'");
        is_sound(&folder);
    }
    edit(&folder, "DELETE FROM prompt_images");
    let faults = crate::sqlite_doctor(folder.path()).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.rule == "a turn has the images that it lists"), "{faults:?}");
}
