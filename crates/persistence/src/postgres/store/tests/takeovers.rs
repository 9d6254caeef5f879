//! Takeovers that meet a join, another takeover or the end of their connection.

use std::collections::BTreeSet;

use tokenrail_domain::{AgentId, NodeId, TurnOutcome};
use tokenrail_ports::testing::samples::notice;
use tokenrail_ports::{Epoch, Pulse};
use tokenrail_test_postgres::{Flush, Server};

use super::*;

async fn lose(by: &PostgresStore, node: NodeId) {
    let seen = pulse(by, node).await;
    assert!(by.declare_lost(node, seen).await.unwrap());
}

async fn pulse(store: &PostgresStore, node: NodeId) -> Pulse {
    let nodes = store.nodes().await.unwrap();
    nodes.into_iter().find(|it| it.id == node).unwrap().pulse
}

/// Two nodes that wait long for locks.
async fn patient() -> (PostgresStore, PostgresStore, Database) {
    let database = tokenrail_test_postgres::database();
    let open = async |folder| {
        let mut config = config_of(&database, folder);
        (config.limits.lock_timeout_ms, config.limits.answer_timeout_ms) = (60_000, 60_000);
        joined(config).await
    };
    (open(1).await, open(2).await, database)
}

/// Two nodes of which the first is lost, an agent that it has left behind, and a connection that keeps everybody from
/// the agents until it commits.
struct Lost {
    one: PostgresStore,
    other: PostgresStore,
    database: Database,
    agent: Agent,
    scribe: Scribe,
    blocker: Link,
}

async fn lost_and_blocked() -> Lost {
    let (one, other, database) = patient().await;
    let (agent, scribe) = running(&one, 1).await;
    lose(&other, NodeId(1)).await;
    let blocker = other.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; SELECT FROM heads FOR UPDATE").await.unwrap();
    Lost { one, other, database, agent, scribe, blocker }
}

/// The takeover has the node's lock and waits for the agent's. Then the node joins.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_during_a_takeover_does_not_keep_what_is_taken() {
    let Lost { one, other, database, agent, scribe: former, blocker } = lost_and_blocked().await;
    let mut work = JoinSet::new();
    let taker = other.clone();
    work.spawn(async move { taker.take_over(agent.id).await.map(|epoch| epoch.is_some()) });
    until("the takeover waits", || database.sql(LOCKED) == "1");
    let joining = one.clone();
    work.spawn(async move { joining.join().await.map(|_| true) });
    until("the join waits", || database.sql(LOCKED) == "2");
    blocker.batch("COMMIT").await.unwrap();
    while let Some(done) = work.join_next().await {
        assert!(done.unwrap().unwrap());
    }
    assert_eq!(one.claim(agent.id).await.unwrap(), None);
    let epoch = other.claim(agent.id).await.unwrap().unwrap();
    other.append(former.at_epoch(epoch).end(TurnOutcome::Interrupted)).await.unwrap();
    assert_eq!(database.sql("SELECT state FROM nodes ORDER BY id"), "alive\nalive");
}

/// The join has the node's lock and waits for the agent's. Then somebody takes the agent over.
#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_during_a_join_takes_nothing() {
    let Lost { one, other, database, agent, scribe: former, blocker } = lost_and_blocked().await;
    let mut work = JoinSet::new();
    let joining = one.clone();
    work.spawn(async move { joining.join().await.map(|_| None) });
    until("the join waits", || database.sql(LOCKED) == "1");
    let taker = other.clone();
    work.spawn(async move { taker.take_over(agent.id).await });
    until("the takeover waits", || database.sql(LOCKED) == "2");
    blocker.batch("COMMIT").await.unwrap();
    while let Some(done) = work.join_next().await {
        assert_eq!(done.unwrap().unwrap(), None);
    }
    let epoch = one.claim(agent.id).await.unwrap().unwrap();
    one.append(former.at_epoch(epoch).say(vec![notice("goes on")])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_whose_connection_ends_in_the_middle_changes_nothing() {
    let Lost { one, other, database, agent, mut scribe, blocker } = lost_and_blocked().await;
    let (mut work, taker) = (JoinSet::new(), other.clone());
    work.spawn(async move { taker.take_over(agent.id).await });
    until("the takeover waits", || database.sql(LOCKED) == "1");
    database.sql(&LOCKED.replace("count(*)", "pg_terminate_backend(pid)"));
    let answer = work.join_next().await.unwrap().unwrap();
    assert!(matches!(&answer, Err(error) if error.is_transient()), "{answer:?}");
    blocker.batch("COMMIT").await.unwrap();
    // The lost node does not know that it is lost, and may still write until somebody takes over.
    one.append(scribe.say(vec![notice("saved")])).await.unwrap();
    assert_eq!(database.sql("SELECT owner, epoch FROM heads"), "1|1");
    let epoch = other.take_over(agent.id).await.unwrap().unwrap();
    let fenced = one.append(scribe.rehearse(vec![notice("late")])).await;
    assert!(matches!(fenced, Err(StoreError::Fenced)), "{fenced:?}");
    other.append(scribe.at_epoch(epoch).end(TurnOutcome::Interrupted)).await.unwrap();
}

/// Takes over whatever it can, until nothing is left. Returns what it was told.
async fn take_all(store: PostgresStore) -> BTreeSet<(AgentId, Epoch)> {
    let (mut taken, started) = (BTreeSet::new(), std::time::Instant::now());
    loop {
        assert!(started.elapsed() < PATIENCE, "agents are left");
        let Ok(orphans) = store.orphans(3).await else { continue };
        if orphans.is_empty() {
            return taken;
        }
        for agent in orphans {
            match store.take_over(agent).await {
                Ok(Some(epoch)) => assert!(taken.insert((agent, epoch))),
                Ok(None) => {}
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_agent_is_taken_over_once_while_connections_are_ended() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    let open = |folder| {
        joined(PostgresConfig { limits: impatient(&database).limits, ..config_of(&database, folder) })
    };
    let (one, takers) = (open(1).await, [open(2).await, open(3).await]);
    for n in 0..40 {
        running(&one, n).await;
    }
    lose(&takers[0], NodeId(1)).await;
    let mut work = JoinSet::new();
    for taker in takers.clone() {
        work.spawn(take_all(taker));
    }
    let mut taken: Vec<(AgentId, Epoch)> = Vec::new();
    while !work.is_empty() {
        server.end_connections(&database);
        while let Some(done) = work.try_join_next() {
            taken.extend(done.unwrap());
        }
        tokio::task::yield_now().await;
    }
    let agents: BTreeSet<AgentId> = taken.iter().map(|(agent, _)| *agent).collect();
    assert_eq!(agents.len(), taken.len(), "none of them twice: {taken:?}");
    assert_eq!(database.sql("SELECT count(*) FROM heads WHERE owner IN (2, 3) AND epoch = 2"), "40");
    for (agent, epoch) in taken {
        let claims = [takers[0].claim(agent).await.unwrap(), takers[1].claim(agent).await.unwrap()];
        assert_eq!(claims.iter().flatten().collect::<Vec<_>>(), [&epoch]);
    }
}

/// Its answer is lost, so the node asks with a claim, and would never ask again if the answer were no.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_waits_for_a_takeover_by_the_same_node_that_is_still_committing() {
    let (one, other, database) = patient().await;
    let (agent, _) = running(&one, 1).await;
    lose(&other, NodeId(1)).await;
    let taking = other.inner.connector.connect_only().await.unwrap();
    taking.batch("BEGIN; UPDATE heads SET owner = 2, epoch = epoch + 1").await.unwrap();
    assert_eq!(other.claim(agent.id).await.unwrap(), None, "it knows of no takeover");
    other.inner.unknown_takeovers().insert(agent.id);
    let (mut work, claimer) = (JoinSet::new(), other.clone());
    work.spawn(async move { claimer.claim(agent.id).await });
    until("the claim waits, or has been answered", || {
        database.sql(LOCKED) == "1" || work.try_join_next().is_some()
    });
    taking.batch("COMMIT").await.unwrap();
    let answer = work.join_next().await.expect("it waits").unwrap();
    assert_eq!(answer.unwrap(), Some(Epoch(2)));
    assert!(other.inner.unknown_takeovers().is_empty());
}
