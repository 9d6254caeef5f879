mod adoption;
mod away;
mod bounded;
mod catching_up;
mod crashes;
mod failovers;
mod healing;
mod network;
mod nodes;
mod opening;
mod purges;
mod repeats;
mod several;
mod shown;
mod standby;
mod takeovers;
mod upgrades;

use tokenrail_domain::Agent;
use tokenrail_ports::testing::MemoryStore;
use tokenrail_ports::testing::contract::nodes::Servers;
use tokenrail_ports::testing::samples::{Scribe, WHOLE, launch};
use tokenrail_ports::{Append, IAgentRepository, IJournal, INodes};
use tokenrail_test_postgres::Database;

use super::*;
use crate::{NodeIdentity, Password};

async fn fresh() -> (PostgresStore, Database) {
    let database = tokenrail_test_postgres::database();
    (joined(config(&database)).await, database)
}

/// Opens the store, and joins.
async fn joined(config: PostgresConfig) -> PostgresStore {
    let store = PostgresStore::open(config).await.unwrap();
    store.join().await.unwrap();
    store
}

/// The first node.
fn config(database: &Database) -> PostgresConfig {
    config_of(database, 1)
}

/// The node whose data folder has this identity.
fn config_of(database: &Database, folder: u8) -> PostgresConfig {
    let password = Some(Password::new(database.password()));
    let node = Some(NodeIdentity { folder: [folder; 16], name: format!("host-{folder}") });
    PostgresConfig { password, node, ..PostgresConfig::new(database.url()) }
}

/// Another node of the same database.
async fn other_node(database: &Database) -> PostgresStore {
    joined(config_of(database, 2)).await
}

/// How long a test waits for what must happen. It is far longer than anything takes: it only ends a test that hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Counts connections to the test's own database that wait for a lock.
const LOCKED: &str = "
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what} does not happen");
    }
}

/// Short waits, so that a test that needs one does not take long; yet long enough for a machine that is busy.
fn impatient(database: &Database) -> PostgresConfig {
    let mut config = config(database);
    (config.limits.connect_timeout_ms, config.limits.answer_timeout_ms) = (2000, 2000);
    config
}

tokenrail_ports::store_contract!(fresh);

/// Servers on one database. Looks for changes do not overlap: a later look would hide that an earlier one has missed
/// something.
async fn shared() -> (Servers<PostgresStore>, Database) {
    let database = tokenrail_test_postgres::database();
    let open = async |folder| {
        let mut config = config_of(&database, folder);
        config.limits.touch_slack_ms = 0;
        PostgresStore::open(config).await.unwrap()
    };
    let (one, twin) = (open(1).await, open(1).await);
    let (other, third) = (open(2).await, open(3).await);
    (Servers { one, twin, other, third }, database)
}

tokenrail_ports::nodes_contract!(shared);

#[test]
fn both_stores_do_the_same_with_any_commands() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, _database) = runtime.block_on(fresh());
    crate::same_as_memory::check(&runtime, &store, MemoryStore::shared, 48);
}

#[test]
fn both_stores_do_the_same_with_any_commands_of_several_servers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    crate::same_as_memory::nodes::check(&runtime, shared, 24);
}

/// Launches the `n`th sample agent and starts its first turn. In tests with short waits, a busy machine may need more
/// than one attempt.
async fn running(store: &PostgresStore, n: u8) -> (Agent, Scribe) {
    let (agent, turn) = launch(n);
    let started = std::time::Instant::now();
    while let Err(error) = store.create(agent.clone(), turn.clone().into(), None).await {
        may_succeed_later(&error, started).await;
    }
    let mut scribe = Scribe::new(&agent);
    save_at_last(store, &scribe.start(&turn)).await;
    (agent, scribe)
}

/// Appends as a task does: the same again, until it is known what became of it.
async fn save_at_last(store: &PostgresStore, append: &Append) {
    let started = std::time::Instant::now();
    while let Err(error) = store.append(append.clone()).await {
        may_succeed_later(&error, started).await;
    }
}

/// Panics if another attempt is of no use.
async fn may_succeed_later(error: &StoreError, started: std::time::Instant) {
    assert!(error.is_transient() && started.elapsed() < PATIENCE, "{error:?}");
    tokio::task::yield_now().await;
}

async fn everything(store: &PostgresStore, agent: &Agent) -> Vec<Event> {
    store.read(agent.id, Sequence::START, WHOLE).await.unwrap()
}
