//! A move that is refused changes nothing, and says what to do.

use super::*;
use crate::mover::Mover;
use crate::{DataFolder, OpenError};

/// Why the folder does not move. Nothing was changed.
async fn refused(folder: &TempDir, database: &Database) -> MoveError {
    let error = moved(folder.path(), database).await.expect_err("it has moved");
    let is_there = database.sql("SELECT to_regclass('agents') IS NOT NULL");
    if is_there == "t" {
        let left = "SELECT (SELECT count(*) FROM agents) + (SELECT count(*) FROM journal)";
        assert_eq!(database.sql(left), "0", "after {error}");
        assert_eq!(database.sql("SELECT to_regclass('unfinished_move')"), "");
    }
    assert!(DataFolder::claim(folder.path()).is_err(), "the folder still has its data");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_in_use_or_has_no_data_is_refused() {
    let (history, database) = (history().await, database());
    let store = sqlite(history.folder.path());
    let error = refused(&history.folder, &database).await;
    assert!(matches!(&error, MoveError::Folder(OpenError::Locked { .. })), "{error:?}");
    assert!(error.to_string().contains("stop it"), "{error}");
    store.close().await;
    let nothing = history.folder.path().join("nothing");
    let error = moved(&nothing, &database).await.unwrap_err();
    assert!(matches!(&error, MoveError::NoData { .. }) && !nothing.exists(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_with_agents_is_refused_and_stays_as_it_is() {
    let (history, database) = (history().await, database());
    let store = PostgresStore::open(config(&database)).await.unwrap();
    store.join().await.unwrap();
    store.create(launch(1).0, launch(1).1.into(), None).await.unwrap();
    store.close().await;
    let error = moved(history.folder.path(), &database).await.unwrap_err();
    assert!(matches!(&error, MoveError::NotEmpty { database: name } if name == database.name()), "{error:?}");
    assert!(error.to_string().contains("create an empty database"), "{error}");
    assert_eq!(database.sql("SELECT count(*) FROM agents"), "1");
    assert!(DataFolder::claim(history.folder.path()).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_a_server_uses_is_refused() {
    let (history, database) = (history().await, database());
    let server = PostgresStore::open(config(&database)).await.unwrap();
    server.check().await.unwrap();
    let error = refused(&history.folder, &database).await;
    assert!(matches!(error, MoveError::InUse { .. }), "{error:?}");
    server.close().await;
    drop(server);
    moved(history.folder.path(), &database).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_an_older_version_is_not_migrated() {
    let (history, database) = (history().await, database());
    edit(&history.folder, "PRAGMA user_version = 11");
    let error = refused(&history.folder, &database).await;
    assert!(matches!(error, MoveError::Folder(OpenError::OlderSchema { missing: 1 })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn corrupt_data_names_the_agent_and_what_to_do() {
    // The damage is near the end, so the move has sent a lot of data before it finds it.
    let agent = launch(9).0.id;
    let of_agent = format!("agent = (SELECT key FROM agents WHERE id = '{agent}')");
    let message = format!("agent_id = '{agent}' AND sequence_number = 8");
    for damage in [
        format!("UPDATE journal SET checksum = 1 WHERE {of_agent}"),
        format!("UPDATE journal SET codec = 9, checksum = NULL WHERE {of_agent}"),
        format!("UPDATE journal SET first_seq = 3 WHERE first_seq = 2 AND {of_agent}"),
        format!("UPDATE agent_messages SET checksum = 1 WHERE {message}"),
        format!("UPDATE agent_messages SET created_at = 'today' WHERE {message}"),
        format!("UPDATE agent_messages SET id = 'none' WHERE {message}"),
    ] {
        let (history, database) = (history().await, database());
        edit(&history.folder, &damage);
        let error = refused(&history.folder, &database).await;
        let MoveError::Corrupt { what, .. } = &error else { panic!("{damage}: {error:?}") };
        assert_eq!(*what, format!("agent {agent}"), "{damage}");
        let text = error.to_string();
        assert!(text.contains("tokenrail doctor") && text.contains("nothing was moved"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_cannot_be_unpacked_is_found_before_the_folder_is_handed_over() {
    let (history, database) = (history().await, database());
    let agent = launch(9).0.id;
    edit(
        &history.folder,
        &format!(
            "UPDATE journal SET payload = X'00', checksum = NULL
            WHERE first_seq = 2 AND agent = (SELECT key FROM agents WHERE id = '{agent}')"
        ),
    );
    let error = moved(history.folder.path(), &database).await.unwrap_err();
    let MoveError::Corrupt { what, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*what, format!("agent {agent}"));
    assert!(DataFolder::claim(history.folder.path()).is_err(), "the folder still has its data");
    assert!(PostgresStore::open(config(&database)).await.is_err(), "no server uses the copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_differs_is_not_used() {
    let agent = launch(9).0.id;
    let of_agent = format!("agent = (SELECT key FROM agents WHERE id = '{agent}')");
    for (change, what) in [
        (format!("UPDATE journal SET payload = payload || 'x'::bytea WHERE {of_agent}"), "agent"),
        (format!("UPDATE turns SET stop_reason = 'x' WHERE {of_agent}"), "agent"),
        (format!("UPDATE agents SET cost_usd = 7 WHERE id = '{agent}'"), "agent"),
        (format!("DELETE FROM agent_messages WHERE sequence_number = 8 AND {of_agent}"), "agent"),
        (format!("UPDATE heads SET head = head + 1 WHERE {of_agent}"), "the data folder"),
        ("UPDATE idempotency SET queued = 9".to_owned(), "the idempotency keys"),
        ("UPDATE tombstones SET purged_at = 9".to_owned(), "the ids of purged agents"),
        ("DELETE FROM tombstones".to_owned(), "the data folder"),
    ] {
        let (history, database) = (history().await, database());
        let mover = Mover::begin(history.folder.path(), config(&database)).await.unwrap();
        let counts = mover.source.counts().await.unwrap();
        mover.copy(&counts, MoveStep::Copying, &mut |_| {}).await.unwrap();
        database.sql(&change);
        let error = mover.compare(&counts, &mut |_| {}).await.unwrap_err();
        drop(mover);
        let expected = if what == "agent" { format!("agent {agent}") } else { what.to_owned() };
        assert!(matches!(&error, MoveError::Differs { what } if *what == expected), "{change}: {error:?}");
        assert!(DataFolder::claim(history.folder.path()).is_err(), "the folder still has its data");
        assert!(PostgresStore::open(config(&database)).await.is_err(), "no server uses the copy");
    }
}
