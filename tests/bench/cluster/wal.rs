//! What a token takes in the write-ahead log of PostgreSQL, if nothing else is written.

use tokenrail_persistence::{NodeIdentity, Password, PostgresConfig, PostgresStore};
use tokenrail_ports::{IAgentRepository as _, IJournal as _, INodes as _, TurnStep};
use tokenrail_test_postgres::Server as Postgres;

use super::sheet::{Line, Sheet, Storage};
use super::site::wal_of;
use crate::raw::{append, begin, deltas, launch};
use crate::report::progress;
use crate::{Failure, Scale};

const TOKENS: u64 = 16_000;

pub(super) async fn measure(scale: Scale, postgres: &Postgres, sheet: &mut Sheet) -> Result<(), Failure> {
    for (line, batch) in [(Line::WalAlone, 1), (Line::WalOf32, 32)] {
        progress(line.as_str());
        let database = postgres.database();
        let store = PostgresStore::open(PostgresConfig {
            password: Some(Password::new(database.password())),
            node: Some(NodeIdentity { folder: [1; 16], name: "bench".to_owned() }),
            ..PostgresConfig::new(database.url())
        })
        .await?;
        store.join().await?;
        let (agent, turn) = launch();
        let id = agent.id;
        store.create(agent, turn.clone().into(), None).await?;
        store.append(begin(turn)).await?;
        // The first change of a page after a checkpoint writes the whole page.
        database.sql("CHECKPOINT");
        let before = wal_of(&database)?;
        let count = scale.of(TOKENS) / batch;
        for number in 0..count {
            store.append(append(id, deltas(2 + number * batch, batch), TurnStep::Continue)).await?;
        }
        let bytes = wal_of(&database)? - before;
        sheet.bytes(line, Storage::Postgres, bytes as f64 / (count * batch) as f64);
        store.close().await;
    }
    Ok(())
}
