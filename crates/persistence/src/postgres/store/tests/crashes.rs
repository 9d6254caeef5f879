//! The server dies, or ends a connection, while agents are saying something.

use tokenrail_domain::{StopReason, TurnNumber, TurnOutcome};
use tokenrail_ports::testing::samples::{notice, queued_turn, text_delta};
use tokenrail_test_postgres::{Flush, Server};

use super::*;

/// Counts connections to the test's own database: other tests use the same server.
const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";

/// Some turns of one agent, with every kind of append.
async fn live(store: PostgresStore, n: u8, turns: u32) -> (Agent, Vec<Event>) {
    let (agent, turn) = launch(n);
    let mut scribe = Scribe::new(&agent);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    let mut events = Vec::new();
    let mut said = vec![scribe.start(&turn)];
    for number in 2..2 + turns {
        for text in 0..6 {
            let text = text_delta(0, &format!("{text} ").repeat(700));
            said.push(scribe.say(vec![text, notice("n")]));
        }
        let complete = scribe.complete(0);
        said.push(scribe.say(vec![complete]));
        let mut next = queued_turn(agent.id, TurnNumber(number), "");
        (next.run, next.stop) = (TurnNumber::FIRST, Some(StopReason::Cancelled));
        let chain = vec![scribe.end(TurnOutcome::Completed), scribe.start(&next)];
        said.push(Append::chain(chain).unwrap());
        for append in said.drain(..) {
            save_at_last(&store, &append).await;
            events.extend(append.parts().flat_map(|part| part.events.iter().cloned()));
        }
    }
    (agent, events)
}

const HOLES: &str = "
    SELECT count(*)
    FROM (
        SELECT first_seq, lag(last_seq, 1, 0::bigint) OVER (PARTITION BY agent ORDER BY first_seq) AS before
        FROM journal
    ) AS batches
    WHERE first_seq <> before + 1";

/// Runs some agents for so many turns, and `disturb` again and again until they are done. It returns what it has
/// disturbed. Every event must be there once.
async fn disturbed(server: &Server, turns: u32, disturb: impl Fn(&Database) -> u64) {
    let database = server.database();
    let store = joined(impatient(&database)).await;
    let (mut agents, mut lives, mut disturbances) = (JoinSet::new(), Vec::new(), 0);
    for n in 0..6 {
        agents.spawn(live(store.clone(), n, turns));
    }
    while database.sql("SELECT count(*) FROM heads WHERE 2 < head") != "6" {
        tokio::task::yield_now().await;
    }
    while !agents.is_empty() {
        disturbances += disturb(&database);
        // Some of them get further before the next disturbance.
        let before = database.sql("SELECT sum(head) FROM heads");
        while !agents.is_empty() && database.sql("SELECT sum(head) FROM heads") == before {
            while let Some(life) = agents.try_join_next() {
                lives.push(life.unwrap());
            }
            tokio::task::yield_now().await;
        }
    }
    assert!(0 < disturbances, "nothing was disturbed");
    for (agent, events) in &lives {
        assert_eq!(&everything(&store, agent).await, events);
    }
    assert_eq!((lives.len(), &*database.sql(HOLES)), (6, "0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_connections_are_ended() {
    let server = Server::start(Flush::Off);
    disturbed(&server, 5, |database| server.end_connections(database)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_statements_are_cancelled() {
    let server = Server::start(Flush::Off);
    // Only some of the looks find a statement that runs.
    disturbed(&server, 25, |database| {
        let busy = format!("datname = '{}' AND state <> 'idle'", database.name());
        let cancel = format!("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE {busy}");
        server.sql(&cancel).parse().unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_the_server_is_killed_and_started_again() {
    let server = Server::start(Flush::On);
    disturbed(&server, 5, |_| {
        server.kill_9();
        server.start_again();
        1
    })
    .await;
}

/// A statement that got no answer in time may still run, later than the one that was sent in its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_runs_late_changes_nothing() {
    let database = tokenrail_test_postgres::database();
    let mut config = impatient(&database);
    // The server must not notice that nobody waits for the old statement.
    config.limits.client_check_ms = 0;
    let store = joined(config).await;
    let (agent, mut scribe) = running(&store, 1).await;
    let blocker = store.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; SELECT FROM heads FOR UPDATE").await.unwrap();
    let append = scribe.say(vec![notice("n")]);
    let unknown = store.append(append.clone()).await;
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown(_))), "{unknown:?}");
    let waiting = format!("{CONNECTIONS} AND wait_event_type = 'Lock' AND query LIKE '%moved%'");
    assert_eq!(database.sql(&waiting), "2", "both statements still wait");
    blocker.batch("COMMIT").await.unwrap();
    save_at_last(&store, &append).await;
    store.append(scribe.say(vec![notice("next")])).await.unwrap();
    until("the end of the old statement", || database.sql(&waiting) == "0");
    assert_eq!(everything(&store, &agent).await.len(), 3);
    assert_eq!(database.sql("SELECT count(*), sum(last_seq - first_seq + 1) FROM journal"), "3|3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_finds_the_agent_locked_is_told_that_the_store_is_busy() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    config.limits.lock_timeout_ms = 50;
    let store = joined(config).await;
    let (agent, mut scribe) = running(&store, 1).await;
    let blocker = store.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; SELECT FROM heads FOR UPDATE").await.unwrap();
    let busy = store.cancel(agent.id, agent.created_at).await;
    assert!(matches!(busy, Err(StoreError::Busy)), "{busy:?}");
    let mut saving = Box::pin(store.append(scribe.say(vec![notice("n")])));
    assert!(futures_util::poll!(&mut saving).is_pending());
    blocker.batch("COMMIT").await.unwrap();
    saving.await.unwrap();
    assert_eq!(store.cancel(agent.id, agent.created_at).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_caller_stops_waiting_leaves_no_transaction_open() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    // The server does not end it either.
    config.limits.idle_transaction_ms = 0;
    let store = joined(config).await;
    let (agent, _) = running(&store, 1).await;
    let blocker = store.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; SELECT FROM heads FOR UPDATE").await.unwrap();
    let waiting = format!("{CONNECTIONS} AND wait_event_type = 'Lock'");
    let mut cancelling = Box::pin(store.cancel(agent.id, agent.created_at));
    while database.sql(&waiting) != "1" {
        assert!(futures_util::poll!(&mut cancelling).is_pending());
    }
    drop(cancelling);
    blocker.batch("COMMIT").await.unwrap();
    drop(blocker);
    assert_eq!(store.get(agent.id).await.unwrap().unwrap().queued, 0);
    let open = format!("{CONNECTIONS} AND state LIKE 'idle in transaction%'");
    until("the end of the transaction", || database.sql(&open) == "0");
    assert_eq!(store.cancel(agent.id, agent.created_at).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_is_left_of_a_store_that_is_dropped_or_closed() {
    let (store, database) = fresh().await;
    let connections = || {
        let name = database.name();
        database.sql(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND usename = 'tokenrail'"
        ))
    };
    running(&store, 1).await;
    assert_ne!(connections(), "0");
    drop(store);
    until("the end of the connections", || connections() == "0");
    let store = joined(config(&database)).await;
    running(&store, 2).await;
    store.close().await;
    until("the end of the connections", || connections() == "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_and_commands_go_on_when_the_server_is_back() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    let store = joined(impatient(&database)).await;
    let (agent, _) = running(&store, 1).await;
    server.stop_immediately();
    for _ in 0..2 {
        assert!(store.get(agent.id).await.is_err_and(|error| error.is_transient()));
        assert!(store.cancel(agent.id, agent.created_at).await.is_err_and(|error| error.is_transient()));
        assert!(store.check().await.is_err());
    }
    server.start_again();
    assert_eq!(store.get(agent.id).await.unwrap().unwrap().id, agent.id);
    assert_eq!(store.cancel(agent.id, agent.created_at).await.unwrap(), 1);
    store.check().await.unwrap();
}

/// Another epoch: this store no longer owns the agent.
#[tokio::test]
async fn a_former_owner_changes_nothing() {
    let (store, database) = fresh().await;
    let (agent, mut scribe) = running(&store, 1).await;
    store.append(scribe.say(vec![notice("mine")])).await.unwrap();
    database.sql("UPDATE heads SET epoch = epoch + 1");
    for append in [scribe.rehearse(vec![notice("late")]), scribe.end(TurnOutcome::Completed)] {
        let fenced = store.append(append).await;
        assert!(matches!(fenced, Err(StoreError::Fenced)), "{fenced:?}");
    }
    assert_eq!(everything(&store, &agent).await.len(), 2);
}
