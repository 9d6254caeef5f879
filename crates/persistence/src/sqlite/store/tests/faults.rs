//! Failed commits, full disks, and servers that die.

use std::sync::{Arc, Mutex, mpsc};

use rusqlite::Connection;
use tokenrail_domain::{EventBody, JsonText, TurnOutcome, Usage};
use tokenrail_ports::testing::samples::{WHOLE_LIST, every_body, notice, text_delta};
use tokenrail_ports::{Enqueued, StoreError, TurnRange};
use tokio::sync::Notify;

use super::*;
use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::writer::CommitFault;

impl SqliteStore {
    fn plan(&self, faults: &[CommitFault]) {
        self.inner.faults.lock().unwrap().extend(faults);
    }
}

/// Keeps the writer busy until the test releases it.
struct Held {
    begun: Notify,
    release: Mutex<mpsc::Receiver<()>>,
}

impl WriteCommand for Arc<Held> {
    type Answer = ();

    fn run(&self, _db: &Connection) -> Result<(), WriteFailure> {
        self.begun.notify_one();
        self.release.lock().unwrap().recv().unwrap();
        Ok(())
    }
}

/// A failed read after which SQLite rolls back the whole transaction, as it does after some I/O errors.
struct FailedRead {
    /// The command does not ignore the error.
    is_refused: bool,
}

impl WriteCommand for FailedRead {
    type Answer = ();

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        db.execute_batch("ROLLBACK").unwrap();
        let error = StoreError::Unavailable("the read failed".into());
        if self.is_refused { Err(WriteFailure::Refused(error)) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_transaction_that_sqlite_rolls_back_by_itself_takes_nothing_of_others_with_it() {
    for (is_refused, cause) in [(true, "the read failed"), (false, "SQLite has rolled back the transaction")]
    {
        let (store, folder) = fresh();
        let (agent, mut scribe) = running(&store, 1).await;
        let (release, receiver) = mpsc::channel();
        let held = Arc::new(Held { begun: Notify::new(), release: Mutex::new(receiver) });
        let append = scribe.say(every_body());
        let (before, ()) = tokio::join!(store.write(Arc::clone(&held)), async {
            held.begun.notified().await;
            // While the writer is busy, these three are queued. So they share a transaction.
            let (saved, failed, after, ()) = tokio::join!(
                store.append(append.clone()),
                store.write(FailedRead { is_refused }),
                store.append(scribe.end(TurnOutcome::Completed)),
                async { release.send(()).unwrap() },
            );
            saved.unwrap();
            let Err(StoreError::Unavailable(failure)) = failed else { panic!("{failed:?}") };
            assert!(failure.to_string().starts_with(cause), "{failure}");
            after.unwrap();
        });
        before.unwrap();
        let events = everything(&store, &agent).await;
        assert_eq!(events.len(), append.events.len() + 2);
        assert_eq!(events[1..=append.events.len()], *append.events);
        is_sound(&folder);
    }
}

#[tokio::test]
async fn a_commit_that_failed_but_was_done_is_a_success_and_is_there_once() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    store.plan(&[CommitFault::Done]);
    saved(&store, scribe.say(every_body())).await;
    store.plan(&[CommitFault::None, CommitFault::Done]);
    saved(&store, scribe.say(vec![notice("a")])).await;
    let last = saved(&store, scribe.end(TurnOutcome::Completed)).await;
    assert_eq!(everything(&store, &agent).await.last(), last.last());
    is_sound(&folder);
}

#[tokio::test]
async fn a_commit_that_failed_and_was_not_done_is_done_again() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    store.plan(&[CommitFault::NotDone, CommitFault::NotDone]);
    let said = saved(&store, scribe.say(every_body())).await;
    assert_eq!(everything(&store, &agent).await[1..], said);
    is_sound(&folder);
}

#[tokio::test]
async fn a_commit_that_fails_too_often_is_unknown_and_the_same_append_settles_it() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    store.plan(&[CommitFault::NotDone; 3]);
    let append = scribe.say(every_body());
    let failed = store.append(append.clone()).await;
    assert!(matches!(failed, Err(StoreError::OutcomeUnknown(_))), "{failed:?}");
    assert_eq!(everything(&store, &agent).await.len(), 1);
    saved(&store, append.clone()).await;
    saved(&store, append).await;
    saved(&store, scribe.say(vec![notice("on")])).await;
    is_sound(&folder);
}

#[tokio::test]
async fn a_queued_turn_is_queued_once_whatever_its_commit_says() {
    let (store, folder) = fresh();
    let (agent, _) = running(&store, 1).await;
    let turn = tokenrail_ports::testing::samples::queued_turn(agent.id, agent.turn, "more");
    for (fault, number) in [(CommitFault::Done, 2), (CommitFault::NotDone, 3)] {
        store.plan(&[fault]);
        let enqueued = store.enqueue(turn.clone().into(), 16, None).await.unwrap();
        let turn = tokenrail_domain::TurnNumber(number);
        assert_eq!(enqueued, Enqueued::New { turn, queued: number - 1, unarchived: false });
    }
    assert_eq!(store.open_turns(agent.id).await.unwrap().len(), 3);
    is_sound(&folder);
}

#[tokio::test]
async fn many_agents_at_once_are_all_saved_also_when_commits_fail_and_some_conflict() {
    let (store, folder) = fresh();
    let mut scribes = Vec::new();
    for n in 0..40 {
        scribes.push(running(&store, n).await);
    }
    store.plan(&[CommitFault::None, CommitFault::NotDone, CommitFault::Done, CommitFault::NotDone]);
    let rounds = scribes.iter_mut().map(|(agent, scribe)| {
        let (store, agent) = (store.clone(), agent.clone());
        let appends: Vec<Append> =
            (0..10).map(|_| scribe.say(vec![text_delta(0, "a"), notice("n")])).collect();
        async move {
            for (round, append) in appends.iter().enumerate() {
                store.append(append.clone()).await.unwrap();
                if round < 8 {
                    let refused = store.append(appends[9].clone()).await;
                    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
                }
            }
            assert_eq!(everything(&store, &agent).await.len(), 21);
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    for round in rounds {
        tasks.spawn(round);
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    is_sound(&folder);
}

#[tokio::test]
async fn one_append_that_cannot_be_written_does_not_harm_those_beside_it() {
    let (store, folder) = fresh();
    let mut bad = Vec::new();
    let mut good = Vec::new();
    for n in 0..20 {
        let (agent, mut scribe) = running(&store, n).await;
        saved(&store, scribe.say(vec![text_delta(0, "a")])).await;
        let complete = scribe.complete(0);
        if n % 5 == 0 {
            bad.push(scribe.say(vec![complete.clone(), complete]));
        } else {
            good.push((agent, scribe.say(vec![complete])));
        }
    }
    let mut tasks = tokio::task::JoinSet::new();
    for append in bad {
        let store = store.clone();
        tasks.spawn(async move { matches!(store.append(append).await, Err(StoreError::Conflict { .. })) });
    }
    for (_, append) in good {
        let store = store.clone();
        tasks.spawn(async move { store.append(append).await.is_ok() });
    }
    while let Some(as_expected) = tasks.join_next().await {
        assert!(as_expected.unwrap());
    }
    is_sound(&folder);
}

#[tokio::test]
async fn a_full_disk_is_said_and_nothing_is_saved_until_there_is_room() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    store.set_max_pages(1).await;
    let append = scribe.say(vec![text_delta(0, &"long ".repeat(400_000))]);
    let refused = store.append(append.clone()).await;
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    assert_eq!(everything(&store, &agent).await.len(), 1);
    store.set_max_pages(1_000_000).await;
    saved(&store, append).await;
    assert_eq!(everything(&store, &agent).await.len(), 2);
    is_sound(&folder);
}

/// Limits the database file to this many pages, as a full disk would.
struct MaxPages(u32);

impl WriteCommand for MaxPages {
    type Answer = ();

    fn run(&self, db: &Connection) -> Result<(), crate::sqlite::command::WriteFailure> {
        Ok(db.pragma_update(None, "max_page_count", self.0)?)
    }
}

impl SqliteStore {
    async fn set_max_pages(&self, pages: u32) {
        self.write(MaxPages(pages)).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_saved_is_there_after_a_drop_without_close() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    let said = saved(&store, scribe.say(every_body())).await;
    drop(store);
    let store = SqliteStore::open(config(&folder)).unwrap();
    assert_eq!(everything(&store, &agent).await[1..], said);
    saved(&store, scribe.say(vec![notice("on")])).await;
    is_sound(&folder);
}

#[tokio::test]
async fn a_store_that_is_closed_says_so_and_leaves_no_log() {
    let (store, folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    store.close().await;
    store.close().await;
    let late = store.append(scribe.say(vec![notice("late")])).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    let late = store.get(agent.id).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    let log = folder.path().join("tokenrail.db-wal");
    assert_eq!(std::fs::metadata(log).map_or(0, |log| log.len()), 0);
    SqliteStore::open(config(&folder)).unwrap().close().await;
}

#[tokio::test]
async fn the_log_is_cut_when_it_grows_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder);
    config.limits.wal_bytes = 100_000;
    config.limits.checkpoint_interval_ms = 3_600_000;
    let store = SqliteStore::open(config).unwrap();
    let (_, mut scribe) = running(&store, 1).await;
    for _ in 0..100 {
        saved(&store, scribe.say(vec![text_delta(0, &"x".repeat(10_000))])).await;
    }
    let log = std::fs::metadata(folder.path().join("tokenrail.db-wal")).unwrap().len();
    assert!(log < 200_000, "{log}");
    is_sound(&folder);
}

/// SQLite reads JSON no deeper than a thousand levels: an agent may print what is deeper, and its turn still ends.
#[tokio::test]
async fn a_turn_ends_whose_usage_is_nested_too_deeply_for_sqlite() {
    let (store, _folder) = fresh();
    let (agent, mut scribe) = running(&store, 1).await;
    let usage = JsonText::new_unchecked(format!("{}{}", "[".repeat(3_000), "]".repeat(3_000)));
    let usage = Usage { stop_reason: Some("end_turn".into()), usage };
    saved(&store, scribe.say(vec![EventBody::Usage(Box::new(usage))])).await;
    saved(&store, scribe.end(TurnOutcome::Completed)).await;
    let range = TurnRange { limit: 1, ..TurnRange::default() };
    let listed = store.list_turns(agent.id, range, WHOLE_LIST).await.unwrap().items;
    assert!(listed[0].ended_at.is_some(), "{listed:?}");
    assert_eq!(listed[0].stop_reason, None, "it cannot be read there");
}
