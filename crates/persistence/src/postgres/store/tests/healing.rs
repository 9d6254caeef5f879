//! A failover that has lost the last moments: they are saved again.

use tokenrail_domain::{
    AgentEdit, NewName, NodeId, StopReason, Timestamp, TurnNumber, TurnOutcome, TurnState,
};
use tokenrail_ports::testing::contract::archive::an_imported_history_reads_back_as_it_was;
use tokenrail_ports::testing::samples::{notice, queued_turn, text_delta};
use tokenrail_ports::{
    Created, Deletion, Enqueued, Epoch, IInbox as _, Idempotency, KeyLife, LETTER_LIFE_MS, Letter,
    LetterContent, LetterId, LetterReply, Recalled,
};
use tokenrail_test_postgres::Replication;

use super::failovers::Pair;
use super::*;
use crate::postgres::command::{KeptChange as _, Redone};
use crate::postgres::statements::inbox::PutCommand;

pub(super) fn key(name: &str) -> Idempotency {
    Idempotency {
        scope: "s".into(),
        key: name.into(),
        body: "b".into(),
        used_at: Timestamp(1000),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    }
}

/// The next turn of an agent whose last one has ended, up to its start.
async fn next_turn(store: &PostgresStore, agent: &Agent, scribe: Scribe, number: u32) -> (Scribe, Append) {
    let mut turn = queued_turn(agent.id, TurnNumber(number), "next");
    let queued = store.enqueue(turn.clone().into(), 9, Some(key("next"))).await.unwrap();
    assert_eq!(queued, Enqueued::New { turn: TurnNumber(number), queued: 1, unarchived: false });
    turn.run = TurnNumber(number);
    let epoch = store.claim(agent.id).await.unwrap().unwrap();
    let mut scribe = scribe.at_epoch(epoch);
    let start = scribe.start(&turn);
    (scribe, start)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failover_has_lost_is_saved_again() {
    let pair = Pair::new(Replication::Asynchronous);
    let store = joined(pair.config(1)).await;
    let (old, mut scribe) = running(&store, 1).await;
    let mut said = vec![scribe.say(vec![text_delta(0, "before")])];
    store.append(said[0].clone()).await.unwrap();

    pair.standby.fall_behind(&pair.primary);
    for text in 0..20 {
        said.push(scribe.say(vec![text_delta(0, &text.to_string()), notice("n")]));
        store.append(said[said.len() - 1].clone()).await.unwrap();
    }
    said.push(scribe.end(TurnOutcome::Completed));
    store.append(said[said.len() - 1].clone()).await.unwrap();
    let (mut scribe, start) = next_turn(&store, &old, scribe, 2).await;
    said.push(start);
    said.push(scribe.say(vec![notice("in the next turn")]));
    for append in &said[said.len() - 2..] {
        store.append(append.clone()).await.unwrap();
    }
    assert_eq!(store.cancel(old.id, Timestamp(1)).await.unwrap(), 1);
    let (new, mut of_new) = running(&store, 2).await;
    let complaint = of_new.say(vec![notice("of a new agent")]);
    store.append(complaint.clone()).await.unwrap();
    let (waits, turn) = launch(3);
    let created = store.create(waits.clone(), turn.into(), Some(key("launch"))).await.unwrap();
    assert_eq!(created, Created::New);
    let expected = (everything(&store, &old).await, everything(&store, &new).await);

    pair.fail_over();
    assert_eq!(pair.standby.sql_in(&pair.database, "SELECT count(*) FROM agents"), "1");
    assert_eq!(pair.standby.sql_in(&pair.database, "SELECT head FROM heads"), "2");
    let next = scribe.say(vec![notice("after the failover")]);
    save_at_last(&store, &next).await;
    let later = everything(&store, &old).await;
    assert_eq!(later[..later.len() - 1], expected.0);
    assert_eq!(everything(&store, &new).await, expected.1);
    let failovers = store.failovers();
    assert_eq!((failovers.count, failovers.lost), (1, 0));
    assert!(20 < failovers.repeated, "{failovers:?}");

    let turns = store.open_turns(old.id).await.unwrap();
    let [turn] = &turns[..] else { panic!("{turns:?}") };
    assert_eq!(
        (turn.number, turn.state, turn.stop),
        (TurnNumber(2), TurnState::Running, Some(StopReason::Cancelled))
    );
    let recalled = |turn, id| Some(Recalled { same_body: true, agent: id, turn, queued: 1 });
    assert_eq!(store.recall(key("next")).await.unwrap(), recalled(TurnNumber(2), old.id));
    assert_eq!(store.recall(key("launch")).await.unwrap(), recalled(TurnNumber::FIRST, waits.id));
    assert_eq!(store.last_turn(waits.id).await.unwrap(), TurnNumber::FIRST);
    store.append(scribe.end(TurnOutcome::Cancelled)).await.unwrap();
    store.append(of_new.end(TurnOutcome::Completed)).await.unwrap();
    store.beat().await.unwrap();
}

/// The failover had lost the epoch of the former owner. The new owner has another one nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_taken_over_after_the_failover_is_not_written_to() {
    let pair = Pair::new(Replication::Asynchronous);
    let one = joined(pair.config(1)).await;
    let mut config = pair.config(2);
    // It does not wait for the others.
    (config.limits.catch_up_ms, config.limits.catch_up_least_ms) = (0, 0);
    let other = joined(config).await;
    let (agent, mut scribe) = running(&one, 1).await;
    pair.standby.fall_behind(&pair.primary);
    one.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    let (mut scribe, start) = next_turn(&one, &agent, scribe, 2).await;
    let lost = scribe.say(vec![notice("lost")]);
    one.append(start).await.unwrap();
    one.append(lost).await.unwrap();

    pair.fail_over();
    while other.check().await.is_err() {}
    let seen = other.nodes().await.unwrap()[0].pulse;
    assert!(other.declare_lost(NodeId(1), seen).await.unwrap());
    let epoch = other.take_over(agent.id).await.unwrap().unwrap();
    assert!(Epoch(1 << 32) <= epoch, "{epoch:?}");
    let append = scribe.say(vec![notice("late")]);
    let late = loop {
        match one.append(append.clone()).await {
            Err(error) if error.is_transient() => tokio::task::yield_now().await,
            answer => break answer,
        }
    };
    assert!(matches!(late, Err(StoreError::Fenced)), "{late:?}");
    assert_eq!(everything(&other, &agent).await.len(), 1);
    assert!(0 < one.failovers().lost);
}

/// Its next beat would otherwise say that another server has joined in its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_join_was_lost_goes_on() {
    let pair = Pair::new(Replication::Asynchronous);
    let first = joined(pair.config(1)).await;
    let (agent, scribe) = running(&first, 1).await;
    first.close().await;
    pair.standby.fall_behind(&pair.primary);
    let (again, new) = (joined(pair.config(1)).await, joined(pair.config(2)).await);
    let epoch = again.claim(agent.id).await.unwrap().unwrap();
    assert_eq!(epoch, Epoch(2));
    pair.fail_over();
    assert_eq!(pair.standby.sql_in(&pair.database, "SELECT count(*) FROM nodes"), "1");
    for store in [&again, &new] {
        while let Err(error) = store.beat().await {
            assert!(error.is_transient(), "the first that it does there: {error:?}");
        }
    }
    let append = scribe.at_epoch(epoch).say(vec![notice("n")]);
    save_at_last(&again, &append).await;
    while new.check().await.is_err() {}
    for store in [&again, &new] {
        assert_eq!(store.beat().await.unwrap().len(), 2);
    }
    let third = joined(pair.config(3)).await;
    assert_eq!(third.nodes().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_imports_letters_and_types_are_saved_again() {
    let pair = Pair::new(Replication::Asynchronous);
    let (one, other) = (joined(pair.config(1)).await, joined(pair.config(2)).await);
    let (edited, _) = launch(5);
    one.create_idle(edited.clone()).await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    one.offer(vec!["a".into()]).await.unwrap();
    one.offer(vec!["b".into()]).await.unwrap();
    let edit = |name: &str| AgentEdit { name: Some(NewName::Text(name.into())), ..AgentEdit::default() };
    one.edit(edited.id, edit("first")).await.unwrap();
    one.edit(edited.id, edit("second")).await.unwrap();
    one.edit(edited.id, AgentEdit { pinned: Some(true), ..AgentEdit::default() }).await.unwrap();
    an_imported_history_reads_back_as_it_was(&one).await;
    let imported = one.get(launch(1).0.id).await.unwrap().unwrap();
    let events = everything(&one, &imported).await;
    let letter = |n| Letter { id: LetterId([n; 16]), agent: edited.id, content: LetterContent::Dismiss };
    for n in [1, 2] {
        other.put(NodeId(1), letter(n)).await.unwrap();
    }
    one.reply(letter(1).id, LetterReply::Settled).await.unwrap();

    pair.fail_over();
    // The first node replies to a letter that the other one puts again later.
    for store in [&one, &other] {
        while store.check().await.is_err() {}
    }
    assert_eq!(one.nodes().await.unwrap()[0].types, ["b"]);
    let agent = other.get(edited.id).await.unwrap().unwrap();
    assert_eq!((agent.name.as_deref(), agent.pinned), (Some("second"), true));
    assert_eq!(other.get(imported.id).await.unwrap(), Some(imported.clone()));
    assert_eq!(everything(&other, &imported).await, events);
    assert!(one.to_purge().await.unwrap().is_empty());
    while other.reply_to(letter(1).id).await.unwrap() != Some(LetterReply::Settled) {
        tokio::task::yield_now().await;
    }
    assert_eq!(one.letters(vec![], 9).await.unwrap(), [letter(2)]);
    assert_eq!((one.failovers().lost, other.failovers().lost), (0, 0));
}

/// The process that replied is gone, and does not know whether that was saved. Its successor replies again.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_was_there_at_the_second_attempt_is_saved_again() {
    let pair = Pair::new(Replication::Asynchronous);
    let (one, other) = (joined(pair.config(1)).await, joined(pair.config(2)).await);
    let (agent, _) = launch(5);
    one.create_idle(agent.clone()).await.unwrap();
    let letter = Letter { id: LetterId([1; 16]), agent: agent.id, content: LetterContent::Dismiss };
    other.put(NodeId(1), letter.clone()).await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    one.reply(letter.id, LetterReply::Settled).await.unwrap();
    drop(one);
    let again = joined(pair.config(1)).await;
    again.reply(letter.id, LetterReply::Settled).await.unwrap();

    pair.fail_over();
    for store in [&again, &other] {
        while store.check().await.is_err() {}
    }
    let started = std::time::Instant::now();
    while other.reply_to(letter.id).await.unwrap() != Some(LetterReply::Settled) {
        assert!(started.elapsed() < PATIENCE, "the reply is lost");
    }
}

/// The failover has lost nothing of it, and the second attempt has changed nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_there_does_not_count_as_saved_again() {
    let pair = Pair::new(Replication::Asynchronous);
    let (one, other) = (joined(pair.config(1)).await, joined(pair.config(2)).await);
    let letter = Letter { id: LetterId([1; 16]), agent: launch(5).0.id, content: LetterContent::Dismiss };
    other.put(NodeId(1), letter.clone()).await.unwrap();
    for _ in 0..2 {
        one.reply(letter.id, LetterReply::Settled).await.unwrap();
    }
    pair.standby_has_everything();
    pair.fail_over();
    while one.check().await.is_err() {}
    assert_eq!((one.failovers().repeated, one.failovers().lost), (0, 0));
}

/// It was changed on the new server before this node came there.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_came_later_stays() {
    let pair = Pair::new(Replication::Asynchronous);
    let (one, other) = (joined(pair.config(1)).await, joined(pair.config(2)).await);
    let (agent, _) = launch(1);
    one.create_idle(agent.clone()).await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    let edit = |name: &str| AgentEdit { name: Some(NewName::Text(name.into())), ..AgentEdit::default() };
    one.edit(agent.id, AgentEdit { archived: Some(true), ..edit("lost") }).await.unwrap();
    pair.fail_over();
    while other.edit(agent.id, edit("later")).await.is_err() {}
    while one.check().await.is_err() {}
    let agent = one.get(agent.id).await.unwrap().unwrap();
    assert_eq!((agent.name.as_deref(), agent.archived), (Some("later"), true));
}

/// The failover has lost nothing of them. One is reverted before it, the other one afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_was_reverted_at_another_node_does_not_come_back() {
    let pair = Pair::new(Replication::Asynchronous);
    let (one, other) = (joined(pair.config(1)).await, joined(pair.config(2)).await);
    let agents = [launch(1).0, launch(2).0];
    let pin = |pinned| AgentEdit { pinned: Some(pinned), ..AgentEdit::default() };
    for agent in &agents {
        one.create_idle(agent.clone()).await.unwrap();
        one.edit(agent.id, pin(true)).await.unwrap();
    }
    other.edit(agents[0].id, pin(false)).await.unwrap();
    pair.standby_has_everything();
    pair.fail_over();
    while other.edit(agents[1].id, pin(false)).await.is_err() {}
    while one.check().await.is_err() {}
    for agent in agents {
        assert!(!one.get(agent.id).await.unwrap().unwrap().pinned);
    }
    assert_eq!(one.failovers().lost, 0);
}

/// The server has answered later, so it is long on the standby.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_that_rests_has_saved_long_ago_is_not_saved_again() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(1);
    config.limits.kept_ms = 1;
    let store = joined(config).await;
    let (agent, _) = launch(1);
    store.create_idle(agent.clone()).await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    store.edit(agent.id, AgentEdit { pinned: Some(true), ..AgentEdit::default() }).await.unwrap();
    let saved = std::time::Instant::now();
    while saved.elapsed() < Duration::from_millis(5) {
        store.beat().await.unwrap();
    }
    store.beat().await.unwrap();
    pair.fail_over();
    while store.check().await.is_err() {}
    assert!(!store.get(agent.id).await.unwrap().unwrap().pinned);
    assert_eq!(store.failovers().repeated, 0);
}

/// The letter is over, and was removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_too_old_holds_nothing_up() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(1);
    config.limits.catch_up_ms = PATIENCE.as_millis() as u64;
    let (one, other) = (joined(config).await, joined(pair.config(2)).await);
    let letter = |n| Letter { id: LetterId([n; 16]), agent: launch(1).0.id, content: LetterContent::Dismiss };
    other.put(NodeId(1), letter(1)).await.unwrap();
    pair.primary.sql_in(&pair.database, &format!("UPDATE inbox SET made_at = made_at - {LETTER_LIFE_MS}"));
    one.reply(letter(1).id, LetterReply::Settled).await.unwrap();
    other.put(NodeId(1), letter(2)).await.unwrap();
    let inbox = "SELECT count(*) FROM inbox";
    assert_eq!(pair.primary.sql_in(&pair.database, inbox), "1", "the first one was removed");
    pair.standby_has_everything();
    pair.fail_over();
    while one.check().await.is_err() {}
    assert_eq!(one.inner.healer.healed(), one.failovers().timeline, "it waits for nothing");

    let mut over = PutCommand::new(NodeId(1), letter(3)).unwrap();
    over.until = tokio::time::Instant::now();
    let lease = one.inner.commands.lease().await.unwrap();
    assert_eq!(over.redo(lease.link()).await.unwrap(), Redone::There);
    assert_eq!(pair.standby.sql_in(&pair.database, inbox), "1");
}

/// Somebody has locked the table that says whether an agent was purged.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_does_not_answer_while_changes_are_repeated_is_given_up_and_tried_again() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(1);
    config.limits.read_timeout_ms = 1000;
    let (store, other) = (joined(config).await, joined(pair.config(2)).await);
    let (agent, _) = launch(1);
    other.create_idle(agent.clone()).await.unwrap();
    store.edit(agent.id, AgentEdit { pinned: Some(true), ..AgentEdit::default() }).await.unwrap();
    other.delete(agent.id, Timestamp(1), Deletion::Purge).await.unwrap();
    other.purge(agent.id, Timestamp(2)).await.unwrap();
    pair.standby_has_everything();
    pair.fail_over();
    let blocker = Connector::of(pair.config(3)).unwrap().connect_only().await.unwrap();
    blocker.batch("BEGIN; LOCK TABLE tombstones").await.unwrap();
    let answer = timeout(PATIENCE, store.check()).await.expect("an answer");
    assert!(matches!(&answer, Err(error) if error.is_transient()), "{answer:?}");
    blocker.batch("ROLLBACK").await.unwrap();
    while store.check().await.is_err() {}
    assert_eq!(store.failovers().lost, 0);
}

/// The client did not get the answer, and has asked another node, which did not find the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_its_client_has_sent_again_is_not_lost() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(2);
    // It does not wait for the others.
    (config.limits.catch_up_ms, config.limits.catch_up_least_ms) = (0, 0);
    let (one, other) = (joined(pair.config(1)).await, joined(config).await);
    let agents = [launch(1).0, launch(2).0];
    for agent in &agents {
        one.create_idle(agent.clone()).await.unwrap();
    }
    pair.standby.fall_behind(&pair.primary);
    let message = |agent: &Agent, text: &str| queued_turn(agent.id, TurnNumber(0), text).into();
    let names = ["same number", "another number"];
    for (agent, name) in agents.iter().zip(names) {
        one.enqueue(message(agent, name), 9, Some(key(name))).await.unwrap();
    }
    pair.fail_over();
    while other.enqueue(message(&agents[1], "of somebody else"), 9, None).await.is_err() {}
    for (agent, name) in agents.iter().zip(names) {
        let again = other.enqueue(message(agent, name), 9, Some(key(name))).await.unwrap();
        assert!(matches!(again, Enqueued::New { .. }), "{again:?}");
    }
    while one.check().await.is_err() {}
    assert_eq!(one.failovers().lost, 0);
    for (agent, prompts) in agents.iter().zip([&[names[0]][..], &["of somebody else", names[1]]]) {
        let turns = one.open_turns(agent.id).await.unwrap();
        assert_eq!(turns.iter().map(|turn| &*turn.prompt).collect::<Vec<_>>(), prompts);
    }
}
