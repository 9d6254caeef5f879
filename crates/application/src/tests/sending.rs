//! Messages that wait for the store: what changes meanwhile counts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokenrail_domain::TurnNumber;
use tokenrail_ports::Deletion;
use tokenrail_ports::testing::{ScriptedRunner, Step};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::harness::{hanging, harness};
use crate::{CommandKey, LifecycleEvent, LifecycleReader, Refusal};

/// So many tries take some seconds, and less than a client waits.
const TRIES: u32 = 1000;

/// The statuses that clients were told so far.
fn statuses(news: &mut LifecycleReader) -> Vec<&'static str> {
    let mut told = Vec::new();
    while let Some(Some(Ok(item))) = news.next().now_or_never() {
        if let LifecycleEvent::Updated { status, .. } = &item.event {
            told.push(status.as_str());
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_the_store_is_refused_once_the_server_stops() {
    let (h, id) = hanging("hi").await;
    h.store.refuse_messages(TRIES);
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        h.service.core.drain(false);
    };
    let (sent, ()) = tokio::join!(h.service.send(id, "more".into(), None), stop);
    assert!(matches!(sent, Err(Refusal::ShuttingDown)), "{sent:?}");
    assert_eq!(h.store.saved_agent(id).unwrap().queued, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_the_store_is_refused_once_its_agent_is_deleted() {
    let (h, id) = hanging("hi").await;
    h.store.refuse_messages(TRIES);
    let delete = async {
        sleep(Duration::from_secs(1)).await;
        h.service.delete(id, Deletion::KeepHistory).await.unwrap();
    };
    let (sent, ()) = tokio::join!(h.service.send(id, "more".into(), None), delete);
    assert!(matches!(sent, Err(Refusal::Deleted)), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_the_store_tells_nothing_of_a_turn_that_has_ended_meanwhile() {
    let gate = Arc::new(Notify::new());
    let scripts = [vec![Step::Gate(gate.clone()), Step::line("close a")], vec![Step::line("close b")]];
    let h = harness(ScriptedRunner::new(scripts));
    let id = h.launch("hi").await;
    h.wait_for(id, |_| true).await;
    let mut news = h.service.lifecycle_events();
    h.store.refuse_messages(TRIES);
    let end = async {
        sleep(Duration::from_secs(1)).await;
        gate.notify_one();
    };
    let (sent, ()) = tokio::join!(h.service.send(id, "more".into(), None), end);
    assert_eq!(sent.unwrap().queued, 1);
    h.watch(id).await;
    assert_eq!(statuses(&mut news), ["completed", "running", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn clients_learn_of_a_message_that_waits_for_the_turn_before_it() {
    let (h, id) = hanging("hi").await;
    let mut news = h.service.lifecycle_events();
    h.service.send(id, "more".into(), None).await.unwrap();
    assert_eq!(statuses(&mut news), ["running"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_messages_that_must_become_the_same_turn_one_is_refused() {
    let (h, id) = hanging("hi").await;
    let send = |turn: u32, key: Option<&str>| {
        let key = key.map(|key| CommandKey { key: key.to_owned(), body: "more".to_owned() });
        h.service.send_as(id, TurnNumber(turn), "more".into(), key)
    };
    let (first, second) = tokio::join!(send(2, Some("a")), send(2, Some("b")));
    let (accepted, refused, key) = if first.is_ok() { (first, second, "a") } else { (second, first, "b") };
    let accepted = accepted.unwrap();
    assert_eq!(accepted.turn, TurnNumber(2));
    assert!(matches!(refused, Err(Refusal::TurnTaken(TurnNumber(2)))), "{refused:?}");
    assert_eq!(send(2, Some(key)).await.unwrap(), accepted, "a repeated message is no second one");
    for turn in [1, 2, 4] {
        assert!(matches!(send(turn, None).await, Err(Refusal::TurnTaken(_))), "{turn}");
    }
    assert_eq!(h.store.saved_agent(id).unwrap().queued, 1, "what was refused left nothing");
    assert_eq!(send(3, None).await.unwrap().turn, TurnNumber(3));
}
