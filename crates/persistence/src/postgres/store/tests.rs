mod crashes;
mod opening;
mod several;
mod standby;

use tokenrail_domain::Agent;
use tokenrail_ports::testing::samples::{Scribe, WHOLE, launch};
use tokenrail_ports::{Append, IAgentRepository, IJournal};
use tokenrail_test_postgres::Database;

use super::*;
use crate::Password;

async fn fresh() -> (PostgresStore, Database) {
    let database = tokenrail_test_postgres::database();
    (PostgresStore::open(config(&database)).await.unwrap(), database)
}

fn config(database: &Database) -> PostgresConfig {
    let password = Some(Password::new(database.password()));
    PostgresConfig { password, ..PostgresConfig::new(database.url()) }
}

/// How long a test waits for what must happen. It is far longer than anything takes: it only ends a test that hangs.
const PATIENCE: Duration = Duration::from_mins(1);

fn until(what: &str, condition: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what} does not happen");
    }
}

/// Short waits, so that a test that needs one does not take long.
fn impatient(database: &Database) -> PostgresConfig {
    let mut config = config(database);
    (config.limits.connect_timeout_ms, config.limits.answer_timeout_ms) = (500, 500);
    config
}

tokenrail_ports::store_contract!(fresh);

#[test]
fn both_stores_do_the_same_with_any_commands() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, _database) = runtime.block_on(fresh());
    crate::same_as_memory::check(&runtime, &store, 48);
}

/// Launches the `n`th sample agent and starts its first turn.
async fn running(store: &PostgresStore, n: u8) -> (Agent, Scribe) {
    let (agent, turn) = launch(n);
    let mut scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    store.append(scribe.start(&turn)).await.unwrap();
    (agent, scribe)
}

/// Appends as a task does: the same again, until it is known what became of it.
async fn save_at_last(store: &PostgresStore, append: &Append) {
    let started = std::time::Instant::now();
    while let Err(error) = store.append(append.clone()).await {
        assert!(error.is_transient() && started.elapsed() < PATIENCE, "{error:?}");
        tokio::task::yield_now().await;
    }
}

async fn everything(store: &PostgresStore, agent: &Agent) -> Vec<Event> {
    store.read(agent.id, Sequence::START, WHOLE).await.unwrap()
}
