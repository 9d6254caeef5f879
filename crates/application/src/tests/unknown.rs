//! A command whose commit succeeded although the store reported an unknown outcome: it is carried out, and can be
//! repeated.

use tokenrail_ports::StoreError;
use tokenrail_ports::testing::{ScriptedRunner, Step};

use super::harness::{hanging, harness, words};
use crate::{CommandKey, Launch, Refusal};

fn key(key: &str) -> CommandKey {
    CommandKey { key: key.to_owned(), body: "the same".to_owned() }
}

fn script(lines: &[&str]) -> Vec<Step> {
    vec![Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect())]
}

fn is_unknown<T>(answer: &Result<T, Refusal>) -> bool {
    matches!(answer, Err(Refusal::Store(StoreError::OutcomeUnknown(_))))
}

#[tokio::test(start_paused = true)]
async fn a_launch_runs_once_whether_it_is_given_again_or_not() {
    let h = harness(ScriptedRunner::new([script(&["close a"])]));
    let launch = Launch { prompt: "hi".into(), idempotency: Some(key("k")), ..Launch::default() };
    h.store.lose_next_answer();
    assert!(is_unknown(&h.service.launch(launch.clone()).await));
    let again = h.service.launch(launch).await.unwrap();
    assert!(again.again);
    assert_eq!(words(&h.watch(again.agent.id).await), ["user hi", "result completed -"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_becomes_one_turn() {
    let h = harness(ScriptedRunner::new([script(&["close a"]), script(&["close b"])]));
    let id = h.launch("one").await;
    h.watch(id).await;
    h.store.lose_next_answer();
    assert!(is_unknown(&h.service.send(id, "two".into(), Some(key("k"))).await));
    assert_eq!(h.service.send(id, "two".into(), Some(key("k"))).await.unwrap().turn.0, 2);
    assert_eq!(words(&h.watch(id).await)[2..], ["user two", "result completed -"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_is_given_again_stops_the_agent() {
    let (h, id) = hanging("hi").await;
    h.store.lose_next_answer();
    assert!(is_unknown(&h.service.cancel(id).await));
    h.service.cancel(id).await.unwrap();
    assert_eq!(words(&h.watch(id).await), ["user hi", "notice reaped", "result cancelled -"]);
}
