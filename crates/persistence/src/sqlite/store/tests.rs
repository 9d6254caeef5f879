mod cheap_writes;
mod compaction;
mod damage;
mod faults;
mod wiping;

use std::future::{Ready, ready};

use tempfile::TempDir;
use tokenrail_domain::{Agent, Event, Sequence};
use tokenrail_ports::testing::MemoryStore;
use tokenrail_ports::testing::samples::{Scribe, WHOLE, launch};
use tokenrail_ports::{Append, IAgentRepository, IJournal};

use super::*;
use crate::Synchronous;

fn fresh() -> (SqliteStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (SqliteStore::open(config(&folder)).unwrap(), folder)
}

fn config(folder: &TempDir) -> SqliteConfig {
    SqliteConfig { synchronous: Synchronous::Normal, ..SqliteConfig::new(folder.path()) }
}

fn opened() -> Ready<(SqliteStore, TempDir)> {
    ready(fresh())
}

tokenrail_ports::store_contract!(opened);

/// Launches the `n`th sample agent and starts its first turn.
async fn running(store: &SqliteStore, n: u8) -> (Agent, Scribe) {
    let (agent, turn) = launch(n);
    let mut scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    store.append(scribe.start(&turn)).await.unwrap();
    (agent, scribe)
}

async fn saved(store: &SqliteStore, append: Append) -> Vec<Event> {
    let events = append.events.to_vec();
    store.append(append).await.unwrap();
    events
}

async fn everything(store: &SqliteStore, agent: &Agent) -> Vec<Event> {
    store.read(agent.id, Sequence::START, WHOLE).await.unwrap()
}

fn is_sound(folder: &TempDir) {
    assert_eq!(crate::sqlite_doctor(folder.path()).unwrap().faults, []);
}

#[test]
fn both_stores_do_the_same_with_any_commands() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, folder) = fresh();
    crate::same_as_memory::check(&runtime, &store, MemoryStore::new, 96);
    drop(store);
    is_sound(&folder);
}

#[tokio::test]
async fn the_place_of_an_append_is_found_without_compiling_anew() {
    let (store, folder) = fresh();
    let (agent, _) = running(&store, 1).await;
    let writer =
        open_writer(&crate::sqlite::database::folder::database_path(folder.path()), &config(&folder))
            .unwrap();
    for _ in 0..3 {
        let mut statement = writer.prepare_cached(crate::sqlite::statements::append::PLACE).unwrap();
        let head: i64 = statement.query_row([agent.id.to_string()], |row| row.get("head")).unwrap();
        assert_eq!((head, statement.get_status(rusqlite::StatementStatus::RePrepare)), (1, 0));
    }
}
