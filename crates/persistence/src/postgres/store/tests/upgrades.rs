//! Older and newer programs on one database.

use tokenrail_domain::{NodeId, TurnNumber, TurnOutcome};
use tokenrail_ports::Node;
use tokenrail_ports::testing::samples::queued_turn;

use super::*;

fn newer(database: &Database, folder: u8) -> PostgresConfig {
    PostgresConfig { has_test_step: true, ..config_of(database, folder) }
}

fn is_outdated<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Outdated { required, known }) if known < required)
}

/// Beats, and waits for the upkeep that follows.
async fn beat_and_look_after(store: &PostgresStore) -> Vec<Node> {
    let nodes = store.beat().await.unwrap();
    drop(store.inner.upkeep.lock().await);
    nodes
}

#[tokio::test]
async fn what_older_programs_need_is_removed_when_none_of_them_is_left() {
    let database = tokenrail_test_postgres::database();
    let older = joined(config(&database)).await;
    let late = PostgresStore::open(config_of(&database, 3)).await.unwrap();
    let newer_store = joined(newer(&database, 2)).await;
    let is_there = || database.sql("SELECT to_regclass('public.idempotency') IS NOT NULL") == "t";
    let (agent, _) = running(&older, 1).await;
    for store in [&older, &newer_store] {
        beat_and_look_after(store).await;
        assert_eq!(everything(store, &agent).await.len(), 1);
    }
    assert!(is_there(), "the older program is alive");
    older.leave().await.unwrap();
    let nodes = beat_and_look_after(&newer_store).await;
    assert!(is_there(), "the older program may come back");
    assert!(newer_store.declare_lost(NodeId(1), nodes[0].pulse).await.unwrap());
    beat_and_look_after(&newer_store).await;
    assert!(!is_there(), "nobody needs it");

    assert!(is_outdated(&older.beat().await));
    assert!(is_outdated(&late.join().await));
    let refused = PostgresStore::open(config(&database)).await.err();
    assert!(matches!(&refused, Some(PostgresOpenError::NewerSchema { .. })), "{refused:?}");
    let again = joined(newer(&database, 1)).await;
    assert_eq!(everything(&again, &agent).await.len(), 1);
    again.beat().await.unwrap();
}

/// A node that joins at the same moment either is there before, and keeps what it needs, or is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_node_that_joins_during_the_removal_is_refused_or_keeps_what_it_needs() {
    for _ in 0..10 {
        let database = tokenrail_test_postgres::database();
        let older = PostgresStore::open(config(&database)).await.unwrap();
        let newer = joined(newer(&database, 2)).await;
        let (join, _) = futures_util::future::join(older.join(), beat_and_look_after(&newer)).await;
        let is_there = database.sql("SELECT to_regclass('public.idempotency') IS NOT NULL") == "t";
        assert_eq!(join.is_ok(), is_there, "{join:?}");
        assert!(join.is_ok() || is_outdated(&join), "{join:?}");
    }
}

/// For example, `pg_dump` reads all tables in one transaction. What waits for a table that it uses lets nobody else use
/// that table.
#[tokio::test(flavor = "multi_thread")]
async fn the_other_nodes_work_while_a_migration_waits_for_a_long_transaction() {
    let database = tokenrail_test_postgres::database();
    let older = joined(config(&database)).await;
    let (agent, mut scribe) = running(&older, 1).await;
    let dump = older.inner.connector.connect_only().await.unwrap();
    dump.batch("BEGIN; SELECT count(*) FROM agents").await.unwrap();
    let starting = tokio::runtime::Handle::current().spawn(PostgresStore::open(newer(&database, 2)));
    for turn in 2..6 {
        until("the migration waits for the table", || database.sql(LOCKED) != "0");
        assert_eq!(older.get(agent.id).await.unwrap().unwrap().id, agent.id);
        older.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
        let message = queued_turn(agent.id, TurnNumber(turn), "go on");
        older.enqueue(message.into(), 9, None).await.unwrap();
        let next = older.open_turns(agent.id).await.unwrap().remove(0);
        older.append(scribe.start(&next)).await.unwrap();
        older.beat().await.unwrap();
    }
    assert!(!starting.is_finished(), "the transaction uses the table");
    dump.batch("ROLLBACK").await.unwrap();
    let newer = starting.await.unwrap().unwrap();
    newer.join().await.unwrap();
    assert_eq!(everything(&newer, &agent).await.len(), 9);
}

#[tokio::test]
async fn a_start_that_cannot_migrate_says_who_uses_the_tables() {
    let database = tokenrail_test_postgres::database();
    let older = joined(config(&database)).await;
    let dump = older.inner.connector.connect_only().await.unwrap();
    dump.batch("SET application_name = 'pg_dump'; BEGIN; SELECT count(*) FROM agents").await.unwrap();
    let pid = dump.said("SELECT pg_backend_pid()").await.unwrap();
    let mut impatient = newer(&database, 2);
    impatient.limits.migration_wait_ms = 100;
    let error = PostgresStore::open(impatient.clone()).await.err().unwrap().to_string();
    assert!(error.contains(&format!("process {pid} of the PostgreSQL server (pg_dump)")), "{error}");
    assert_eq!(
        database.sql("SELECT to_regclass('newer.idempotency') IS NULL"),
        "t",
        "nothing of it is there"
    );
    dump.batch("ROLLBACK").await.unwrap();
    PostgresStore::open(impatient).await.unwrap();
}
