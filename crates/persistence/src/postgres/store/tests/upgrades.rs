//! Older and newer programs on one database.

use tokenrail_domain::NodeId;

use super::*;

fn newer(database: &Database, folder: u8) -> PostgresConfig {
    PostgresConfig { has_test_step: true, ..config_of(database, folder) }
}

fn is_outdated<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Outdated { required, known }) if known < required)
}

#[tokio::test]
async fn what_older_programs_need_is_removed_when_none_of_them_is_left() {
    let database = tokenrail_test_postgres::database();
    let older = joined(config(&database)).await;
    let late = PostgresStore::open(config_of(&database, 3)).await.unwrap();
    let newer_store = joined(newer(&database, 2)).await;
    let is_there = || database.sql("SELECT to_regclass('older_programs') IS NOT NULL") == "t";
    let (agent, _) = running(&older, 1).await;
    for store in [&older, &newer_store] {
        store.beat().await.unwrap();
        assert_eq!(everything(store, &agent).await.len(), 1);
    }
    assert!(is_there(), "the older program is alive");
    older.leave().await.unwrap();
    let nodes = newer_store.beat().await.unwrap();
    assert!(is_there(), "the older program may come back");
    assert!(newer_store.declare_lost(NodeId(1), nodes[0].pulse).await.unwrap());
    newer_store.beat().await.unwrap();
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
        let (join, beat) = futures_util::future::join(older.join(), newer.beat()).await;
        beat.unwrap();
        let is_there = database.sql("SELECT to_regclass('older_programs') IS NOT NULL") == "t";
        assert_eq!(join.is_ok(), is_there, "{join:?}");
        assert!(join.is_ok() || is_outdated(&join), "{join:?}");
    }
}
