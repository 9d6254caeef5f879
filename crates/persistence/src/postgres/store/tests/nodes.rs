//! Several servers on one database.

use tokenrail_domain::{AgentEdit, AgentId, NodeId, Timestamp, TurnNumber, TurnOutcome};
use tokenrail_ports::testing::samples::{WHOLE_LIST, notice, queued_turn, text_delta};
use tokenrail_ports::{
    AgentFilter, IArchive, IInbox, Letter, LetterContent, LetterId, LetterReply, NodeState, Pulse, TouchMark,
    Touched,
};

use super::*;

#[tokio::test]
async fn a_server_that_has_not_joined_does_only_what_needs_no_node() {
    let database = tokenrail_test_postgres::database();
    let store = PostgresStore::open(config(&database)).await.unwrap();
    let refused = |answer: Result<(), StoreError>| {
        let Err(StoreError::Unavailable(cause)) = answer else { panic!("{answer:?}") };
        assert!(cause.to_string().contains("has not joined"), "{cause}");
    };
    let (agent, turn) = launch(1);
    refused(store.create(agent.clone(), turn.clone().into(), None).await.map(drop));
    refused(store.create_idle(agent.clone()).await);
    refused(store.begin_import(agent.clone()).await);
    refused(store.claim(agent.id).await.map(drop));
    refused(store.append(Scribe::new(&agent).start(&turn)).await);
    refused(store.with_open_turns(9).await.map(drop));
    refused(store.to_purge().await.map(drop));
    refused(store.beat().await.map(drop));
    refused(store.leave().await);
    refused(store.take_over(agent.id).await.map(drop));
    refused(store.errands(9).await.map(drop));
    refused(store.letters(vec![], 9).await.map(drop));
    refused(store.set_watched(agent.id, true).await);
    store.list(AgentFilter { limit: 9, ..AgentFilter::default() }, WHOLE_LIST).await.unwrap();
    assert!(!store.compact_next().await.unwrap());
    assert_eq!(store.nodes().await.unwrap(), []);

    let store = PostgresStore::open(PostgresConfig { node: None, ..config(&database) }).await.unwrap();
    let Err(StoreError::Unavailable(cause)) = store.join().await else { panic!("it has no identity") };
    assert!(cause.to_string().contains("no data folder"), "{cause}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_beats_reads_and_looks_for_what_is_new_while_all_connections_for_commands_are_in_use() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    (config.limits.pool_connections, config.limits.lock_timeout_ms) = (2, 60_000);
    let store = joined(config).await;
    let (agent, _) = running(&store, 1).await;
    let blocker = store.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; SELECT FROM heads FOR UPDATE").await.unwrap();
    let mut cancelling = Box::pin(store.cancel(agent.id, agent.created_at));
    assert!(futures_util::poll!(&mut cancelling).is_pending());
    until("the command waits", || database.sql(LOCKED) == "1");
    for beat in 1..4 {
        assert_eq!(store.beat().await.unwrap()[0].pulse.beat, beat);
    }
    assert_eq!(store.standings(vec![agent.id]).await.unwrap().len(), 1);
    let events = store.read_many(vec![(agent.id, Sequence::START)], PageLimit { events: 9, bytes: 9 }).await;
    assert_eq!(events.unwrap().len(), 1);
    assert!(store.get(agent.id).await.unwrap().is_some());
    assert!(!store.declare_lost(NodeId(9), Pulse { incarnation: 1, beat: 0 }).await.unwrap());
    store.errands(9).await.unwrap();
    store.letters(vec![], 9).await.unwrap();
    assert!(futures_util::poll!(&mut cancelling).is_pending());
    blocker.batch("COMMIT").await.unwrap();
    cancelling.await.unwrap();
}

/// An administrator ends the statement of a change, or the server does not answer in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_gets_no_answer_may_be_tried_again() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    (config.limits.lock_timeout_ms, config.limits.answer_timeout_ms) = (60_000, 60_000);
    let patient = joined(config.clone()).await;
    let (agent, _) = running(&patient, 1).await;
    config.limits.answer_timeout_ms = 2000;
    let hasty = PostgresStore::open(config).await.unwrap();
    // It has a connection from here on.
    let pinned = AgentEdit { pinned: Some(true), ..AgentEdit::default() };
    hasty.edit(agent.id, pinned).await.unwrap();
    let blocker = patient.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; SELECT FROM heads FOR UPDATE").await.unwrap();

    let mut cancelling = Box::pin(patient.cancel(agent.id, agent.created_at));
    assert!(futures_util::poll!(&mut cancelling).is_pending());
    until("the command waits", || database.sql(LOCKED) == "1");
    database.sql(&LOCKED.replace("count(*)", "pg_cancel_backend(pid)"));
    let cancelled = cancelling.await;
    assert!(matches!(cancelled, Err(StoreError::Busy)), "{cancelled:?}");

    let unanswered = hasty.cancel(agent.id, agent.created_at).await;
    let Err(StoreError::Unreachable(cause)) = unanswered else { panic!("{unanswered:?}") };
    assert_eq!(cause.to_string(), "the PostgreSQL server did not answer within 2s");

    blocker.batch("COMMIT").await.unwrap();
    assert_eq!(patient.cancel(agent.id, agent.created_at).await.unwrap(), 1);
}

/// A node that may join with this token. It waits only for a moment for the beats of others.
async fn with_token(database: &Database, folder: u8, token: &[u8]) -> PostgresStore {
    let store = PostgresStore::open(config_of(database, folder)).await.unwrap();
    assert!(store.agree_on_token(token, Duration::from_millis(100)).await.unwrap());
    store
}

/// Both ask before one of them has joined.
#[tokio::test]
async fn of_two_nodes_with_different_tokens_that_start_at_the_same_time_one_joins() {
    let database = tokenrail_test_postgres::database();
    let one = with_token(&database, 1, b"one").await;
    let two = with_token(&database, 2, b"two").await;
    let Err(StoreError::Unavailable(cause)) = one.join().await else { panic!("the other one has the token") };
    assert!(cause.to_string().contains("a different access token"), "{cause}");
    two.join().await.unwrap();
    assert_eq!(two.nodes().await.unwrap().len(), 1);
}

/// Its beats tell the others, so they need not wait for long.
#[tokio::test]
async fn a_node_with_another_token_does_not_join_a_node_that_beats() {
    let database = tokenrail_test_postgres::database();
    let silence = Duration::from_hours(1);
    let one = with_token(&database, 1, b"one").await;
    one.join().await.unwrap();
    let two = PostgresStore::open(config_of(&database, 2)).await.unwrap();
    let beats = async {
        loop {
            one.beat().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let asked = tokio::select! {
        biased;
        asked = two.agree_on_token(b"two", silence) => asked,
        () = beats => unreachable!(),
    };
    assert!(!asked.unwrap());
}

/// As after a power cut: nobody has declared it lost. If it is not dead after all, its next beat tells it.
#[tokio::test]
async fn a_node_that_does_not_beat_keeps_no_other_from_a_new_token() {
    let database = tokenrail_test_postgres::database();
    let one = with_token(&database, 1, b"old").await;
    one.join().await.unwrap();
    one.beat().await.unwrap();
    let two = with_token(&database, 2, b"new").await;
    two.join().await.unwrap();
    assert!(matches!(one.beat().await, Err(StoreError::Fenced)));
}

#[tokio::test]
async fn a_beat_finds_how_old_the_snapshots_of_the_database_are() {
    let (store, _database) = fresh().await;
    let reader = store.inner.connector.connect_only().await.unwrap();
    reader.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    running(&store, 1).await;
    store.beat().await.unwrap();
    drop(store.inner.upkeep.lock().await);
    let age = store.figures().age;
    assert!(0 < age.oldest_snapshot && 0 < age.transaction_id, "{age:?}");
}

/// Two servers with the same identity. What the older one creates while the newer one joins belongs to the newer one,
/// and the older one may not go on with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_waits_for_an_agent_that_a_former_server_is_about_to_create() {
    let database = tokenrail_test_postgres::database();
    let mut config = config(&database);
    config.limits.lock_timeout_ms = 60_000;
    let (one, twin) = (joined(config.clone()).await, PostgresStore::open(config).await.unwrap());
    let blocker = one.inner.connector.connect_only().await.unwrap();
    blocker.batch("BEGIN; LOCK TABLE turns IN SHARE MODE").await.unwrap();
    let (agent, turn) = launch(1);
    let mut creating = Box::pin(one.create(agent.clone(), turn.clone().into(), None));
    assert!(futures_util::poll!(&mut creating).is_pending());
    until("the agent is about to be created", || database.sql(LOCKED) == "1");
    let mut joining = Box::pin(twin.join());
    while database.sql(LOCKED) != "2" {
        let joined = futures_util::poll!(&mut joining);
        assert!(joined.is_pending(), "the newer server would own an agent that it does not know");
    }
    blocker.batch("COMMIT").await.unwrap();
    creating.await.unwrap();
    joining.await.unwrap();
    assert_eq!(twin.with_open_turns(9).await.unwrap()[0].agent.id, agent.id);
    let late = one.append(Scribe::new(&agent).start(&turn)).await;
    assert!(matches!(late, Err(StoreError::Fenced)), "{late:?}");
}

/// Its time is earlier than that of a change that was committed before it.
#[tokio::test]
async fn a_change_that_is_committed_late_is_found() {
    let (servers, database) = shared().await;
    let Servers { one, other, .. } = &servers;
    one.join().await.unwrap();
    let agents = [launch(1), launch(2)].map(|(agent, _)| agent.id);
    running(one, 1).await;
    running(one, 2).await;
    let blocker = one.inner.connector.connect_only().await.unwrap();
    let mark = other.touched(None, 9).await.unwrap().mark;
    blocker
        .batch(&format!("BEGIN; UPDATE agents SET pinned = true WHERE id = '{}'", agents[0]))
        .await
        .unwrap();
    one.cancel(agents[1], Timestamp(1)).await.unwrap();
    let found =
        |touched: Touched| -> Vec<AgentId> { touched.agents.into_iter().map(|(agent, _)| agent).collect() };
    let first = other.touched(Some(mark), 9).await.unwrap();
    let mark: TouchMark = first.mark;
    assert_eq!(found(first), [agents[1]]);
    blocker.batch("COMMIT").await.unwrap();
    assert!(found(other.touched(Some(mark), 9).await.unwrap()).contains(&agents[0]));
    let mark = other.touched(None, 9).await.unwrap().mark;
    assert_eq!(found(other.touched(Some(mark), 9).await.unwrap()), []);
    drop(database);
}

/// An agent of this node with many batches in ended turns.
async fn talked(store: &PostgresStore, n: u8) -> (Agent, Vec<Event>) {
    let (agent, mut scribe) = running(store, n).await;
    for text in 0..12 {
        let text = text_delta(0, &format!("{text} ").repeat(300));
        store.append(scribe.say(vec![text, notice("n")])).await.unwrap();
    }
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    let events = everything(store, &agent).await;
    (agent, events)
}

#[tokio::test]
async fn a_node_packs_its_own_turns_at_once_and_those_of_others_later() {
    let database = tokenrail_test_postgres::database();
    let (one, other) = (joined(config(&database)).await, other_node(&database).await);
    talked(&one, 1).await;
    let now = "(extract(epoch FROM now()) * 1000)::bigint";
    database.sql(&format!("UPDATE turns SET ended_at = {now}"));
    assert!(!other.compact_next().await.unwrap(), "its home does that");
    let mut config = config_of(&database, 3);
    config.limits.compact_others_after_ms = 0;
    let third = joined(config).await;
    database.sql("UPDATE turns SET ended_at = ended_at - 1000");
    assert!(third.compact_next().await.unwrap());
    database.sql("UPDATE turns SET ended_at = ended_at - 60000");
    while other.compact_next().await.unwrap() {}
    assert_eq!(database.sql("SELECT count(*) FROM turns WHERE NOT compacted"), "0");
    talked(&one, 2).await;
    assert!(one.compact_next().await.unwrap());
    assert!(!one.compact_next().await.unwrap(), "a short turn is packed in one step");
}

/// A read of many agents is one view: no batch is missing because it was packed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_pack_the_same_turns_disturb_neither_each_other_nor_a_reader() {
    let database = tokenrail_test_postgres::database();
    let open = async |folder| {
        let mut config = config_of(&database, folder);
        config.limits.compact_others_after_ms = 0;
        (config.limits.block_events, config.limits.block_bytes) = (4, 1);
        joined(config).await
    };
    let (one, other) = (open(1).await, open(2).await);
    let mut expected = Vec::new();
    for n in 0..6 {
        let (agent, events) = talked(&one, n).await;
        expected.push((agent.id, events));
    }
    database.sql("UPDATE turns SET ended_at = 1");
    let mut packing = JoinSet::new();
    for store in [one.clone(), other.clone()] {
        packing.spawn(async move { while store.compact_next().await.unwrap() {} });
    }
    let mut cursor = 0;
    while !packing.is_empty() {
        cursor = (cursor + 1) % 20;
        let wanted = expected.iter().map(|(agent, _)| (*agent, Sequence(cursor))).collect();
        let read = other.read_many(wanted, WHOLE).await.unwrap();
        let rest = expected.iter().map(|(agent, all)| (*agent, all[cursor as usize..].to_vec()));
        assert_eq!(read, rest.collect::<Vec<_>>());
        while let Some(packed) = packing.try_join_next() {
            packed.unwrap();
        }
    }
    assert_eq!(database.sql("SELECT count(*) FROM turns WHERE NOT compacted"), "0");
    assert_eq!(database.sql("SELECT count(*) FROM journal WHERE codec <> 2"), "0");
}

fn letter(n: u8) -> Letter {
    Letter { id: LetterId([n; 16]), agent: launch(1).0.id, content: LetterContent::Dismiss }
}

#[tokio::test]
async fn old_letters_are_removed_and_unreadable_ones_are_not_delivered() {
    let (store, database) = fresh().await;
    for n in 1..4 {
        store.put(NodeId(1), letter(n)).await.unwrap();
    }
    database.sql("UPDATE inbox SET made_at = made_at - 599000 WHERE number = 2");
    database.sql("UPDATE inbox SET made_at = made_at - 600001 WHERE number = 1");
    database.sql("UPDATE inbox SET body = '{\"of\":\"a newer version\"}' WHERE number = 3");
    store.put(NodeId(1), letter(4)).await.unwrap();
    assert_eq!(store.letters(vec![], 9).await.unwrap(), [letter(2), letter(4)]);
    let told = store.reply_to(letter(3).id).await.unwrap();
    assert_eq!(told, Some(LetterReply::NotDelivered), "its writer does not wait for nothing");
    assert_eq!(database.sql("SELECT count(*) FROM inbox"), "3");
}

#[tokio::test]
async fn people_can_see_the_nodes() {
    let (store, database) = fresh().await;
    running(&store, 1).await;
    store.enqueue(queued_turn(launch(1).0.id, TurnNumber(0), "p").into(), 9, None).await.unwrap();
    assert_eq!(database.sql("SELECT id, name, state, agents_owned FROM readable_nodes"), "1|host-1|alive|1");
    let nodes = store.nodes().await.unwrap();
    assert_eq!((nodes[0].state, &*nodes[0].name), (NodeState::Alive, "host-1"));
    assert_eq!(nodes[0].version, env!("CARGO_PKG_VERSION"));
}
