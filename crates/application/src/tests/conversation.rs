use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentStatus, Event, EventBody, Timestamp, Turn, TurnNumber, TurnOutcome};
use tokenrail_ports::Deletion;
use tokenrail_ports::IAgentRepository as _;
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::harness::{Harness, hanging, harness, harness_with, tiny_limits, words};
use crate::{CommandKey, ConversationTurn, Launch, Refusal};

fn line(n: usize) -> Vec<Step> {
    vec![Step::line(format!("say w{n}")), Step::line("close done")]
}

async fn say(h: &Harness, chat: &str, message: &str) -> ConversationTurn {
    let key = CommandKey { key: message.to_owned(), body: message.to_owned() };
    let launch = Launch { prompt: message.to_owned(), idempotency: Some(key), ..Launch::default() };
    h.service.converse(chat.to_owned(), launch).await.unwrap()
}

#[tokio::test]
async fn a_conversation_is_one_agent_and_each_message_a_turn_of_it() {
    let h = harness(ScriptedRunner::new([line(1), line(2)]));
    let first = say(&h, "chat", "one").await;
    h.watch(first.agent).await;
    let second = say(&h, "chat", "two").await;
    let seen = h.watch(first.agent).await;
    assert_eq!((second.agent, second.turn), (first.agent, TurnNumber(2)));
    let asked: Vec<_> = words(&seen).into_iter().filter(|word| word.starts_with("user")).collect();
    assert_eq!(asked, ["user one", "user two"]);
    assert_eq!(h.service.by_chat("chat".into()).await.unwrap().map(|agent| agent.id), Some(first.agent));
    let turns = h.service.turns(first.agent, TurnNumber(0), 9).await.unwrap();
    assert_eq!(turns.iter().map(|turn| &*turn.prompt).collect::<Vec<_>>(), ["one", "two"]);
}

#[tokio::test]
async fn the_newest_message_that_is_sent_again_is_said_once() {
    let h = harness(ScriptedRunner::new([line(1), line(2), line(3)]));
    let first = say(&h, "chat", "one").await;
    assert_eq!(say(&h, "chat", "one").await, first);
    let second = say(&h, "chat", "two").await;
    assert_eq!(say(&h, "chat", "two").await, second);
    h.watch(first.agent).await;
    let other = say(&h, "another chat", "one").await;
    assert_ne!(other.agent, first.agent, "another chat may use the same key");
    assert_eq!(h.service.turns(first.agent, TurnNumber(0), 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_was_said_before_the_newest_and_is_said_again_is_a_new_turn() {
    let h = harness(ScriptedRunner::new([line(1), line(2), line(3), line(4)]));
    let mut said = Vec::new();
    for message in ["one", "two", "one", "one", "two", "two"] {
        said.push(say(&h, "chat", message).await);
    }
    assert!(said.iter().all(|later| later.agent == said[0].agent));
    let turns: Vec<_> = said.iter().map(|said| said.turn.0).collect();
    assert_eq!(turns, [1, 2, 3, 3, 4, 4]);
}

#[tokio::test]
async fn a_conversation_that_was_deleted_begins_anew_with_the_same_message() {
    let h = harness(ScriptedRunner::new([line(1), line(2)]));
    let first = say(&h, "chat", "one").await;
    h.watch(first.agent).await;
    h.service.delete(first.agent, Deletion::KeepHistory).await.unwrap();
    let second = say(&h, "chat", "one").await;
    assert_ne!(second.agent, first.agent);
    assert_eq!(say(&h, "chat", "one").await, second);
}

#[tokio::test]
async fn two_first_messages_at_once_meet_in_one_agent() {
    for _ in 0..20 {
        let h = harness(ScriptedRunner::new([line(1), line(2)]));
        let (one, two) = tokio::join!(say(&h, "chat", "one"), say(&h, "chat", "two"));
        assert_eq!(one.agent, two.agent);
        assert_ne!(one.turn, two.turn);
    }
}

#[tokio::test]
async fn an_agent_that_is_made_without_a_prompt_begins_with_its_first_message() {
    let h = harness(ScriptedRunner::new([line(1)]));
    let launch = Launch { name: Some("Ada".into()), prompt: "not looked at".into(), ..Launch::default() };
    let agent = h.service.create(launch).await.unwrap();
    assert_eq!((agent.status, agent.turn, &*agent.prompt), (AgentStatus::Completed, TurnNumber(0), ""));
    assert_eq!(h.service.get(agent.id).await.unwrap(), agent);
    assert!(h.runner.orders().is_empty(), "nothing runs");

    let accepted = h.service.send(agent.id, "hi".into(), None).await.unwrap();
    assert_eq!(accepted.turn, TurnNumber::FIRST);
    assert_eq!(words(&h.watch(agent.id).await)[0], "user hi");
}

#[tokio::test]
async fn a_cancel_that_nobody_waits_for_is_done_too() {
    let (h, id) = hanging("hi").await;
    h.service.cancel_turn_in_background(id, TurnNumber(1));
    assert_eq!(words(&h.watch(id).await).last().unwrap(), "result cancelled -");
}

#[tokio::test]
async fn a_first_message_that_is_sent_again_at_once_is_said_once() {
    for _ in 0..20 {
        let h = harness(ScriptedRunner::new([line(1), line(2), line(3)]));
        let again = || say(&h, "chat", "one");
        let (one, two, three) = tokio::join!(again(), again(), again());
        assert_eq!((&one, &one), (&two, &three));
        assert_eq!(h.service.turns(one.agent, TurnNumber(0), 9).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_conversation_without_an_id_is_begun_once_as_long_as_nothing_else_is_said_in_it() {
    let h = harness(ScriptedRunner::new([line(1), line(2), line(3)]));
    let key = CommandKey { key: "one".to_owned(), body: "one".to_owned() };
    let launch = Launch { prompt: "one".into(), idempotency: Some(key), ..Launch::default() };
    let first = h.service.begin(launch.clone()).await.unwrap();
    assert_eq!(h.service.begin(launch.clone()).await.unwrap(), first);
    assert_eq!(h.service.say(first.agent, "two".into(), None).await.unwrap().turn, TurnNumber(2));
    assert_ne!(h.service.begin(launch).await.unwrap().agent, first.agent);
}

#[tokio::test]
async fn a_withdrawn_turn_never_runs_and_a_turn_that_has_begun_is_not_withdrawn() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], line(1)]));
    let id = h.launch("one").await;
    h.wait_for(id, |_| true).await;
    for prompt in ["two", "three"] {
        h.service.send(id, prompt.into(), None).await.unwrap();
    }
    for _ in 0..2 {
        h.service.withdraw_turn(id, TurnNumber(2)).await.unwrap();
    }
    let begun = h.service.withdraw_turn(id, TurnNumber(1)).await;
    assert!(matches!(begun, Err(Refusal::TurnStarted(TurnNumber(1)))), "{begun:?}");
    let unknown = h.service.withdraw_turn(id, TurnNumber(9)).await;
    assert!(matches!(unknown, Err(Refusal::TurnUnknown(TurnNumber(9)))), "{unknown:?}");
    let agent = h.service.get(id).await.unwrap();
    assert_eq!((agent.status, agent.queued), (AgentStatus::Running, 1), "the turn that runs goes on");
    h.service.cancel_turn(id, TurnNumber(1)).await.unwrap();
    h.watch(id).await;
    let prompts: Vec<_> = h.runner.orders().into_iter().map(|order| order.prompt).collect();
    assert_eq!(prompts, ["one", "three"]);
    let ended = h.service.withdraw_turn(id, TurnNumber(2)).await;
    assert!(matches!(ended, Err(Refusal::TurnStarted(TurnNumber(2)))), "{ended:?}");
}

/// The turn waits without a task, as if the request that sent it had saved it a moment ago.
#[tokio::test(start_paused = true)]
async fn a_turn_that_begins_while_it_is_cancelled_alone_ends_as_cancelled() {
    let ended = |event: &Event| {
        let is_cancelled = match &event.body {
            EventBody::TurnResult(result) => result.outcome == TurnOutcome::Cancelled,
            _ => false,
        };
        event.turn == TurnNumber(2) && is_cancelled
    };
    for seed in 0..500 {
        let runner = ScriptedRunner::new([line(1), vec![Step::Hang], vec![Step::Hang]]);
        let h = harness_with(Arc::new(MemoryStore::new(seed)), Arc::new(runner), tiny_limits());
        let id = h.launch("one").await;
        h.watch(id).await;
        h.store.enqueue(Turn::queued(id, "two".into(), Timestamp(0)).into(), 2, None).await.unwrap();
        let cancel = async {
            for _ in 0..seed % 16 {
                yield_now().await;
            }
            h.service.cancel_turn(id, TurnNumber(2)).await
        };
        let (cancelled, sent) = tokio::join!(cancel, h.service.send(id, "three".into(), None));
        cancelled.unwrap();
        sent.unwrap();
        let waited = timeout(Duration::from_secs(1), h.wait_for(id, ended)).await;
        assert!(waited.is_ok(), "with seed {seed}, the turn runs on");
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_that_begin_a_conversation_at_once_one_does() {
    let h = harness(ScriptedRunner::new([vec![Step::line("close a")]]));
    let first = || {
        let launch = Launch { prompt: "hi".into(), ..Launch::default() };
        h.service.begin_chat("c".to_owned(), launch)
    };
    let told = futures_util::future::join_all((0..3).map(|_| first())).await;
    let told: Vec<_> = told.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(told.len(), 1);
    let agent = h.service.by_chat("c".to_owned()).await.unwrap().unwrap();
    assert_eq!((told[0].agent, told[0].turn), (agent.id, TurnNumber::FIRST));
    assert_eq!(first().await.unwrap(), None);
    assert_eq!(words(&h.watch(agent.id).await), ["user hi", "result completed -"], "nothing else was sent");
}
