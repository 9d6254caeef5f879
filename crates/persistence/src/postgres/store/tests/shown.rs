//! How far journals were shown that a failover has made shorter.

use tokenrail_ports::testing::samples::notice;

use super::*;

/// The node of the agent is gone, so nobody can repeat what it had saved.
#[tokio::test(flavor = "multi_thread")]
async fn the_highest_number_that_was_shown_is_known_at_every_node() {
    let (store, database) = fresh().await;
    let other = other_node(&database).await;
    let (agent, mut scribe) = running(&store, 1).await;
    store.append(scribe.say(vec![notice("a"), notice("b")])).await.unwrap();
    let head = Sequence(everything(&store, &agent).await.len() as u64);

    other.note_seen(vec![(agent.id, head)]).await.unwrap();
    assert_eq!(store.seen(agent.id).await.unwrap(), Sequence::START, "nothing is missing");
    for shown in [head.0 + 5, head.0 + 3] {
        other.note_seen(vec![(agent.id, Sequence(shown))]).await.unwrap();
        assert_eq!(store.seen(agent.id).await.unwrap(), Sequence(head.0 + 5));
    }
}
