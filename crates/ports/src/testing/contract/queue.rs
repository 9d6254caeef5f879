//! Queued turns, and keys that make a command happen once.

use tokenrail_domain::{Agent, AgentStatus, StopReason, Timestamp, Turn, TurnNumber, TurnOutcome, TurnState};

use super::{agent_now, launched, running, saved};
use crate::testing::samples::{LAUNCHED_AT, Scribe, launch, notice, queued_turn};
use crate::{
    Append, Created, Deletion, Enqueued, IAgentRepository, IJournal, Idempotency, KeyLife, NewTurn, Recalled,
    StoreError, TurnLimit,
};

fn asked(agent: tokenrail_domain::AgentId, prompt: &str) -> Turn {
    queued_turn(agent, TurnNumber(0), prompt)
}

fn key(scope: &str, key: &str, body: &str) -> Idempotency {
    Idempotency {
        scope: scope.into(),
        key: key.into(),
        body: body.into(),
        used_at: LAUNCHED_AT,
        forget_before: Timestamp(LAUNCHED_AT.0 - 1000),
        life: KeyLife::UntilForgotten,
    }
}

fn newest(scope: &str, body: &str) -> Idempotency {
    Idempotency { life: KeyLife::WhileNewest, ..key(scope, "k", body) }
}

fn new(turn: u32, queued: u32) -> Enqueued {
    Enqueued::New { turn: TurnNumber(turn), queued, unarchived: false }
}

pub async fn turns_wait_in_order<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    for (turn, prompt) in [(2, "second"), (3, "third"), (4, "fourth")] {
        assert_eq!(
            store.enqueue(asked(agent.id, prompt).into(), 16, None).await.unwrap(),
            new(turn, turn - 1)
        );
    }
    let wrong = Scribe::new(&agent_now(store, agent.id).await);
    let wrong = store.append(wrong.at_turn(TurnNumber(3)).end(TurnOutcome::Failed)).await;
    assert!(matches!(wrong, Err(StoreError::Conflict { .. })), "another one runs: {wrong:?}");
    let waiting = |turns: &[Turn]| -> Vec<_> {
        turns.iter().map(|turn| (turn.number.0, turn.prompt.clone(), turn.state)).collect()
    };
    let open = store.open_turns(agent.id).await.unwrap();
    assert_eq!(open.len(), 4);
    assert_eq!(open[0].state, TurnState::Running);
    assert_eq!(waiting(&open)[2], (3, "third".to_owned(), TurnState::Queued));
    assert_eq!(agent_now(store, agent.id).await.queued, 3);
    assert!(open.iter().all(|turn| turn.run == turn.number), "each starts a process of its own");

    saved(store, scribe.end(TurnOutcome::Completed)).await;
    saved(store, scribe.start(&open[1])).await;
    let open = store.open_turns(agent.id).await.unwrap();
    assert_eq!(waiting(&open)[0], (2, "second".to_owned(), TurnState::Running));
    assert_eq!(open.len(), 3);
    assert_eq!(agent_now(store, agent.id).await.queued, 2);
}

pub async fn a_full_queue_takes_no_more<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _) = running(store, 1).await;
    for turn in 2..4 {
        assert_eq!(store.enqueue(asked(agent.id, "p").into(), 2, None).await.unwrap(), new(turn, turn - 1));
    }
    assert_eq!(store.enqueue(asked(agent.id, "p").into(), 2, None).await.unwrap(), Enqueued::QueueFull);
    let unknown = store.enqueue(asked(launch(9).0.id, "p").into(), 2, None).await.unwrap();
    assert_eq!(unknown, Enqueued::UnknownAgent);
    assert_eq!(store.open_turns(agent.id).await.unwrap().len(), 3);
}

pub async fn a_turn_that_must_get_a_number_gets_no_other<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _) = running(store, 1).await;
    let enqueue = async |number, key| {
        let turn = NewTurn::from(asked(agent.id, "p")).only_as(Some(TurnNumber(number)));
        store.enqueue(turn, 2, key).await.unwrap()
    };
    assert_eq!(enqueue(1, None).await, Enqueued::OtherNumber);
    assert_eq!(enqueue(3, None).await, Enqueued::OtherNumber);
    let used = key("m", "k", "p");
    assert_eq!(enqueue(2, Some(used.clone())).await, new(2, 1));
    assert_eq!(enqueue(2, None).await, Enqueued::OtherNumber);
    let again = Enqueued::Again { turn: TurnNumber(2), queued: 1 };
    assert_eq!(enqueue(2, Some(used)).await, again, "a key is looked up first");
    let refused = enqueue(2, Some(key("m", "other", "p"))).await;
    assert_eq!(refused, Enqueued::OtherNumber);
    assert_eq!(store.recall(key("m", "other", "p")).await.unwrap(), None, "nothing of it is saved");
    assert_eq!(store.open_turns(agent.id).await.unwrap().len(), 2);

    let both = async |number| tokio::join!(enqueue(number, None), enqueue(number, None));
    let (first, second) = both(3).await;
    let taken = [&first, &second].into_iter().filter(|told| **told == new(3, 2)).count();
    assert_eq!((taken, [first, second].contains(&Enqueued::OtherNumber)), (1, true));
    assert_eq!(enqueue(3, None).await, Enqueued::OtherNumber, "also if the queue is full");
    assert_eq!(enqueue(4, None).await, Enqueued::QueueFull);
}

pub async fn turns_that_are_cancelled_one_by_one_have_a_bound<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let enqueue = async || store.enqueue(asked(agent.id, "p").into(), 2, None).await.unwrap();
    for turn in 2..5 {
        assert_eq!(enqueue().await, new(turn, 1));
        store.stop_turn(agent.id.turn(TurnNumber(turn)), StopReason::Cancelled).await.unwrap();
    }
    assert_eq!(agent_now(store, agent.id).await.queued, 0);
    assert_eq!(enqueue().await, Enqueued::QueueFull, "three keep their place, and two may");
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let open = store.open_turns(agent.id).await.unwrap();
    saved(store, scribe.start(&open[0])).await;
    assert_eq!(enqueue().await, new(5, 1), "the first of them has its end");
}

pub async fn a_command_that_has_waited_does_not_set_the_time_back<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _) = running(store, 1).await;
    let before = agent_now(store, agent.id).await.updated_at;
    let late = Turn { asked_at: Timestamp(before.0 - 100), ..asked(agent.id, "p") };
    store.enqueue(late.into(), 2, None).await.unwrap();
    assert_eq!(store.cancel(agent.id, Timestamp(before.0 - 50)).await.unwrap(), 2);
    assert!(store.delete(agent.id, Timestamp(before.0 - 10), Deletion::KeepHistory).await.unwrap());
    assert_eq!(agent_now(store, agent.id).await.updated_at, before);
}

pub async fn a_cancel_is_noted_of_every_open_turn<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    for _ in 0..2 {
        store.enqueue(asked(agent.id, "p").into(), 2, None).await.unwrap();
    }
    let at = Timestamp(LAUNCHED_AT.0 + 60_000);
    assert_eq!(store.cancel(agent.id, at).await.unwrap(), 3);
    assert_eq!(store.cancel(agent.id, Timestamp(at.0 + 1)).await.unwrap(), 0);
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.queued, now.updated_at), (AgentStatus::Running, 0, at));
    assert_eq!(
        store.enqueue(asked(agent.id, "p").into(), 2, None).await.unwrap(),
        new(4, 1),
        "no number twice"
    );
    let open = store.open_turns(agent.id).await.unwrap();
    let cancelled = Some(StopReason::Cancelled);
    assert_eq!(stops(&open), [(1, cancelled), (2, cancelled), (3, cancelled), (4, None)]);

    saved(store, scribe.end(TurnOutcome::Cancelled)).await;
    for turn in &open[1..3] {
        let start = scribe.start(turn);
        let both = Append::chain(vec![start, scribe.end(TurnOutcome::Cancelled)]).unwrap();
        store.append(both.clone()).await.unwrap();
        assert!(store.append(both).await.is_ok(), "again is the same");
    }
    assert_eq!(stops(&store.open_turns(agent.id).await.unwrap()), [(4, None)]);
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.turn, now.queued), (AgentStatus::Initializing, TurnNumber(3), 1));
    assert_eq!(now.head.0, 6, "each has its message and its result");
    let unknown = store.cancel(launch(9).0.id, Timestamp(1)).await;
    assert!(matches!(unknown, Err(StoreError::UnknownAgent(_))), "{unknown:?}");
}

fn stops(turns: &[Turn]) -> Vec<(u32, Option<StopReason>)> {
    turns.iter().map(|turn| (turn.number.0, turn.stop)).collect()
}

pub async fn the_first_reason_to_stop_a_turn_stays<S: IJournal + IAgentRepository>(store: &S) {
    for (n, reason) in (1..).zip(StopReason::ALL) {
        let (agent, mut scribe) = running(store, n).await;
        let stop = async |reason| store.stop_turn(agent.id.turn(TurnNumber::FIRST), reason).await.unwrap();
        assert_eq!(stop(reason).await, Some(reason));
        assert_eq!(stop(StopReason::Cancelled).await, Some(reason));
        store.cancel(agent.id, Timestamp(10)).await.unwrap();
        saved(store, scribe.say(vec![notice("late")])).await;
        assert_eq!(stops(&store.open_turns(agent.id).await.unwrap()), [(1, Some(reason))]);
        saved(store, scribe.end(TurnOutcome::Failed)).await;
        assert_eq!(stop(reason).await, None, "it has ended");
        assert_eq!(store.open_turns(agent.id).await.unwrap(), []);
    }
}

pub async fn a_message_for_an_agent_that_has_ended_makes_it_wait<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    store.enqueue(asked(agent.id, "p").into(), 16, None).await.unwrap();
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Running, "it waits for this one");
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Initializing, "and then for its place");
    store.enqueue(asked(agent.id, "p").into(), 16, None).await.unwrap();
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.ended_at, now.queued), (AgentStatus::Initializing, None, 2));

    let (agent, mut scribe) = running(store, 2).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    store.enqueue(asked(agent.id, "p").into(), 16, None).await.unwrap();
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Initializing, "after its end too");
}

pub async fn an_idle_agent_begins_with_its_first_message<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _) = launch(1);
    let idle = Agent {
        status: AgentStatus::Completed,
        turn: TurnNumber(0),
        queued: 0,
        prompt: String::new(),
        ..agent
    };
    store.create_idle(idle.clone()).await.unwrap();
    assert_eq!(agent_now(store, idle.id).await, idle);
    let again = store.create_idle(idle.clone()).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })), "an id is created once: {again:?}");
    assert_eq!(store.with_open_turns(usize::MAX).await.unwrap(), [], "there is nothing to take up");
    assert_eq!(
        store.turns(idle.id, TurnNumber(0), TurnLimit { turns: 9, bytes: usize::MAX }).await.unwrap(),
        []
    );

    assert_eq!(store.enqueue(asked(idle.id, "first").into(), 16, None).await.unwrap(), new(1, 1));
    let now = agent_now(store, idle.id).await;
    assert_eq!((now.status, now.queued, now.turn), (AgentStatus::Initializing, 1, TurnNumber(0)));
    let first = store.open_turns(idle.id).await.unwrap().remove(0);
    let mut scribe = Scribe::new(&now);
    saved(store, scribe.start(&first)).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let now = agent_now(store, idle.id).await;
    assert_eq!((now.status, now.turn, now.head.0), (AgentStatus::Completed, TurnNumber(1), 2));
}

pub async fn open_turns_are_found_for_recovery<S: IJournal + IAgentRepository>(store: &S) {
    let (third, ..) = launched(store, 3).await;
    let (first, mut ended) = running(store, 1).await;
    let (second, _) = running(store, 2).await;
    let (without, mut idle) = running(store, 4).await;
    saved(store, idle.end(TurnOutcome::Completed)).await;
    let open: Vec<_> =
        store.with_open_turns(usize::MAX).await.unwrap().iter().map(|listed| listed.agent.id).collect();
    assert_eq!(open, [first.id, second.id, third.id]);

    saved(store, ended.end(TurnOutcome::Completed)).await;
    store.enqueue(asked(first.id, "more").into(), 16, None).await.unwrap();
    assert_eq!(store.with_open_turns(usize::MAX).await.unwrap().len(), 3, "a turn that waits is open too");

    store.enqueue(asked(third.id, "later").into(), 16, None).await.unwrap();
    let (agent, turn) = store.next_turn(third.id).await.unwrap().unwrap();
    assert_eq!(Some(&agent), store.get(third.id).await.unwrap().as_ref());
    assert_eq!(turn, store.open_turns(third.id).await.unwrap()[0], "the first one");
    assert_eq!(store.next_turn(without.id).await.unwrap(), None, "it has ended");
    assert_eq!(store.next_turn(launch(9).0.id).await.unwrap(), None, "it is unknown");
}

pub async fn a_key_launches_once<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn) = launch(1);
    let create = |n: u8, key| {
        let (agent, turn) = launch(n);
        store.create(agent, turn.into(), Some(key))
    };
    assert_eq!(
        store.create(agent.clone(), turn.into(), Some(key("a", "k", "body"))).await.unwrap(),
        Created::New
    );
    assert_eq!(create(2, key("a", "k", "body")).await.unwrap(), Created::Again(agent.id));
    assert_eq!(create(3, key("a", "k", "other")).await.unwrap(), Created::KeyReused);
    let recalled =
        |same_body| Some(Recalled { same_body, agent: agent.id, turn: TurnNumber::FIRST, queued: 1 });
    assert_eq!(store.recall(key("a", "k", "body")).await.unwrap(), recalled(true));
    assert_eq!(store.recall(key("a", "k", "other")).await.unwrap(), recalled(false));
    assert_eq!(store.recall(key("b", "k", "body")).await.unwrap(), None);
    assert_eq!(store.get(launch(2).0.id).await.unwrap(), None);
    assert_eq!(create(4, key("b", "k", "other")).await.unwrap(), Created::New, "another scope");
    assert_eq!(create(5, key("a", "l", "body")).await.unwrap(), Created::New, "another key");
}

pub async fn a_key_enqueues_once<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _) = running(store, 1).await;
    let enqueue = |key| store.enqueue(asked(agent.id, "p").into(), 2, Some(key));
    assert_eq!(enqueue(key("a", "k", "p")).await.unwrap(), new(2, 1));
    assert_eq!(enqueue(key("a", "l", "p")).await.unwrap(), new(3, 2));
    let again = Enqueued::Again { turn: TurnNumber(2), queued: 1 };
    assert_eq!(enqueue(key("a", "k", "p")).await.unwrap(), again, "as it was, though the queue is full now");
    assert_eq!(enqueue(key("a", "k", "other")).await.unwrap(), Enqueued::KeyReused);
    assert_eq!(store.open_turns(agent.id).await.unwrap().len(), 3);
}

pub async fn a_key_is_forgotten_in_time<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn) = launch(1);
    assert_eq!(store.newest_key().await.unwrap(), None);
    let long_after = Turn { asked_at: Timestamp(LAUNCHED_AT.0 + 9_000_000), ..turn };
    store.create(agent, long_after.into(), Some(key("a", "k", "body"))).await.unwrap();
    assert_eq!(store.newest_key().await.unwrap(), Some(LAUNCHED_AT), "the key's own time counts");
    let (second, turn) = launch(2);
    let later = Idempotency { forget_before: Timestamp(LAUNCHED_AT.0 + 1_000_000), ..key("a", "k", "other") };
    assert_eq!(store.recall(later.clone()).await.unwrap(), None);
    assert_eq!(store.create(second, turn.into(), Some(later)).await.unwrap(), Created::New);
}

pub async fn a_key_may_last_as_long_as_its_turn_is_the_newest<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn) = launch(1);
    let (id, mut scribe) = (agent.id, Scribe::new(&agent));
    let enqueue = |body: &'static str| store.enqueue(asked(id, body).into(), 16, Some(newest("m", body)));
    let recall = async |scope: &str, body| {
        store.recall(newest(scope, body)).await.unwrap().map(|recalled| (recalled.turn.0, recalled.same_body))
    };
    assert_eq!(
        store.create(agent.clone(), turn.clone().into(), Some(newest("l", "p"))).await.unwrap(),
        Created::New
    );
    assert_eq!(recall("l", "p").await, Some((1, true)));
    assert_eq!(recall("l", "q").await, Some((1, false)));
    let (other, others_turn) = launch(2);
    let again =
        store.create(other.clone(), others_turn.clone().into(), Some(newest("l", "p"))).await.unwrap();
    assert_eq!(again, Created::Again(id));

    saved(store, scribe.start(&turn)).await;
    assert_eq!(enqueue("p").await.unwrap(), new(2, 1));
    assert_eq!(enqueue("p").await.unwrap(), Enqueued::Again { turn: TurnNumber(2), queued: 1 });
    assert_eq!(enqueue("q").await.unwrap(), Enqueued::KeyReused);
    assert_eq!(recall("l", "p").await, None, "a newer one was asked for");
    assert_eq!(store.enqueue(asked(id, "x").into(), 16, None).await.unwrap(), new(3, 2));
    assert_eq!(recall("m", "p").await, None);
    assert_eq!(enqueue("q").await.unwrap(), new(4, 3), "the key is free, for whatever it is");
    assert_eq!((recall("m", "q").await, recall("m", "p").await), (Some((4, true)), Some((4, false))));
    let lasting = store.recall(key("m", "k", "q")).await.unwrap().map(|recalled| recalled.turn);
    assert_eq!(lasting, Some(TurnNumber(4)), "there is one of each key");

    store.delete(id, Timestamp(10), Deletion::KeepHistory).await.unwrap();
    assert_eq!(recall("m", "q").await, None);
    let anew = store.create(other.clone(), others_turn.into(), Some(newest("l", "p"))).await.unwrap();
    assert_eq!(anew, Created::New);
    assert_eq!(recall("l", "p").await, Some((1, true)));
}
