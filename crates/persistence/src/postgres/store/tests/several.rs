//! Several agents, several callers, several stores.

use tokenrail_domain::{AgentStatus, Timestamp, Turn, TurnNumber, TurnOutcome};
use tokenrail_ports::testing::samples::{notice, queued_turn, text_delta};
use tokenrail_ports::{Created, Deletion, Epoch, Idempotency, KeyLife};

use super::*;

/// Saves appends at the same time, and returns the answers in their order.
async fn all_at_once(store: &PostgresStore, appends: Vec<Append>) -> Vec<Result<(), StoreError>> {
    let saving = appends.into_iter().map(|append| store.append(append));
    futures_util::future::join_all(saving).await
}

#[tokio::test]
async fn what_many_agents_say_at_once_is_saved_for_each() {
    let (store, _database) = fresh().await;
    let mut agents = Vec::new();
    for n in 0..40 {
        agents.push(running(&store, n).await);
    }
    let mut expected: Vec<Vec<Event>> = Vec::new();
    for (agent, _) in &agents {
        expected.push(everything(&store, agent).await);
    }
    for round in 0..5 {
        let said = [text_delta(0, &format!("{round} ").repeat(600)), notice("n")];
        let appends: Vec<Append> = agents.iter_mut().map(|(_, scribe)| scribe.say(said.to_vec())).collect();
        for (expected, append) in expected.iter_mut().zip(&appends) {
            expected.extend_from_slice(&append.events);
        }
        assert!(all_at_once(&store, appends).await.iter().all(Result::is_ok));
    }
    for ((agent, _), expected) in agents.iter().zip(&expected) {
        assert_eq!(&everything(&store, agent).await, expected);
    }
}

#[tokio::test]
async fn an_append_that_is_refused_does_not_disturb_those_that_are_saved_with_it() {
    let (store, database) = fresh().await;
    let mut agents = Vec::new();
    for n in 0..8 {
        agents.push(running(&store, n).await);
    }
    let twice = &mut agents[1].1;
    store.append(twice.say(vec![text_delta(0, "a")])).await.unwrap();
    let complete = twice.complete(0);
    store.append(twice.say(vec![complete.clone()])).await.unwrap();
    let mut appends: Vec<Append> =
        agents.iter_mut().map(|(_, scribe)| scribe.say(vec![notice("n")])).collect();
    // The second agent completes a message again, which breaks the whole statement. The third one skips a number.
    let again = Event { body: complete, ..appends[1].events[0].clone() };
    appends[1].events = Arc::from([again]);
    let skips = Event { sequence: appends[2].events[0].sequence.next(), ..appends[2].events[0].clone() };
    appends[2].events = Arc::from([skips]);
    appends.push(Scribe::new(&launch(99).0).say(vec![notice("n")]));
    let answers = all_at_once(&store, appends).await;
    for (at, answer) in answers.iter().enumerate() {
        match at {
            1 | 2 => assert!(matches!(answer, Err(StoreError::Conflict { .. })), "{at}: {answer:?}"),
            8 => assert!(matches!(answer, Err(StoreError::UnknownAgent(_))), "{at}: {answer:?}"),
            _ => assert!(answer.is_ok(), "{at}: {answer:?}"),
        }
    }
    assert_eq!(database.sql("SELECT count(*) FROM heads WHERE head = 2"), "6");
}

#[tokio::test]
async fn an_append_is_saved_even_if_its_caller_stops_waiting() {
    let (store, _database) = fresh().await;
    let (agent, mut scribe) = running(&store, 1).await;
    let mut saving = Box::pin(store.append(scribe.say(vec![notice("n")])));
    assert!(futures_util::poll!(&mut saving).is_pending());
    drop(saving);
    store.append(scribe.say(vec![notice("n")])).await.unwrap();
    assert_eq!(everything(&store, &agent).await.len(), 3);
}

#[tokio::test]
async fn what_is_queued_is_saved_before_the_store_closes() {
    let (store, database) = fresh().await;
    let (agent, mut scribe) = running(&store, 1).await;
    let append = scribe.say(vec![notice("n")]);
    let (saved, ()) = tokio::join!(biased; store.append(append), store.close());
    saved.unwrap();
    let refused = store.append(scribe.say(vec![notice("n")])).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(matches!(store.get(agent.id).await, Err(StoreError::Unavailable(_))));
    store.close().await;
    let store = PostgresStore::open(config(&database)).await.unwrap();
    assert_eq!(everything(&store, &agent).await.len(), 2);
}

#[tokio::test]
async fn two_stores_on_one_database_agree() {
    let (one, database) = fresh().await;
    let other = other_node(&database).await;
    let (agent, mut scribe) = running(&one, 1).await;
    let said = scribe.rehearse(vec![notice("one")]);
    let others = scribe.say(vec![notice("other")]);
    let (first, second) = tokio::join!(one.append(said), other.append(others));
    let answers = [first, second];
    let conflicts = answers.iter().filter(|answer| matches!(answer, Err(StoreError::Conflict { .. })));
    assert_eq!((conflicts.count(), answers.iter().filter(|answer| answer.is_ok()).count()), (1, 1));
    assert_eq!(everything(&one, &agent).await, everything(&other, &agent).await);

    other.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    assert!(one.purge(agent.id, agent.created_at).await.unwrap());
    let gone = other.read(agent.id, Sequence::START, WHOLE).await;
    assert!(matches!(gone, Err(StoreError::UnknownAgent(_))), "{gone:?}");
    let late = other.append(scribe.say(vec![notice("late")])).await;
    assert!(matches!(late, Err(StoreError::UnknownAgent(_))), "{late:?}");
}

/// Whichever comes first, the agent runs the message.
#[tokio::test]
async fn a_message_that_arrives_while_a_turn_ends_is_not_forgotten() {
    let (one, database) = fresh().await;
    let other = other_node(&database).await;
    for n in 0..20 {
        let (agent, mut scribe) = running(&one, n).await;
        let message = queued_turn(agent.id, TurnNumber(0), "go on");
        let end = scribe.end(TurnOutcome::Completed);
        let both = tokio::join!(one.append(end), other.enqueue(message.clone().into(), 9, None));
        let again = tokio::join!(
            one.enqueue(message.clone().into(), 9, None),
            other.enqueue(message.into(), 9, None)
        );
        assert!(both.0.is_ok() && both.1.is_ok() && again.0.is_ok() && again.1.is_ok(), "{both:?} {again:?}");
        let now = one.get(agent.id).await.unwrap().unwrap();
        assert_eq!((now.status, now.queued), (AgentStatus::Initializing, 3));
    }
}

#[tokio::test]
async fn an_agent_has_an_owner_while_a_turn_is_open() {
    let (store, database) = fresh().await;
    let owner = || database.sql("SELECT owner, epoch FROM heads");
    let (agent, mut scribe) = running(&store, 1).await;
    assert_eq!(owner(), "1|1");
    let next = Turn { run: TurnNumber(1), ..queued_turn(agent.id, TurnNumber(2), "") };
    let chain = vec![scribe.end(TurnOutcome::Completed), scribe.start(&next)];
    store.append(Append::chain(chain).unwrap()).await.unwrap();
    assert_eq!(owner(), "1|1");
    let message = queued_turn(agent.id, TurnNumber(0), "go on");
    store.enqueue(message.into(), 9, None).await.unwrap();
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    assert_eq!(owner(), "1|1", "another turn waits");
    let waits = store.open_turns(agent.id).await.unwrap().remove(0);
    store.append(scribe.start(&waits)).await.unwrap();
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    assert_eq!(owner(), "|1");
    assert_eq!(store.claim(agent.id).await.unwrap(), Some(Epoch(2)));
    assert_eq!((owner(), store.claim(agent.id).await.unwrap()), ("1|2".to_owned(), Some(Epoch(2))));
    database.sql("UPDATE heads SET owner = 2");
    assert_eq!(store.claim(agent.id).await.unwrap(), None, "it is another node's");
}

fn key(key: String) -> Idempotency {
    Idempotency {
        scope: "launch".into(),
        key,
        body: "body".into(),
        used_at: Timestamp(1),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    }
}

/// Two stores create an agent each at the same time, twenty times. `with` makes the `n`th agent and its key.
async fn created_in_pairs(with: impl Fn(u8) -> (Agent, Option<Idempotency>)) -> Vec<[Created; 2]> {
    let (one, database) = fresh().await;
    let other = other_node(&database).await;
    let create = async |store: &PostgresStore, n: u8| {
        let (agent, key) = with(n);
        store.create(agent, launch(n).1.into(), key).await.unwrap()
    };
    let mut pairs = Vec::new();
    for n in (0..40).step_by(2) {
        pairs.push(tokio::join!(create(&one, n), create(&other, n + 1)).into());
    }
    assert_eq!(database.sql("SELECT count(*) FROM agents"), "20");
    pairs
}

#[tokio::test]
async fn a_key_that_two_stores_use_at_once_launches_one_agent() {
    let pairs = created_in_pairs(|n| (launch(n).0, Some(key(format!("key {}", n / 2)))));
    for (n, pair) in (0..).step_by(2).zip(pairs.await) {
        let [first, second] = [n, n + 1].map(|n| launch(n).0.id);
        let either = [[Created::New, Created::Again(first)], [Created::Again(second), Created::New]];
        assert!(either.contains(&pair), "{pair:?}");
    }
}

/// Such a key lasts as long as its turn is the newest. Here it has expired each time.
#[tokio::test]
async fn an_expired_key_that_two_stores_use_at_once_launches_one_agent() {
    let (one, database) = fresh().await;
    let other = other_node(&database).await;
    let create = async |store: &PostgresStore, n: u8| {
        let key = Idempotency { life: KeyLife::WhileNewest, ..key("k".into()) };
        let (agent, turn) = launch(n);
        store.create(agent, turn.into(), Some(key)).await.unwrap()
    };
    for n in (0..40).step_by(2) {
        let both = tokio::join!(create(&one, n), create(&other, n + 1));
        let [first, second] = [n, n + 1].map(|n| launch(n).0.id);
        let created = match both {
            (Created::New, Created::Again(again)) if again == first => first,
            (Created::Again(again), Created::New) if again == second => second,
            both => panic!("{both:?}"),
        };
        one.delete(created, Timestamp(1), Deletion::KeepHistory).await.unwrap();
    }
    assert_eq!(database.sql("SELECT count(*) FROM agents"), "20");
}

#[tokio::test]
async fn a_conversation_that_two_stores_begin_at_once_has_one_agent() {
    let pairs = created_in_pairs(|n| (Agent { chat: Some(format!("chat {}", n / 2)), ..launch(n).0 }, None));
    for (n, pair) in (0..).step_by(2).zip(pairs.await) {
        let [first, second] = [n, n + 1].map(|n| launch(n).0.id);
        let either = [[Created::New, Created::ChatTaken(first)], [Created::ChatTaken(second), Created::New]];
        assert!(either.contains(&pair), "{pair:?}");
    }
}

#[tokio::test]
async fn a_page_of_a_long_journal_is_read_in_steps() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    (config.limits.fetch_rows, config.limits.fetch_bytes) = (2, 100);
    let store = joined(config).await;
    let (agent, mut scribe) = running(&store, 1).await;
    for n in 0..9 {
        let said = vec![text_delta(0, &format!("{n}").repeat(n * 20)), notice("n")];
        store.append(scribe.say(said)).await.unwrap();
    }
    let events = everything(&store, &agent).await;
    assert_eq!(events.len(), 19);
    let shown = store.messages(agent.id, Sequence::START, WHOLE).await.unwrap();
    assert_eq!(shown.events, events, "the message is open, so its deltas are shown too");
    store.append(scribe.end(TurnOutcome::Failed)).await.unwrap();
    while store.compact_next().await.unwrap() {
        assert_eq!(everything(&store, &agent).await[..19], events);
    }
}
