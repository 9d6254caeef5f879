//! Connections that break or hang, and servers that go away.

use tokenrail_test_postgres::Replication;

use super::*;

/// The connections of buses, the oldest first.
fn listeners(database: &Database) -> String {
    connections(database, &format!("LISTEN {CHANNEL}"))
}

fn senders(database: &Database) -> String {
    connections(database, "SELECT pg_notify")
}

fn connections(database: &Database, query: &str) -> String {
    format!(
        "SELECT pid FROM pg_stat_activity WHERE datname = '{}' AND query LIKE '{query}%' ORDER BY backend_start",
        database.name()
    )
}

fn end(database: &Database, connections: &str) -> String {
    database.sql(&format!("SELECT count(pg_terminate_backend(pid)) FROM ({connections}) AS found"))
}

#[tokio::test]
async fn a_listener_whose_connection_is_ended_is_replaced_and_says_so_once() {
    let database = tokenrail_test_postgres::database();
    let [one, other] = two(&database, patient()).await;
    for n in 0..3 {
        assert_eq!(end(&database, &listeners(&database)), "2");
        listening(&one).await;
        listening(&other).await;
        one.send_hint(Hint::Created(agent(n)));
        other.send_hint(Hint::Changed(agent(n)));
        assert_eq!(heard(&one).await, Heard::Hints(vec![Hint::Changed(agent(n))]));
        assert_eq!(heard(&other).await, Heard::Hints(vec![Hint::Created(agent(n))]));
    }
}

#[tokio::test]
async fn nothing_is_lost_when_the_connections_of_the_senders_are_ended() {
    let database = tokenrail_test_postgres::database();
    let [one, other] = two(&database, patient()).await;
    for n in 0..5 {
        let hint = Hint::Created(agent(n));
        one.send_hint(hint);
        assert_eq!(end(&database, &senders(&database)), "2");
        one.send_hint(Hint::Changed(agent(n)));
        let hints = heard_up_to(&other, Hint::Changed(agent(n))).await;
        assert!(hints.contains(&hint), "{hints:?}");
        // Both senders have a connection again.
        arrives(&one, &other, 100 + n).await;
        arrives(&other, &one, 100 + n).await;
    }
}

#[tokio::test]
async fn a_bus_goes_on_when_the_server_is_back() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    server.stop();
    let [one, other] = {
        let connector = connector(config(&database, PostgresLimits { hint_retry_ms: 20, ..patient() }));
        [PostgresBus::start(&connector), PostgresBus::start(&connector)]
    };
    one.send_hint(Hint::Created(agent(1)));
    tokio::task::yield_now().await;
    assert!(!one.is_working() && !other.is_working(), "there was no server yet");
    let ends: [fn(&Server); 3] = [Server::stop_immediately, Server::kill_9, Server::stop];
    for end in ends {
        server.start_again();
        listening(&one).await;
        listening(&other).await;
        arrives(&one, &other, 2).await;
        arrives(&other, &one, 2).await;
        end(&server);
        working(&one, false).await;
        working(&other, false).await;
        one.send_hint(Hint::Changed(agent(3)));
    }
}

/// The process on the other end hangs. The connection stays open.
#[tokio::test]
async fn a_listener_that_hears_nothing_is_replaced() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    let [one, other] = two(&database, impatient()).await;
    let frozen = server.freeze(&format!("{} OFFSET 1 LIMIT 1", listeners(&database)));
    working(&other, false).await;
    assert_eq!(heard(&other).await, Heard::Missed);
    working(&other, true).await;
    arrives(&one, &other, 1).await;
    arrives(&other, &one, 1).await;
    drop(frozen);
    // What the old listener hears now is of no use, and does no harm.
    arrives(&one, &other, 2).await;
    arrives(&other, &one, 2).await;
}

#[tokio::test]
async fn a_sender_that_gets_no_answer_is_replaced_and_sends_its_hints_again() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    let one = PostgresBus::start(&connector(config(&database, impatient())));
    listening(&one).await;
    let other = PostgresBus::start(&connector(config(&database, patient())));
    listening(&other).await;
    let frozen = server.freeze(&format!("{} LIMIT 1", senders(&database)));
    let hint = Hint::Created(agent(1));
    one.send_hint(hint);
    let mut hints = Vec::new();
    while !hints.contains(&hint) {
        match heard(&other).await {
            Heard::Hints(heard) => hints.extend(heard),
            Heard::Missed => panic!("the other bus is not disturbed"),
        }
    }
    working(&one, true).await;
    arrives(&other, &one, 2).await;
    drop(frozen);
}

/// Hints are worth no wait. Everything else of the store waits here.
#[tokio::test]
async fn hints_do_not_wait_for_a_standby() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    server.set_synchronous("nobody");
    let [one, other] = two(&database, patient()).await;
    arrives(&one, &other, 1).await;
    assert_eq!(
        (end(&database, &senders(&database)), end(&database, &listeners(&database))),
        ("2".into(), "2".into())
    );
    listening(&other).await;
    arrives(&one, &other, 2).await;
}

/// A standby takes no LISTEN and no NOTIFY.
#[tokio::test]
async fn a_bus_uses_the_server_that_takes_writes() {
    let primary = Server::start(Flush::Off);
    let database = primary.database();
    let standby = primary.standby(Replication::Asynchronous);
    let mut config = config(&database, PostgresLimits { hint_retry_ms: 20, ..patient() });
    config.url =
        config.url.replace(&primary.address(), &format!("{},{}", standby.address(), primary.address()));
    let connector = connector(config);
    let (one, other) = (PostgresBus::start(&connector), PostgresBus::start(&connector));
    listening(&one).await;
    listening(&other).await;
    arrives(&one, &other, 1).await;
    // The standby takes over.
    primary.kill_9();
    standby.promote();
    listening(&one).await;
    listening(&other).await;
    arrives(&one, &other, 2).await;
}
