//! A commit that no standby has may be lost with the primary, although it is visible.

use std::task::Poll;

use tokenrail_ports::testing::samples::notice;
use tokenrail_test_postgres::{Flush, Server};

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Not,
    ForNobody,
}

/// A server whose commits wait for standbys, or do not.
struct Waiting {
    server: Server,
    database: Database,
}

impl Waiting {
    fn new() -> Self {
        let server = Server::start(Flush::Off);
        let database = server.database();
        Self { server, database }
    }

    async fn store(&self) -> PostgresStore {
        PostgresStore::open(impatient(&self.database)).await.unwrap()
    }

    /// From now on commits wait for a standby that is not there, or no longer.
    async fn set(&self, waits: Waits) {
        let names = if waits == Waits::ForNobody { "nobody" } else { "" };
        self.server.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        self.server.sql("SELECT pg_reload_conf()");
        // No setting shows when it takes effect.
        let (probe, started) = (self.store().await, std::time::Instant::now());
        while probe.check().await.is_ok() == (waits == Waits::ForNobody) {
            assert!(started.elapsed() < PATIENCE, "the setting has no effect");
        }
    }

    /// Calls this function of the server for all connections whose commit waits, until the append is answered.
    async fn append_and(&self, end: &str, store: &PostgresStore, append: &Append) -> Result<(), StoreError> {
        let mut saving = Box::pin(store.append(append.clone()));
        loop {
            if let Poll::Ready(answer) = futures_util::poll!(&mut saving) {
                return answer;
            }
            let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
            self.server.sql(&format!("SELECT count({end}(pid)) {waiting}"));
        }
    }
}

/// The server answers such a commit as a success, with a warning, or ends the connection.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_wait_for_the_standby_ends_early_is_not_acknowledged() {
    for end in ["pg_cancel_backend", "pg_terminate_backend"] {
        let waiting = Waiting::new();
        let (store, reader) = (waiting.store().await, waiting.store().await);
        store.join().await.unwrap();
        let (agent, mut scribe) = running(&store, 1).await;
        waiting.set(Waits::ForNobody).await;
        let append = scribe.say(vec![notice("n")]);
        let answer = waiting.append_and(end, &store, &append).await;
        assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{end}: {answer:?}");
        assert_eq!(waiting.database.sql("SELECT head FROM heads"), "2", "it is visible");
        assert!(store.append(append.clone()).await.is_err(), "it cannot become durable");
        assert!(store.check().await.is_err());
        assert!(reader.read(agent.id, Sequence::START, WHOLE).await.is_err(), "nobody may be told");

        waiting.set(Waits::Not).await;
        save_at_last(&store, &append).await;
        assert_eq!(everything(&store, &agent).await.len(), 2);
        assert_eq!(everything(&reader, &agent).await.len(), 2);
    }
}

/// The connection of the second store is older than the append that it finds.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_saved_before_is_acknowledged_only_if_the_standby_has_it() {
    let waiting = Waiting::new();
    let (store, other) = (waiting.store().await, waiting.store().await);
    store.join().await.unwrap();
    let (_, mut scribe) = running(&store, 1).await;
    let before = scribe.say(vec![notice("before")]);
    other.append(before).await.unwrap();
    waiting.set(Waits::ForNobody).await;
    let append = scribe.say(vec![notice("n")]);
    waiting.append_and("pg_cancel_backend", &store, &append).await.unwrap_err();
    let answer = other.append(append.clone()).await;
    assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{answer:?}");
    waiting.set(Waits::Not).await;
    other.append(append).await.unwrap();
}

/// Its beats say that it is alive, and not that the standby is.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_beats_while_commits_wait_for_a_standby() {
    let waiting = Waiting::new();
    let store = waiting.store().await;
    store.join().await.unwrap();
    store.beat().await.unwrap();
    let (agent, _) = launch(1);
    store.create_idle(agent.clone()).await.unwrap();
    waiting.set(Waits::ForNobody).await;
    assert!(store.check().await.is_err());
    // Its transaction waits too, with its locks.
    assert!(store.claim(agent.id).await.is_err());
    assert_eq!(store.beat().await.unwrap()[0].pulse.beat, 2);
    assert_eq!(store.nodes().await.unwrap()[0].pulse.beat, 2);
}
