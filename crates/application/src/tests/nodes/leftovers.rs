//! Agents that are purged while their home is lost.

use super::*;

/// The second node has declared the first one lost.
async fn lose_home(two: &Pair) {
    two.kill_home().await;
    while two.other.service.nodes().await.unwrap()[0].node.state != NodeState::Lost {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_removes_the_files_of_agents_that_were_purged_meanwhile() {
    let two = pair([said("one"), said("two")]).await;
    let purged = two.home.launch("hi").await;
    two.home.watch(purged).await;
    let kept = two.home.launch("hi").await;
    two.home.watch(kept).await;
    assert_eq!(two.home.workspace.own_folders(), [purged, kept]);
    lose_home(&two).await;
    two.other.service.delete(purged, Deletion::Purge).await.unwrap();
    assert!(two.other.store.saved_agent(purged).is_none(), "nobody waits for its home");
    assert_eq!(two.home.workspace.own_folders(), [purged, kept], "nobody can remove them");
    let back = two.restart_home().await;
    while back.workspace.own_folders() != [kept] {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(10)).await;
    let forgotten = back.runner.forgotten();
    assert_eq!(forgotten.iter().filter(|agent| **agent == purged).count(), 1, "once: {forgotten:?}");
    assert!(!forgotten.contains(&kept));
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_purged_when_its_home_dies_is_purged_by_another_node() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.kill_home().await;
    // The home does not answer any more, but nobody knows that yet: the deletion is saved, and waits for it.
    two.other.service.delete(id, Deletion::Purge).await.unwrap();
    assert!(two.other.store.saved_agent(id).is_some_and(|agent| agent.deleted_at.is_some()));
    while two.other.store.saved_agent(id).is_some() {
        sleep(Duration::from_millis(100)).await;
    }
    let back = two.restart_home().await;
    while !back.workspace.own_folders().is_empty() {
        sleep(Duration::from_millis(100)).await;
    }
}

/// The failover may have lost that the node has joined again.
#[tokio::test(start_paused = true)]
async fn an_agent_of_a_lost_node_is_not_purged_before_the_store_has_caught_up() {
    let two = pair([said("one")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    lose_home(&two).await;
    let store = &two.other.store;
    store.fall_behind();
    store.fail_over(NodeId::ONLY);
    assert!(store.is_catching_up().await.unwrap());
    two.other.service.delete(id, Deletion::Purge).await.unwrap();
    assert!(!store.is_catching_up().await.unwrap() && store.saved_agent(id).is_none());
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_removed_are_not_forgotten() {
    let two = pair([said("one")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.home.workspace.refuse_removals(16);
    lose_home(&two).await;
    two.other.service.delete(id, Deletion::Purge).await.unwrap();
    let back = two.restart_home().await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(back.workspace.own_folders(), [id], "its removal fails");
    sleep(Duration::from_mins(10)).await;
    assert_eq!(back.workspace.own_folders(), []);
    assert_eq!(back.store.errands(9).await.unwrap().leftovers, []);
}

/// Only the removal of the old folder is late. A turn waits for it, but not for ever.
#[tokio::test(start_paused = true)]
async fn a_turn_does_not_wait_for_ever_until_an_earlier_folder_is_removed() {
    let two = pair([said("one"), said("two")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    assert!(two.home.store.let_go(id).await.unwrap());
    let removing = two.home.service.core.leftovers.begin(id).unwrap();
    two.kill_other().await;
    two.home.service.send(id, "go on".into(), None).await.unwrap();
    let seen = two.home.watch(id).await;
    assert_eq!(words(&seen).last().unwrap(), "result failed folder_failed");
    drop(removing);
    two.home.service.send(id, "again".into(), None).await.unwrap();
    until(&two.home, id, |agent| agent.turn.0 == 3 && agent.status == AgentStatus::Completed).await;
}
