//! Agents that are cancelled when nobody follows them, at any node.

use super::*;
use crate::Follower;

async fn an_agent_that_needs_a_follower() -> (Pair, AgentId) {
    let two = pair([vec![Step::Hang]]).await;
    let launch = Launch { prompt: "hi".into(), cancel_on_disconnect: true, ..Launch::default() };
    let id = two.home.service.launch(launch).await.unwrap().agent.id;
    two.home.wait_for(id, |_| true).await;
    (two, id)
}

async fn follow(h: &Harness, id: AgentId) -> Follower {
    h.service.follow(id, None, AfterLastTurn::Wait).await.unwrap().1
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_cancelled_when_nobody_follows_it_at_any_node() {
    let (two, id) = an_agent_that_needs_a_follower().await;
    let (here, there) = (follow(&two.home, id).await, follow(&two.other, id).await);
    drop(here);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(two.home.runner.cancels(), 0, "it is followed at the other node");
    drop(there);
    until(&two.home, id, |agent| agent.status == AgentStatus::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_cancelled_when_the_node_of_its_last_follower_is_lost() {
    let (two, id) = an_agent_that_needs_a_follower().await;
    let _there = follow(&two.other, id).await;
    sleep(Duration::from_secs(1)).await;
    two.kill_other().await;
    until(&two.home, id, |agent| agent.status == AgentStatus::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_cancelled_when_its_last_follower_does_not_come_back_to_a_node_that_does() {
    let (two, id) = an_agent_that_needs_a_follower().await;
    let _there = follow(&two.other, id).await;
    sleep(Duration::from_secs(1)).await;
    two.kill_other().await;
    let other = two.restart_other().await;
    until(&two.home, id, |agent| agent.status == AgentStatus::Cancelled).await;
    assert_eq!(other.runner.orders().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_agent_runs_on_if_its_follower_comes_back_to_another_node() {
    let (two, id) = an_agent_that_needs_a_follower().await;
    let _there = follow(&two.other, id).await;
    sleep(Duration::from_secs(1)).await;
    two.kill_other().await;
    let _here = follow(&two.home, id).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(two.home.runner.cancels(), 0);
}
