//! An agent's row: how it is created, changed and removed.

use tokenrail_domain::{
    Agent, AgentStatus, CommitId, Sequence, SessionId, StopReason, Timestamp, Turn, TurnNumber, TurnOutcome,
    TurnState,
};

use super::{agent_now, everything, launched, running, saved};
use crate::testing::samples::{
    WHOLE, WHOLE_LIST, error, json, launch, notice, queued_turn, result, text_delta,
};
use crate::{
    AgentFilter, Append, Created, Deletion, Enqueued, IAgentRepository, IJournal, StoreError, TurnLimit,
};

pub async fn an_agent_reads_back_as_it_was_created<S: IJournal + IAgentRepository>(store: &S) {
    let (full, turn, _) = launched(store, 1).await;
    assert_eq!(agent_now(store, full.id).await, full);
    assert_eq!(store.open_turns(full.id).await.unwrap(), [turn]);

    let (mut bare, turn) = launch(2);
    (bare.name, bare.model, bare.metadata, bare.options) = (None, None, None, None);
    bare.cancel_on_disconnect = false;
    bare.session = Some("given".into());
    assert_eq!(store.create(bare.clone(), turn.into(), None).await.unwrap(), Created::New);
    assert_eq!(agent_now(store, bare.id).await, bare);
}

pub async fn an_id_is_created_once<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn, _) = launched(store, 1).await;
    let again = store.create(agent, turn.into(), None).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })), "{again:?}");
}

pub async fn a_turn_moves_its_agent_in_the_same_append<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn, mut scribe) = launched(store, 1).await;
    let start = saved(store, scribe.start(&turn)).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.head, now.queued), (AgentStatus::Running, Sequence(1), 0));
    assert_eq!((now.turn, now.updated_at), (TurnNumber::FIRST, start[0].at));
    let open = store.open_turns(agent.id).await.unwrap();
    assert_eq!((open[0].state, open[0].first_sequence), (TurnState::Running, Some(Sequence(1))));
    assert_eq!((&*open[0].prompt, open[0].asked_at), ("count to three", turn.asked_at));

    let mut said = scribe.say(vec![text_delta(0, "a"), text_delta(0, "b")]);
    said.session = SessionId::new("session-1").ok();
    let offset = said.spool_offset;
    let said = saved(store, said).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.session.as_deref(), now.head), (Some("session-1"), Sequence(3)));
    assert_eq!(now.updated_at, said[1].at);
    assert_eq!(store.open_turns(agent.id).await.unwrap()[0].spool_offset, offset);

    let end = saved(store, scribe.end(TurnOutcome::Completed)).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.head), (AgentStatus::Completed, Sequence(4)));
    assert_eq!((now.ended_at, now.updated_at), (Some(end[0].at), end[0].at));
    assert_eq!((now.usage, now.cost_usd), (Some(json(r#"{"output_tokens":3}"#)), Some(0.1 + 0.2)));
    assert_eq!(now.session.as_deref(), Some("session-1"));
    assert_eq!(store.open_turns(agent.id).await.unwrap(), []);
}

pub async fn a_turn_keeps_the_commit_at_its_start<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn, mut scribe) = launched(store, 1).await;
    assert_eq!(store.open_turns(agent.id).await.unwrap()[0].base, None);
    let base = CommitId::new("0123456789abcdef0123456789abcdef01234567");
    saved(store, scribe.start(&Turn { base: base.clone(), ..turn })).await;
    assert_eq!(store.open_turns(agent.id).await.unwrap()[0].base, base);
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let limit = TurnLimit { turns: 1, bytes: 1 };
    assert_eq!(store.turns(agent.id, TurnNumber(0), limit).await.unwrap()[0].base, base);
}

pub async fn a_failed_turn_leaves_its_error_until_the_next_starts<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let mut failed = result(TurnOutcome::Failed);
    failed.error = Some(error());
    saved(store, scribe.end_with(failed)).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.error), (AgentStatus::Failed, Some(error())));

    let Enqueued::New { turn: number, .. } =
        store.enqueue(queued_turn(agent.id, TurnNumber(0), "again").into(), 16, None).await.unwrap()
    else {
        panic!("it is taken");
    };
    let waits = agent_now(store, agent.id).await;
    assert_eq!((waits.status, waits.turn), (AgentStatus::Initializing, TurnNumber::FIRST), "it only waits");
    saved(store, scribe.start(&queued_turn(agent.id, number, "again"))).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.turn), (AgentStatus::Running, TurnNumber(2)));
    assert_eq!((now.error, now.ended_at, now.usage), (None, None, None));
    assert_eq!(now.cost_usd, Some(0.1 + 0.2), "what it has cost so far stays");
}

pub async fn a_turn_can_fail_before_it_has_run<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _, mut scribe) = launched(store, 1).await;
    saved(store, scribe.end(TurnOutcome::Failed)).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.queued), (AgentStatus::Failed, 0));
    assert_eq!(store.open_turns(agent.id).await.unwrap(), []);
}

pub async fn a_turn_that_has_ended_takes_nothing_more<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.end(TurnOutcome::Cancelled)).await;
    let turn = queued_turn(agent.id, TurnNumber(1), "again");
    for append in [
        scribe.rehearse(vec![notice("late")]),
        scribe.clone().end(TurnOutcome::Completed),
        scribe.clone().start(&turn),
    ] {
        let refused = store.append(append).await;
        assert!(matches!(refused, Err(StoreError::Conflict { head: Sequence(2) })), "{refused:?}");
    }
    assert_eq!(everything(store, agent.id).await.len(), 2);
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Cancelled);
}

pub async fn an_agent_can_begin_a_turn_by_itself<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let mut second = queued_turn(agent.id, TurnNumber(2), "");
    second.run = TurnNumber::FIRST;
    let early = store.append(scribe.clone().start(&second)).await;
    assert!(matches!(early, Err(StoreError::Conflict { .. })), "one turn runs at a time");
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    saved(store, scribe.start(&second)).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.turn, now.queued), (AgentStatus::Running, TurnNumber(2), 0));
    let open = store.open_turns(agent.id).await.unwrap();
    assert_eq!((open.len(), open[0].number, open[0].run), (1, TurnNumber(2), TurnNumber::FIRST));
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    assert_eq!(store.last_turn(agent.id).await.unwrap(), TurnNumber(2), "also when it has ended");
}

pub async fn a_chain_is_saved_as_a_whole_or_not_at_all<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let mut second = queued_turn(agent.id, TurnNumber(2), "");
    (second.run, second.stop) = (TurnNumber::FIRST, Some(StopReason::Cancelled));
    let mut broken = scribe.clone();
    let twice = vec![broken.end(TurnOutcome::Completed), broken.end(TurnOutcome::Completed)];
    let refused = store.append(Append::chain(twice).unwrap()).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(everything(store, agent.id).await.len(), 1, "nothing of it is saved");
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Running);

    let both = Append::chain(vec![scribe.end(TurnOutcome::Completed), scribe.start(&second)]).unwrap();
    store.append(both.clone()).await.unwrap();
    assert!(store.append(both).await.is_ok(), "again is the same");
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.status, now.turn, now.head), (AgentStatus::Running, TurnNumber(2), Sequence(3)));
    let open = store.open_turns(agent.id).await.unwrap();
    assert_eq!((open.len(), open[0].run, open[0].stop), (1, TurnNumber::FIRST, second.stop));
}

pub async fn a_deleted_agent_leaves_the_lists_only<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    launched(store, 2).await;
    assert!(store.delete(agent.id, Timestamp(10), Deletion::KeepHistory).await.unwrap());
    assert!(store.delete(agent.id, Timestamp(20), Deletion::KeepHistory).await.unwrap());
    assert_eq!(agent_now(store, agent.id).await.deleted_at, Some(Timestamp(10)), "of the first call");

    let list = async |deleted| {
        let filter = AgentFilter { deleted, limit: 10, ..AgentFilter::default() };
        store.list(filter, WHOLE_LIST).await.unwrap().items
    };
    assert_eq!(list(false).await.len(), 1);
    assert_eq!(list(true).await[0].agent.id, agent.id);
    let refused = store.enqueue(queued_turn(agent.id, TurnNumber(0), "more").into(), 16, None).await.unwrap();
    assert_eq!(refused, Enqueued::UnknownAgent, "nobody talks to a deleted agent");
    let open = store.open_turns(agent.id).await.unwrap();
    assert_eq!(open[0].stop, Some(StopReason::Cancelled), "it is being stopped");
    saved(store, scribe.end(TurnOutcome::Cancelled)).await;
    assert_eq!(everything(store, agent.id).await.len(), 2, "the turn that ran could still end");
}

pub async fn a_purged_agent_is_gone_for_good<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let (_, other) = running(store, 2).await;
    saved(store, scribe.say(vec![notice("init"), text_delta(0, "a")])).await;
    assert!(store.delete(agent.id, Timestamp(10), Deletion::KeepHistory).await.unwrap());
    assert_eq!(store.to_purge().await.unwrap(), []);
    assert!(store.delete(agent.id, Timestamp(10), Deletion::Purge).await.unwrap());
    assert!(store.delete(agent.id, Timestamp(11), Deletion::KeepHistory).await.unwrap(), "it stays marked");
    assert_eq!(store.to_purge().await.unwrap(), [agent.id]);
    assert!(store.purge(agent.id, Timestamp(12)).await.unwrap());
    assert!(!store.purge(agent.id, Timestamp(13)).await.unwrap());
    assert!(!store.delete(agent.id, Timestamp(13), Deletion::Purge).await.unwrap());
    assert_eq!(store.to_purge().await.unwrap(), []);

    assert_eq!(store.get(agent.id).await.unwrap(), None);
    assert_eq!(store.open_turns(agent.id).await.unwrap(), []);
    assert_eq!(store.with_open_turns(usize::MAX).await.unwrap().len(), 1);
    let read = store.read(agent.id, Sequence::START, WHOLE).await;
    assert!(matches!(read, Err(StoreError::UnknownAgent(_))), "{read:?}");
    let late = store.append(scribe.say(vec![notice("late")])).await;
    assert!(matches!(late, Err(StoreError::UnknownAgent(_))), "{late:?}");
    let (same, turn) = launch(1);
    let again = store.create(same, turn.into(), None).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })), "its numbers are never used again: {again:?}");
    saved(store, other.clone().say(vec![notice("the other one goes on")])).await;
    assert!(
        !store.delete(launch(9).0.id, Timestamp(1), Deletion::KeepHistory).await.unwrap(),
        "never heard of"
    );
}

pub async fn a_healthy_store_says_so<S: IJournal + IAgentRepository>(store: &S) {
    store.check().await.unwrap();
}

pub async fn turns_are_read_by_number_and_by_event<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![text_delta(0, "a"), text_delta(0, "b")])).await;
    saved(store, scribe.end(TurnOutcome::Failed)).await;
    let queued = store.enqueue(queued_turn(agent.id, TurnNumber(2), "two").into(), 2, None).await.unwrap();
    assert_eq!(queued, Enqueued::New { turn: TurnNumber(2), queued: 1, unarchived: false });
    let waiting = store.open_turns(agent.id).await.unwrap().remove(0);
    saved(store, scribe.start(&waiting)).await;

    let turns =
        store.turns(agent.id, TurnNumber(0), TurnLimit { turns: 9, bytes: usize::MAX }).await.unwrap();
    let stands: Vec<_> = turns
        .iter()
        .map(|turn| (turn.number.0, turn.state, turn.first_sequence, turn.last_sequence))
        .collect();
    let ended = (1, TurnState::Ended(TurnOutcome::Failed), Some(Sequence(1)), Some(Sequence(4)));
    let runs = (2, TurnState::Running, Some(Sequence(5)), None);
    assert_eq!(stands, [ended, runs]);
    assert_eq!(
        store.turns(agent.id, TurnNumber(0), TurnLimit { turns: 1, bytes: usize::MAX }).await.unwrap(),
        turns[..1]
    );
    assert_eq!(
        store.turns(agent.id, TurnNumber(1), TurnLimit { turns: 9, bytes: usize::MAX }).await.unwrap(),
        turns[1..]
    );
    assert_eq!(
        store.turns(launch(2).0.id, TurnNumber(0), TurnLimit { turns: 9, bytes: usize::MAX }).await.unwrap(),
        []
    );

    for (sequence, number) in [(1, Some(1)), (3, Some(1)), (4, Some(1)), (5, Some(2)), (0, None), (6, None)] {
        let turn = store.turn_at(agent.id, Sequence(sequence)).await.unwrap();
        assert_eq!(turn.map(|turn| turn.number.0), number, "event {sequence}");
    }
}

pub async fn a_conversation_has_one_agent<S: IJournal + IAgentRepository>(store: &S) {
    let create = |n: u8, chat: &str| {
        let (agent, turn) = launch(n);
        store.create(Agent { chat: Some(chat.to_owned()), ..agent }, turn.into(), None)
    };
    let first = launch(1).0.id;
    assert_eq!(create(1, "a").await.unwrap(), Created::New);
    assert_eq!(create(2, "a").await.unwrap(), Created::ChatTaken(first));
    assert_eq!(store.get(launch(2).0.id).await.unwrap(), None);
    assert_eq!(create(3, "b").await.unwrap(), Created::New);
    let found = store.by_chat("a".to_owned()).await.unwrap().unwrap();
    assert_eq!((found.id, found.chat.as_deref()), (first, Some("a")));
    assert_eq!(store.by_chat("c".to_owned()).await.unwrap(), None);

    assert!(store.delete(first, Timestamp(1), Deletion::KeepHistory).await.unwrap());
    assert_eq!(store.by_chat("a".to_owned()).await.unwrap(), None, "it is deleted");
    assert_eq!(create(4, "a").await.unwrap(), Created::New);
}
