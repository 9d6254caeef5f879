//! A call that returns only so much comes to everything in the end.

use std::collections::BTreeSet;

use tokenrail_domain::TurnOutcome;
use tokenrail_ports::testing::samples::notice;

use super::*;
use crate::unpackable_turn;

/// The `n`th agent, with a turn that has ended.
async fn ended(store: &PostgresStore, n: u8) -> Agent {
    let (agent, mut scribe) = running(store, n).await;
    store.append(scribe.say(vec![notice("n")])).await.unwrap();
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    agent
}

#[tokio::test]
async fn a_turn_that_cannot_be_packed_does_not_hold_up_the_others() {
    let (store, database) = fresh().await;
    let agent = ended(&store, 1).await;
    ended(&store, 2).await;
    ended(&store, 3).await;
    database.sql(r"UPDATE journal SET payload = '\x00' WHERE agent = 1 AND first_seq = 2");
    let loose = "SELECT count(DISTINCT agent) FROM journal WHERE codec <> 2";
    let loose = || database.sql(loose).parse().unwrap();
    unpackable_turn::it_does_not_hold_up_the_others(&store, &agent, loose).await;
}

/// One statement may change many agents within the same microsecond.
#[tokio::test]
async fn more_agents_that_changed_at_the_same_time_than_a_page_has_are_all_found() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    config.limits.touch_slack_ms = 0;
    let store = joined(config).await;
    let mut agents = BTreeSet::new();
    for n in 1..6 {
        agents.insert(ended(&store, n).await.id);
    }
    let mut mark = store.touched(None, 2).await.unwrap().mark;
    database
        .sql(&format!("ALTER TABLE agents DISABLE TRIGGER USER; UPDATE agents SET touched = {} + 1", mark.0));
    let mut found = BTreeSet::new();
    for _ in 0..5 {
        let touched = store.touched(Some(mark), 2).await.unwrap();
        found.extend(touched.agents.into_iter().map(|(agent, _)| agent));
        mark = touched.mark;
    }
    assert_eq!(found, agents);
}
