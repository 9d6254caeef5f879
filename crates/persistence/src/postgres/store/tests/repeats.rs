//! The connection breaks at the commit of a command, before or after it is saved: the command is done once, and the
//! caller gets the ordinary answer.

use tokenrail_domain::{
    AgentEdit, AgentStatus, Copied, NewName, NodeId, PermissionReply, StopReason, Timestamp, Turn,
    TurnNumber, TurnOutcome, TurnState,
};
use tokenrail_ports::testing::samples::{notice, queued_turn};
use tokenrail_ports::{
    Created, Credential, CredentialDigest, CredentialKind, CredentialRoom, CredentialScope, Deletion, Edited,
    Enqueued, IArchive, ICredentials, IInbox, Idempotency, KeyLife, LaunchCount, Letter, LetterContent,
    LetterId, NewTurn, PermissionAnswer, StoreResult, WhenFull,
};
use tokenrail_test_postgres::{LostCommit, Replication};

use super::failovers::Pair;
use super::network::Behind;
use super::*;
use crate::postgres::command::{ChangeCommand, Redone};
use crate::postgres::database::failures::{ChangeFailure, UnknownCause};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::commands::CreateCommand;
use crate::postgres::statements::edit::EditCommand;
use crate::postgres::statements::new_turn::FirstTimeline;
use crate::postgres::statements::stops::CancelCommand;
use crate::postgres::store::repeat::Repeat;

const BOTH: [LostCommit; 2] = [LostCommit::Request, LostCommit::Answer];

struct Cut {
    behind: Behind,
    store: PostgresStore,
}

impl Cut {
    async fn new() -> Self {
        let behind = Behind::new();
        let store = joined(behind.config()).await;
        Self { behind, store }
    }

    /// What this command answers if its commit, or the answer to it, is lost.
    async fn answer<T>(&self, lost: LostCommit, command: impl Future<Output = StoreResult<T>>) -> T {
        self.behind.proxy.lose_commit(lost);
        let answer = command.await;
        assert!(!self.behind.proxy.waits_for_commit(), "no commit was lost");
        answer.unwrap_or_else(|error| panic!("{lost:?}: {error:?}"))
    }

    fn sql(&self, query: &str) -> String {
        self.behind.database.sql(query)
    }
}

fn key() -> Idempotency {
    Idempotency {
        scope: "s".into(),
        key: "k".into(),
        body: "b".into(),
        used_at: Timestamp(1000),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_created_once() {
    for (lost, key) in BOTH.into_iter().flat_map(|lost| [(lost, None), (lost, Some(key()))]) {
        let cut = Cut::new().await;
        let (agent, turn) = launch(1);
        let created = cut.store.create(agent.clone(), turn.into(), key);
        assert_eq!(cut.answer(lost, created).await, Created::New);
        let (idle, _) = launch(2);
        cut.answer(lost, cut.store.create_idle(idle)).await;
        assert_eq!(cut.sql("SELECT count(*), (SELECT count(*) FROM turns) FROM agents"), "2|1");
        assert_eq!(cut.store.open_turns(agent.id).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_becomes_one_turn() {
    for (lost, key) in BOTH.into_iter().flat_map(|lost| [(lost, None), (lost, Some(key()))]) {
        let cut = Cut::new().await;
        let (agent, _) = running(&cut.store, 1).await;
        let archive = AgentEdit { archived: Some(true), ..AgentEdit::default() };
        cut.store.edit(agent.id, archive).await.unwrap();
        let message = || NewTurn::from(queued_turn(agent.id, TurnNumber(0), "the same"));
        for (turn, unarchived) in [(2, true), (3, false)] {
            let key = key.clone().filter(|_| turn == 2);
            let queued = cut.answer(lost, cut.store.enqueue(message(), 9, key)).await;
            assert_eq!(queued, Enqueued::New { turn: TurnNumber(turn), queued: turn - 1, unarchived });
        }
        assert_eq!(cut.store.last_turn(agent.id).await.unwrap(), TurnNumber(3));
        if let Some(key) = key {
            let again = cut.store.enqueue(message(), 9, Some(key)).await.unwrap();
            assert_eq!(again, Enqueued::Again { turn: TurnNumber(2), queued: 1 });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_stopped_once() {
    for lost in BOTH {
        let cut = Cut::new().await;
        let (agent, _) = running(&cut.store, 1).await;
        for turn in [2, 3] {
            let message = queued_turn(agent.id, TurnNumber(turn), "");
            cut.store.enqueue(message.into(), 9, None).await.unwrap();
        }
        let stop = cut.store.stop_turn(agent.id.turn(TurnNumber(2)), StopReason::Cancelled);
        assert_eq!(cut.answer(lost, stop).await, Some(StopReason::Cancelled));
        assert_eq!(cut.answer(lost, cut.store.cancel(agent.id, Timestamp(5))).await, 2);
        assert_eq!(cut.store.cancel(agent.id, Timestamp(6)).await.unwrap(), 0);
        assert_eq!(cut.sql("SELECT count(*) FROM turns WHERE stop = 'cancelled'"), "3");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_edited_and_deleted() {
    for lost in BOTH {
        let cut = Cut::new().await;
        let (agent, _) = running(&cut.store, 1).await;
        let rename = AgentEdit { name: Some(NewName::Text("new".into())), ..AgentEdit::default() };
        let edited = cut.answer(lost, cut.store.edit(agent.id, rename)).await;
        assert!(matches!(edited, Edited::Saved(agent) if agent.name.as_deref() == Some("new")));
        assert!(cut.answer(lost, cut.store.delete(agent.id, Timestamp(9), Deletion::Purge)).await);
        assert_eq!(cut.store.to_purge().await.unwrap(), [agent.id]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_put_into_the_inbox_once() {
    for lost in BOTH {
        let cut = Cut::new().await;
        let answer =
            PermissionAnswer { request_id: "1-1".into(), reply: PermissionReply::of(Some("yes".into())) };
        let letter = |n| Letter {
            id: LetterId([n; 16]),
            agent: launch(1).0.id,
            content: LetterContent::Answer(answer.clone()),
        };
        cut.answer(lost, cut.store.put(NodeId(1), letter(1))).await;
        cut.store.put(NodeId(1), letter(2)).await.unwrap();
        assert_eq!(cut.store.letters(vec![], 9).await.unwrap(), [letter(1), letter(2)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_issued_and_a_launch_counted() {
    for lost in BOTH {
        let cut = Cut::new().await;
        let (kind, digest) = (CredentialKind::Ticket, CredentialDigest([7; 32]));
        let scope = CredentialScope { path: None, origin: None };
        let ticket = Credential { kind, digest, scope, life: PATIENCE };
        let room = CredentialRoom { max: 1, when_full: WhenFull::Refuse };
        assert!(cut.answer(lost, cut.store.add(ticket, room)).await);
        assert!(cut.store.redeem(kind, digest).await.unwrap().is_some());
        assert_eq!(cut.answer(lost, cut.store.count_launch(10)).await, LaunchCount::Counted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_imported_once() {
    for lost in BOTH {
        let cut = Cut::new().await;
        let (agent, turn) = launch(1);
        let agent = Agent {
            copy: Some(Copied::File),
            status: AgentStatus::Interrupted,
            queued: 0,
            turn: TurnNumber(0),
            ..agent
        };
        let mut scribe = Scribe::new(&agent);
        let appends =
            [scribe.start(&turn), scribe.say(vec![notice("n")]), scribe.end(TurnOutcome::Completed)];
        let events: Vec<Event> = appends.iter().flat_map(|append| append.events.iter().cloned()).collect();
        let last = Sequence(events.len() as u64);
        let ended = Turn {
            state: TurnState::Ended(TurnOutcome::Completed),
            first_sequence: Some(Sequence(1)),
            last_sequence: Some(last),
            ..turn
        };
        cut.answer(lost, cut.store.begin_import(agent.clone())).await;
        cut.answer(lost, cut.store.import_turns(agent.id, vec![ended.into()])).await;
        cut.answer(lost, cut.store.import_events(agent.id, events.clone().into())).await;
        let status = AgentStatus::Completed;
        let finished =
            Agent { status, head: last, turn: TurnNumber(1), ended_at: Some(Timestamp(9)), ..agent };
        cut.answer(lost, cut.store.finish_import(finished.clone())).await;
        assert_eq!(everything(&cut.store, &finished).await, events);
    }
}

/// The client was told by the stream that its turn is cancelled, and has sent the next message since.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_is_repeated_leaves_later_turns_alone() {
    let (store, database) = fresh().await;
    let (agent, _) = running(&store, 1).await;
    assert_eq!(store.cancel(agent.id, Timestamp(5)).await.unwrap(), 1);
    store.enqueue(queued_turn(agent.id, TurnNumber(2), "").into(), 9, None).await.unwrap();
    let lease = store.inner.commands.lease().await.unwrap();
    let (link, cancel) = (lease.link(), CancelCommand { agent: agent.id, at: Timestamp(5) });
    let again = link.change(PATIENCE, cancel.run_again(link, &vec![TurnNumber::FIRST])).await.unwrap();
    assert_eq!(again, [TurnNumber::FIRST]);
    assert_eq!(database.sql("SELECT number FROM turns WHERE stop IS NOT NULL"), "1");
}

/// The answer to its commit was lost. Meanwhile, another client has seen the new name and changed it.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_is_repeated_leaves_later_edits_alone() {
    let (store, _database) = fresh().await;
    let (agent, _) = running(&store, 1).await;
    let rename = |name: &str| AgentEdit { name: Some(NewName::Text(name.into())), ..AgentEdit::default() };
    let lease = store.inner.commands.lease().await.unwrap();
    let (link, edit) = (lease.link(), EditCommand { agent: agent.id, edit: rename("first") });
    let first = link.change(PATIENCE, edit.run(link)).await.unwrap();
    store.edit(agent.id, rename("later")).await.unwrap();
    let again = link.change(PATIENCE, edit.run_again(link, &first)).await.unwrap();
    assert!(matches!(again.edited, Edited::Saved(agent) if agent.name.as_deref() == Some("later")));
    assert_eq!(store.get(agent.id).await.unwrap().unwrap().name.as_deref(), Some("later"));
}

/// Another edit has got the number that it would have had.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_was_not_saved_is_done_although_another_one_came_first() {
    let (store, _database) = fresh().await;
    let (agent, _) = running(&store, 1).await;
    let pin = AgentEdit { pinned: Some(true), ..AgentEdit::default() };
    let rename = AgentEdit { name: Some(NewName::Text("other".into())), ..AgentEdit::default() };
    let lease = store.inner.commands.lease().await.unwrap();
    let (link, edit) = (lease.link(), EditCommand { agent: agent.id, edit: pin });
    link.batch("BEGIN").await.unwrap();
    let first = edit.run(link).await.unwrap();
    link.batch("ROLLBACK").await.unwrap();
    store.edit(agent.id, rename).await.unwrap();
    link.change(PATIENCE, edit.run_again(link, &first)).await.unwrap();
    let agent = store.get(agent.id).await.unwrap().unwrap();
    assert_eq!((agent.name.as_deref(), agent.pinned), (Some("other"), true));
}

/// The same, and the other edit is still there after a failover. The new server knows the transaction too.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_was_not_saved_is_done_after_a_failover_although_another_one_has_its_number() {
    let pair = Pair::new(Replication::Asynchronous);
    let store = joined(pair.config(1)).await;
    let (agent, _) = running(&store, 1).await;
    let pin = AgentEdit { pinned: Some(true), ..AgentEdit::default() };
    let rename = AgentEdit { name: Some(NewName::Text("other".into())), ..AgentEdit::default() };
    let edit = EditCommand { agent: agent.id, edit: pin };
    let first = {
        let lease = store.inner.commands.lease().await.unwrap();
        lease.link().batch("BEGIN").await.unwrap();
        let first = edit.run(lease.link()).await.unwrap();
        lease.link().batch("ROLLBACK").await.unwrap();
        first
    };
    store.edit(agent.id, rename).await.unwrap();
    pair.standby_has_everything();
    pair.fail_over();
    while store.check().await.is_err() {}
    let lease = store.inner.commands.lease().await.unwrap();
    lease.link().change(PATIENCE, edit.run_again(lease.link(), &first)).await.unwrap();
    let agent = store.get(agent.id).await.unwrap().unwrap();
    assert_eq!((agent.name.as_deref(), agent.pinned), (Some("other"), true));
}

/// Only the number of the last edit before the newest failover is known.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_may_be_lost_since_several_failovers_is_not_acknowledged() {
    let (store, database) = fresh().await;
    let (agent, _) = running(&store, 1).await;
    let pin = AgentEdit { pinned: Some(true), ..AgentEdit::default() };
    let lease = store.inner.commands.lease().await.unwrap();
    let (link, edit) = (lease.link(), EditCommand { agent: agent.id, edit: pin });
    let first = link.change(PATIENCE, edit.run(link)).await.unwrap();
    database.sql("UPDATE agents SET edits = (2::bigint << 32) + 1, edits_before = (1::bigint << 32) + 1");
    let again = link.change(PATIENCE, edit.run_again(link, &first)).await;
    let unknown = |failure: &ChangeFailure| {
        matches!(failure, ChangeFailure::NotSaved(QueryFailure::Refused(StoreError::OutcomeUnknown(_))))
    };
    assert!(again.as_ref().err().is_some_and(unknown), "{:?}", again.err());

    let kept = edit.kept(&first, 1).unwrap();
    assert_eq!(link.change(PATIENCE, kept.redo(link)).await.unwrap(), Redone::There, "it is as it should be");
    database.sql("UPDATE agents SET pinned = false");
    let redone = link.change(PATIENCE, kept.redo(link)).await;
    assert!(matches!(redone, Err(ChangeFailure::NotSaved(QueryFailure::Refused(_)))), "{redone:?}");
    assert!(!store.get(agent.id).await.unwrap().unwrap().pinned, "somebody may have undone it");
}

/// Otherwise, it would count as another message after a failover that has lost it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_keeps_its_id_over_a_failover() {
    let pair = Pair::new(Replication::Asynchronous);
    let store = joined(pair.config(1)).await;
    let (agent, mut scribe) = running(&store, 1).await;
    pair.standby.fall_behind(&pair.primary);
    let message = queued_turn(agent.id, TurnNumber(2), "lost");
    store.enqueue(message.into(), 9, None).await.unwrap();
    let ids = "SELECT command FROM turns WHERE command IS NOT NULL";
    let id = pair.primary.sql_in(&pair.database, ids);
    pair.fail_over();
    assert_eq!(pair.standby.sql_in(&pair.database, ids), "");
    save_at_last(&store, &scribe.say(vec![notice("n")])).await;
    assert_eq!(pair.standby.sql_in(&pair.database, ids), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_outcome_stays_unknown_says_so() {
    let behind = Behind::new();
    let mut config = behind.config();
    config.limits.repeat_timeout_ms = 0;
    let store = joined(config).await;
    let (agent, turn) = launch(1);
    behind.proxy.lose_commit(LostCommit::Answer);
    let unknown = store.create(agent.clone(), turn.into(), None).await;
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown(_))), "{unknown:?}");
    until("it is saved", || behind.database.sql("SELECT count(*) FROM agents") == "1");
}

/// Cannot find out whether it was saved, for this reason.
struct Refused(fn() -> StoreError);

impl ChangeCommand for Refused {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, _db: &Link) -> Result<(), QueryFailure> {
        Ok(())
    }

    async fn run_again(&self, _db: &Link, (): &()) -> Result<(), QueryFailure> {
        Err(self.0().into())
    }
}

/// Otherwise, the caller would take it for not saved, and remove the folder of an agent that is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_be_repeated_may_have_been_saved() {
    let (store, _database) = fresh().await;
    let (pool, healer) = (Arc::clone(&store.inner.commands), Arc::clone(&store.inner.healer));
    let repeat = Repeat { pool, healer, wait: PATIENCE, patience: PATIENCE };
    for refused in [|| StoreError::Fenced, || StoreError::Corrupt("a row".into())] {
        let answer = repeat.run(Refused(refused), (), UnknownCause::Superseded).await;
        assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{answer:?}");
    }
    let purged = || StoreError::UnknownAgent(launch(1).0.id);
    let answer = repeat.run(Refused(purged), (), UnknownCause::Superseded).await;
    assert!(matches!(answer, Err(StoreError::UnknownAgent(_))), "{answer:?}");
}

/// Whatever the runs before have answered: what has the id of the new agent was saved by one of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_repeated_finds_what_it_has_saved() {
    let (agent, turn) = launch(1);
    for (key, chat) in [(Some(key()), None), (None, Some("chat".to_owned())), (None, None)] {
        let (store, _database) = fresh().await;
        let node = store.inner.membership.require().unwrap();
        let agent = Agent { chat, ..agent.clone() };
        let (turn, times) = (turn.clone().into(), store.times());
        let create = CreateCommand { node, agent, turn, key, times, first: FirstTimeline::default() };
        let lease = store.inner.commands.lease().await.unwrap();
        let link = lease.link();
        assert_eq!(link.change(PATIENCE, create.run(link)).await.unwrap(), Created::New);
        for first in [Created::New, Created::KeyReused, Created::Again(launch(2).0.id)] {
            let again = link.change(PATIENCE, create.run_again(link, &first)).await.unwrap();
            assert_eq!(again, Created::New, "after {first:?}");
        }
    }
}

/// All connections wait for something, such as a standby.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_free_connection_but_not_for_ever() {
    let (_fresh, database) = fresh().await;
    let mut config = config(&database);
    (config.limits.pool_connections, config.limits.pool_wait_ms) = (2, 50);
    let store = PostgresStore::open(config).await.unwrap();
    let id = launch(1).0.id;
    let read = store.inner.reads.lease().await.unwrap();
    assert!(matches!(store.get(id).await, Err(StoreError::Busy)));
    assert!(store.is_ready().await.is_ok(), "commands have connections of their own");
    drop(read);
    assert_eq!(store.get(id).await.unwrap(), None);
    let command = store.inner.commands.lease().await.unwrap();
    assert!(matches!(store.is_ready().await, Err(StoreError::Busy)));
    drop(command);
    assert!(store.is_ready().await.is_ok());
}
