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
