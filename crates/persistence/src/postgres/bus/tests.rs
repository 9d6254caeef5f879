mod failures;
mod floods;

use std::future::{Ready, ready};
use std::time::Duration;

use tokenrail_ports::testing::contract::bus::{agent, heard, heard_up_to, listening, working};
use tokenrail_ports::{Heard, Hint, IBus};
use tokenrail_test_postgres::{Database, Flush, Server};
use tokio::runtime::Handle;

use super::*;
use crate::postgres::config::PostgresLimits;
use crate::postgres::database::address::Address;
use crate::postgres::database::known_server::KnownServer;
use crate::postgres::database::opening_places::OpeningPlaces;
use crate::postgres::database::steps::RELEASED;
use crate::postgres::database::tls;
use crate::postgres::figures::Figures;
use crate::{Password, PostgresConfig, PostgresStore};

fn fresh() -> Ready<([PostgresBus; 2], Database)> {
    let database = tokenrail_test_postgres::database();
    let connector = connector(config(&database, patient()));
    ready(([PostgresBus::start(&connector), PostgresBus::start(&connector)], database))
}

tokenrail_ports::bus_contract!(fresh);

/// A listener is not replaced only because the machine is busy.
fn patient() -> PostgresLimits {
    PostgresLimits { hint_wait_ms: 60_000, ..PostgresLimits::default() }
}

/// What hangs is noticed soon, and only by the check.
fn impatient() -> PostgresLimits {
    PostgresLimits {
        hint_check_ms: 50,
        hint_wait_ms: 500,
        hint_retry_ms: 20,
        answer_timeout_ms: 600_000,
        ..PostgresLimits::default()
    }
}

fn config(database: &Database, limits: PostgresLimits) -> PostgresConfig {
    let password = Some(Password::new(database.password()));
    PostgresConfig { password, limits, ..PostgresConfig::new(database.url()) }
}

fn connector(config: PostgresConfig) -> Arc<Connector> {
    let address = Address::of(&config).unwrap();
    let tls = tls::connector(&address.check).unwrap();
    let PostgresConfig { durability, limits, .. } = config;
    let known = Arc::new(KnownServer::new(None));
    let places = address.drivers.iter().map(|_| OpeningPlaces::new(limits.openings)).collect();
    Arc::new(Connector {
        address,
        tls,
        durability,
        limits,
        figures: Figures::default(),
        steps: &RELEASED,
        known,
        places,
        runtime: Handle::current(),
    })
}

/// Two buses that listen and work, the older one first.
async fn two(database: &Database, limits: PostgresLimits) -> [PostgresBus; 2] {
    let connector = connector(config(database, limits));
    let one = PostgresBus::start(&connector);
    listening(&one).await;
    let other = PostgresBus::start(&connector);
    listening(&other).await;
    [one, other]
}

/// Rings again and again until the other bus hears it, whatever else it hears.
async fn arrives(one: &PostgresBus, other: &PostgresBus, n: u32) {
    let hint = Hint::Created(agent(n));
    loop {
        one.send_hint(hint);
        if let Heard::Hints(hints) = heard(other).await
            && hints.contains(&hint)
        {
            return;
        }
    }
}

#[tokio::test]
async fn stores_on_one_database_share_a_bus() {
    let database = tokenrail_test_postgres::database();
    let mut buses = Vec::new();
    for _ in 0..3 {
        let store = PostgresStore::open(config(&database, patient())).await.unwrap();
        buses.push(store.bus());
        // The bus needs the store no longer.
        store.close().await;
    }
    for bus in &buses {
        listening(bus).await;
    }
    buses[0].send_hint(Hint::Created(agent(1)));
    for bus in &buses[1..] {
        assert_eq!(heard(bus).await, Heard::Hints(vec![Hint::Created(agent(1))]));
    }
}

#[tokio::test]
async fn the_time_of_hints_is_counted() {
    let database = tokenrail_test_postgres::database();
    let [one, _other] = two(&database, impatient()).await;
    let before = one.figures();
    assert!(0 < before.checks && Duration::ZERO < before.check_time, "{before:?}");
    while one.figures().checks == before.checks {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(before.check_time < one.figures().check_time);
}

#[tokio::test]
async fn databases_of_one_server_do_not_hear_each_other() {
    let (first, second) = (tokenrail_test_postgres::database(), tokenrail_test_postgres::database());
    let [one, other] = two(&first, patient()).await;
    let [elsewhere, listens] = two(&second, patient()).await;
    one.send_hint(Hint::Created(agent(1)));
    assert_eq!(heard(&other).await, Heard::Hints(vec![Hint::Created(agent(1))]));
    elsewhere.send_hint(Hint::Created(agent(2)));
    assert_eq!(heard(&listens).await, Heard::Hints(vec![Hint::Created(agent(2))]));
}

#[tokio::test]
async fn a_notify_that_makes_no_sense_is_heard_as_missed() {
    let database = tokenrail_test_postgres::database();
    let [one, other] = two(&database, patient()).await;
    let id = "019a0000000070008000000000000001";
    let senseless =
        [String::new(), "x".to_owned(), format!("1 {id} z"), format!("2 {id} e3"), "ü".repeat(3999)];
    for payload in senseless {
        database.sql(&format!("NOTIFY {CHANNEL}, '{payload}'"));
        assert_eq!((heard(&one).await, heard(&other).await), (Heard::Missed, Heard::Missed));
        arrives(&one, &other, 1).await;
    }
    database.sql("NOTIFY another_channel, 'x'");
    database.sql(&format!("NOTIFY {CHANNEL}, '1 {id} e3 k7'"));
    let understood = Heard::Hints(vec![Hint::Errand(tokenrail_domain::NodeId(3))]);
    assert_eq!((heard(&one).await, heard(&other).await), (understood.clone(), understood));
}

#[tokio::test]
async fn no_connection_is_left_of_a_bus_that_is_dropped() {
    let database = tokenrail_test_postgres::database();
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND usename = 'tokenrail'";
    let [one, other] = two(&database, patient()).await;
    assert_eq!(database.sql(connections), "4");
    drop(one);
    until(&database, connections, "2").await;
    drop(other);
    until(&database, connections, "0").await;
}

async fn until(database: &Database, query: &str, value: &str) {
    let started = std::time::Instant::now();
    while database.sql(query) != value {
        assert!(started.elapsed() < Duration::from_mins(1), "{query} does not become {value}");
        tokio::task::yield_now().await;
    }
}
