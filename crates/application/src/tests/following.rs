use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{Event, EventBody, Sequence};
use tokenrail_ports::testing::samples::{Scribe, launch};
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};
use tokenrail_ports::{Deletion, IAgentRepository as _, IJournal as _};
use tokio::sync::Notify;

use super::harness::{Harness, assert_dense, hanging, harness, harness_with, tiny_limits, words};
use crate::{AfterLastTurn, Launch, Limits, Next, StreamEnd};

fn chatter(words: usize) -> Vec<Step> {
    let mut steps: Vec<_> = (0..words).map(|n| Step::line(format!("say w{n}"))).collect();
    steps.push(Step::Lines(vec!["end".into(), "close done".into()]));
    steps
}

#[tokio::test]
async fn readers_from_any_cursor_see_the_same_events_while_they_are_said() {
    for seed in 0..20 {
        let h = harness(ScriptedRunner::new([chatter(40)]));
        let id = h.launch("hi").await;
        let mut readers = Vec::new();
        for since in [0, 0, 1, 5, 20, 41] {
            h.wait_for(id, |event| event.sequence.0 >= since).await;
            let (_, mut follower) =
                h.service.follow(id, Some(Sequence(since)), AfterLastTurn::End).await.unwrap();
            readers.push(async move {
                let mut seen = Vec::new();
                while let Next::Page(page) = follower.next().await.unwrap() {
                    seen.extend_from_slice(page.events());
                    for _ in 0..(seed + since) % 5 {
                        tokio::task::yield_now().await;
                    }
                }
                (since, seen)
            });
        }
        let all = h.watch(id).await;
        for (since, seen) in futures_util::future::join_all(readers).await {
            assert_eq!(seen, all[since as usize..], "from {since}, seed {seed}");
        }
    }
}

#[tokio::test]
async fn nothing_is_seen_that_the_store_does_not_have() {
    let h = harness(ScriptedRunner::new([chatter(60)]));
    let id = h.launch("hi").await;
    let (_, mut follower) = h.service.follow(id, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
    while let Next::Page(page) = follower.next().await.unwrap() {
        let saved = h.store.saved(id);
        for event in page.events() {
            assert!(saved.contains(event), "{} was shown before it was saved", event.sequence);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_keeps_the_stream_sees_the_next_turn() {
    let h = harness(ScriptedRunner::new([chatter(1), chatter(1)]));
    let id = h.launch("one").await;
    let (_, mut follower) = h.service.follow(id, Some(Sequence::START), AfterLastTurn::Wait).await.unwrap();
    let mut seen: Vec<Event> = Vec::new();
    let results =
        |seen: &[Event]| seen.iter().filter(|event| matches!(event.body, EventBody::TurnResult(_))).count();
    while results(&seen) < 2 {
        if results(&seen) == 1 && h.service.get(id).await.unwrap().turn.0 == 1 {
            h.service.send(id, "two".into(), None).await.unwrap();
        }
        let Next::Page(page) = follower.next().await.unwrap() else { panic!("it ended") };
        seen.extend_from_slice(page.events());
    }
    assert_dense(&seen);
}

#[tokio::test(start_paused = true)]
async fn a_delete_ends_the_streams() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang]]));
    let id = h.launch("hi").await;
    let (_, mut follower) = h.service.follow(id, Some(Sequence::START), AfterLastTurn::Wait).await.unwrap();
    let deleted = h.service.delete(id, Deletion::Purge);
    let read = async {
        loop {
            match follower.next().await {
                Ok(Next::Page(_)) => {}
                other => return other,
            }
        }
    };
    let (deleted, end) = tokio::join!(deleted, read);
    deleted.unwrap();
    assert!(matches!(end, Ok(Next::End(StreamEnd::AgentDeleted))), "{end:?}");
    assert!(matches!(h.service.get(id).await, Err(crate::Refusal::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn who_reads_history_while_it_is_purged_hears_that_it_was_deleted() {
    for seed in 1..=300 {
        let store = Arc::new(MemoryStore::new(seed));
        let runner = Arc::new(ScriptedRunner::new([chatter(40)]));
        let h = harness_with(store, runner, tiny_limits());
        let id = h.launch("hi").await;
        h.watch(id).await;
        let (_, mut follower) =
            h.service.follow(id, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
        let read = async {
            loop {
                match follower.next().await {
                    Ok(Next::Page(_)) => {}
                    other => return other,
                }
            }
        };
        let (deleted, end) = tokio::join!(h.service.delete(id, Deletion::Purge), read);
        deleted.unwrap();
        let ends = [StreamEnd::AgentDeleted, StreamEnd::AgentEnded];
        assert!(matches!(&end, Ok(Next::End(end)) if ends.contains(end)), "seed {seed}: {end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_streams_and_leaves_the_agents() {
    let (h, id) = hanging("hi").await;
    let (_, mut follower) = h.service.follow(id, None, AfterLastTurn::Wait).await.unwrap();
    assert!(h.service.shutdown(crate::AtStop::Keep, std::time::Duration::from_secs(1)).await);
    assert!(matches!(follower.next().await, Ok(Next::End(StreamEnd::ShuttingDown))));
    assert_eq!(h.runner.cancels(), 0);
    assert_eq!(words(&h.store.saved(id)), ["user hi"]);
}

async fn launch_bound(h: &Harness) -> tokenrail_domain::AgentId {
    let launch = Launch { prompt: "hi".into(), cancel_on_disconnect: true, ..Launch::default() };
    h.service.launch(launch).await.unwrap().agent.id
}

#[tokio::test(start_paused = true)]
async fn only_who_asks_for_it_is_cancelled_by_a_disconnect() {
    let gate = Arc::new(Notify::new());
    let free = vec![Step::Gate(gate.clone()), Step::line("close ok")];
    let h = harness(ScriptedRunner::new([vec![Step::Hang], free]));
    let bound = launch_bound(&h).await;
    h.wait_for(bound, |_| true).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let events = h.watch(bound).await;
    assert_eq!(words(&events).last().unwrap(), "result cancelled -");

    let free = h.launch("hi").await;
    h.wait_for(free, |_| true).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    gate.notify_one();
    assert_eq!(words(&h.watch(free).await).last().unwrap(), "result completed -");
}

#[tokio::test(start_paused = true)]
async fn what_is_committed_without_a_ring_is_told_within_two_looks() {
    let h = harness(ScriptedRunner::new([]));
    h.service.recover().await.unwrap();
    let (agent, turn) = launch(1);
    h.store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    let (_, mut follower) = h.service.follow(agent.id, None, AfterLastTurn::Wait).await.unwrap();
    h.store.append(Scribe::new(&agent).start(&turn)).await.unwrap();
    let told = tokio::time::timeout(Limits::default().saving.look_again * 2, follower.next()).await;
    assert!(matches!(&told, Ok(Ok(Next::Page(page))) if page.events().len() == 1), "{told:?}");
    assert!(h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await);
}
