//! A node that may save nothing any more, because it was declared lost or replaced.

use std::collections::BTreeSet;

use super::*;
use crate::{AtStop, Limits};

#[tokio::test(start_paused = true)]
async fn a_node_that_was_declared_lost_learns_it_and_can_save_nothing() {
    let gate = Arc::new(Notify::new());
    let two =
        pair([vec![Step::line("say a"), Step::Gate(gate.clone()), Step::line("say late"), Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    let pulse = two.other.store.nodes().await.unwrap()[0].pulse;
    assert!(two.other.store.declare_lost(NodeId::ONLY, pulse).await.unwrap());
    assert_eq!(two.home.service.fenced().await, Fence::DeclaredLost);
    let seen = two.other.watch(id).await;
    gate.notify_one();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(errors(&seen), ["node_lost"]);
    assert_eq!(two.home.store.saved(id), seen, "what came late is not saved");
    let fenced = |h: &Harness| h.service.stats().nodes.fenced_writes;
    assert!(0 < fenced(&two.home));
    let outside = outside(&two.home.store, &two.home.runner, &two.home.workspace);
    let back = two.home.service.successor(outside, Limits::default(), Handle::current());
    let kept = back.stats().nodes.fenced_writes;
    assert_eq!(kept, fenced(&two.home), "it is not forgotten when the node starts anew");
}

#[tokio::test(start_paused = true)]
async fn of_two_servers_with_one_identity_the_first_one_stops() {
    let two = pair([vec![Step::Hang]]).await;
    let copy = two.restart_home().await;
    assert_eq!(two.home.service.fenced().await, Fence::Replaced);
    let nodes = copy.service.nodes().await.unwrap();
    assert_eq!((nodes.len(), nodes[0].is_this, nodes[0].node.pulse.incarnation), (2, true, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_join_the_database_has_lost_is_not_taken_for_the_first_of_two() {
    let two = pair([vec![Step::Hang]]).await;
    let again = two.restart_home().await;
    assert_eq!(two.home.service.fenced().await, Fence::Replaced);
    two.home.store.forget_join(NodeId::ONLY);
    assert_eq!(again.service.fenced().await, Fence::DeclaredLost);
}

/// The copy of its data folder lacks its runs.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_replaced_ends_what_runs_there() {
    let two = pair([vec![Step::line("say a"), Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    let copy = node(two.home.store.as_node(NodeId::ONLY), &two.home_bus, Vec::new()).await;
    let seen = copy.watch(id).await;
    assert_eq!(errors(&seen), ["another"]);
    assert_eq!(two.home.service.fenced().await, Fence::Replaced);
    let swept = two.home.runner.swept().len();
    assert!(two.home.service.shutdown(AtStop::EndRuns, Duration::from_secs(5)).await);
    assert_eq!(two.home.runner.swept()[swept..], [BTreeSet::new()]);
    assert_eq!(two.other.watch(id).await, seen);
}
