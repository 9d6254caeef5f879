mod crashes;
mod opening;
mod several;

use tokenrail_domain::Agent;
use tokenrail_ports::testing::samples::{Scribe, WHOLE, launch};
use tokenrail_ports::{IAgentRepository, IJournal};
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

async fn everything(store: &PostgresStore, agent: &Agent) -> Vec<Event> {
    store.read(agent.id, Sequence::START, WHOLE).await.unwrap()
}
