//! Keys are remembered for the promised time, whichever node is asked.

use super::*;
use tokenrail_domain::TurnNumber;

use crate::CommandKey;

async fn send(node: &Harness, agent: AgentId, key: &str) -> TurnNumber {
    let key = CommandKey { key: key.to_owned(), body: "p".to_owned() };
    node.service.send(agent, "p".into(), Some(key)).await.unwrap().turn
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_seen_no_key_for_long_remembers_those_of_a_node_that_has_just_started() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    let first = send(&two.home, id, "first").await;
    sleep(two.home.service.core.limits.commands.idempotency + Duration::from_secs(1)).await;
    let turn = send(&two.other, id, "a").await;
    assert_eq!(turn, first.next());
    assert_eq!(send(&two.home, id, "a").await, turn);
}
