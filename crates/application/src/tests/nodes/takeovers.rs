//! What ran on a node that is lost.

use futures_util::FutureExt as _;
use tokenrail_domain::{Agent, Timestamp, Turn};
use tokenrail_ports::IAgentRepository as _;

use super::*;
use crate::Follower;

#[tokio::test(start_paused = true)]
async fn the_turns_of_a_lost_node_end_once_and_no_prompt_runs_twice() {
    let two = pair([vec![Step::line("say half"), Step::Hang], said("after")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    two.kill_home().await;
    let killed = Instant::now();
    let seen = two.other.watch(id).await;
    assert!(killed.elapsed() < Duration::from_secs(35), "{:?}", killed.elapsed());
    assert_eq!(errors(&seen), ["node_lost", "node_lost"]);
    assert_eq!(two.other.service.stats().nodes.turns_of_lost_nodes, 2);
    assert_eq!(
        words(&seen).iter().filter(|word| word.contains("half")).count(),
        2,
        "the delta and its message"
    );
    assert_eq!((two.home.runner.orders().len(), two.other.runner.orders().len()), (1, 0));
    let refused = two.other.service.send(id, "more".into(), None).await;
    assert!(matches!(&refused, Err(Refusal::NodeUnavailable { node }) if node == "node-1"), "{refused:?}");

    let back = two.restart_home().await;
    assert!(back.runner.swept().last().unwrap().is_empty(), "its run was taken over");
    assert_eq!(back.watch(id).await, seen);
    while two.other.service.send(id, "more".into(), None).await.is_err() {
        sleep(Duration::from_secs(1)).await;
    }
    until(&back, id, |agent| agent.turn.0 == 3 && !agent.status.is_active()).await;
    assert_eq!(back.runner.orders().len(), 2);
}

/// The node that could deliver the answer is lost, but the turn has ended: no client need try again.
#[tokio::test(start_paused = true)]
async fn an_answer_for_a_turn_that_was_taken_over_is_refused_for_good() {
    let two = pair([vec![Step::line("ask 1-1 yes no"), Step::UntilAnswered]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::Notice(_))).await;
    two.kill_home().await;
    assert_eq!(errors(&two.other.watch(id).await), ["node_lost"]);
    let refused = two.other.service.answer(id, answer("yes")).await;
    assert!(matches!(&refused, Err(Refusal::RequestSettled(request)) if request == "1-1"), "{refused:?}");
}

/// The home is back, but its turn was taken away from it: what it has done since was not saved.
#[tokio::test(start_paused = true)]
async fn a_turn_whose_taker_is_lost_too_ends_although_its_home_is_back() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.kill_home().await;
    two.kill_other().await;
    let taker = two.home.store.as_node(NodeId(2));
    let pulse = taker.nodes().await.unwrap()[0].pulse;
    taker.join().await.unwrap();
    assert!(taker.declare_lost(NodeId::ONLY, pulse).await.unwrap());
    assert!(taker.take_over(id).await.unwrap().is_some());

    let back = two.restart_home().await;
    assert_eq!(errors(&back.watch(id).await), ["node_lost"]);
    back.service.send(id, "more".into(), None).await.unwrap();
    until(&back, id, |agent| agent.turn.0 == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_takeover_whose_outcome_is_unknown_ends_the_turns_all_the_same() {
    let two = pair([vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.kill_home().await;
    two.other.store.lose_next_answer();
    assert_eq!(errors(&two.other.watch(id).await), ["node_lost"]);
}

/// Its run notices that only when it saves the next output.
#[tokio::test(start_paused = true)]
async fn clients_of_a_node_whose_agent_was_taken_know_how_its_turn_ended() {
    let gate = Arc::new(Notify::new());
    let script =
        vec![Step::line("ask 1-1 yes no"), Step::Gate(gate.clone()), Step::line("say more"), Step::Hang];
    let two = pair([script]).await;
    let mut news = two.home.service.lifecycle_events();
    let id = two.home.launch("hi").await;
    while two.home.service.needs(id).open_questions == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let pulse = two.other.store.nodes().await.unwrap()[0].pulse;
    assert!(two.other.store.declare_lost(NodeId::ONLY, pulse).await.unwrap());
    two.other.service.core.orphans.notify_one();
    until(&two.other, id, |agent| agent.status == AgentStatus::Interrupted).await;
    sleep(Duration::from_secs(5)).await;
    gate.notify_one();
    sleep(Duration::from_secs(5)).await;
    let mut told = Vec::new();
    while let Some(Some(item)) = news.next().now_or_never() {
        // It loads the list when its server begins to look at what others have changed.
        let Ok(item) = item else { continue };
        if let LifecycleEvent::Updated { status, needs, .. } = &item.event {
            told.push((*status, needs.open_questions));
        }
    }
    assert_eq!(told.last(), Some(&(AgentStatus::Interrupted, 0)), "{told:?}");
}

/// A node that has the type of the other agents takes them over on its own next beat.
#[tokio::test(start_paused = true)]
async fn agents_of_a_foreign_type_do_not_delay_the_takeover_of_others() {
    let two = pair([vec![Step::Hang]]).await;
    let third = Arc::new(two.home.store.as_node(NodeId(3)));
    third.join().await.unwrap();
    third.offer(vec!["foreign".into()]).await.unwrap();
    let beats = Arc::clone(&third);
    let beating = two.other.service.core.tracker.spawn(async move {
        while beats.beat().await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.kill_home().await;
    // More than two pages of them, all older than the other one.
    for n in 0..600 {
        let (at, id) = (Timestamp(n), AgentId::new(Timestamp(n), [0; 10]));
        let agent = Agent::new(id, "foreign".into(), at);
        two.home.store.create(agent, Turn::queued(id, "hi".into(), at).into(), None).await.unwrap();
    }
    while two.other.service.core.membership.state_of(NodeId::ONLY) != Some(NodeState::Lost) {
        sleep(Duration::from_millis(10)).await;
    }
    let lost = Instant::now();
    assert_eq!(errors(&two.other.watch(id).await), ["node_lost"]);
    assert!(lost.elapsed() < Duration::from_secs(1), "before the next beat: {:?}", lost.elapsed());
    beating.abort();
}

/// An agent of one node that has said much, and a follower at the other one. Only its first words would survive a
/// failover.
async fn followed_and_not_replicated() -> (Pair, AgentId, Follower) {
    let gate = Arc::new(Notify::new());
    let mut script = vec![Step::line("say a"), Step::Gate(gate.clone())];
    script.extend((0..200).map(|number| Step::line(format!("say {number}"))));
    script.push(Step::Hang);
    let two = pair([script]).await;
    let id = two.home.launch("hi").await;
    let (_, follower) =
        two.other.service.follow(id, Some(Sequence::START), AfterLastTurn::Wait).await.unwrap();
    two.other.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.home.store.fall_behind();
    gate.notify_one();
    while follower.head() < Sequence(200) {
        sleep(Duration::from_millis(10)).await;
    }
    (two, id, follower)
}

/// A failover has lost what a slow reader had not read yet, and the agent's node is dead. Until its turn is taken over,
/// nothing has these numbers.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_waits_until_what_a_failover_has_lost_is_filled_up() {
    let (two, _, mut follower) = followed_and_not_replicated().await;
    two.kill_home().await;
    let lost = two.home.store.fail_over(NodeId::ONLY);
    assert_eq!(lost.len(), 1, "of one agent");
    let mut seen: Vec<Event> = Vec::new();
    while !seen.iter().any(|event| matches!(event.body, EventBody::TurnResult(_))) {
        match follower.next().await.unwrap() {
            Next::Page(page) => seen.extend_from_slice(page.events()),
            Next::End(end) => panic!("{end:?} after {} events", seen.len()),
        }
    }
    assert_dense(&seen);
    assert_eq!(errors(&seen), ["node_lost"]);
    let is_lost =
        |event: &&Event| matches!(&event.body, EventBody::Notice(notice) if notice.subtype == "events_lost");
    assert!(0 < seen.iter().filter(is_lost).count());
}

/// A failover has lost what a reader had read that has left since. It may come back to any node, with its cursor.
#[tokio::test(start_paused = true)]
async fn what_a_reader_has_seen_that_has_left_is_filled_up_after_a_failover() {
    let (two, id, follower) = followed_and_not_replicated().await;
    let seen = follower.head();
    drop(follower);
    two.kill_home().await;
    two.home.store.fail_over(NodeId::ONLY);
    let events = two.other.watch(id).await;
    assert_eq!(errors(&events), ["node_lost"]);
    let last_seen = events.iter().find(|event| event.sequence == seen).unwrap();
    assert!(matches!(&last_seen.body, EventBody::Notice(notice) if notice.subtype == "events_lost"));
}
