//! A move that ended early is run again.

use std::time::Duration;

use tokenrail_ports::testing::samples::WHOLE;

use super::*;
use crate::mover::Mover;
use crate::{DataFolder, OpenError, PostgresOpenError, postgres_doctor};

/// How far a move came before it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Died {
    Copied,
    Compared,
    HandedOver,
}

async fn died(folder: &Path, database: &Database, at: Died) {
    let mover = Mover::begin(folder, config(database)).await.unwrap();
    let counts = mover.source.counts().await.unwrap();
    mover.copy(&counts, MoveStep::Copying, &mut |_| {}).await.unwrap();
    if Died::Compared <= at {
        mover.compare(&counts, &mut |_| {}).await.unwrap();
    }
    if Died::HandedOver <= at {
        mover.hand_over().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_can_be_run_again_wherever_it_died() {
    for at in [Died::Copied, Died::Compared, Died::HandedOver] {
        let (history, database) = (history().await, database());
        let folder = history.folder.path();
        died(folder, &database, at).await;
        assert_eq!(DataFolder::claim(folder).is_ok(), at == Died::HandedOver, "{at:?}");
        assert_eq!(moved(folder, &database).await.unwrap().agents, 8, "{at:?}");
        drop(DataFolder::claim(folder).unwrap());
        let store = PostgresStore::open(config(&database)).await.unwrap();
        assert_eq!(store.read(launch(1).0.id, Sequence::START, WHOLE).await.unwrap().len(), 323);
        assert_eq!(database.sql("SELECT to_regclass('unfinished_move')"), "");
        assert!(!folder.join("move").exists());
        let again = moved(folder, &database).await.unwrap_err();
        assert!(matches!(again, MoveError::Folder(OpenError::OtherDatabase { .. })), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_uses_a_database_whose_copy_was_not_compared() {
    let (history, database) = (history().await, database());
    died(history.folder.path(), &database, Died::Copied).await;
    let error = PostgresStore::open(config(&database)).await.err().unwrap();
    assert!(matches!(&error, PostgresOpenError::UnfinishedMove { .. }), "{error:?}");
    let path = history.folder.path().display().to_string();
    assert!(error.to_string().contains(&path) && error.to_string().contains("run it again"), "{error}");
    let told = postgres_doctor(config(&database), Duration::ZERO).await.unwrap_err();
    assert_eq!(told.to_string(), error.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_has_added_to_the_folder_meanwhile_moves_too() {
    let (history, database) = (history().await, database());
    died(history.folder.path(), &database, Died::Copied).await;
    let store = sqlite(history.folder.path());
    let Running { agent, mut scribe, .. } = history.running;
    store.append(scribe.say(vec![notice("more")])).await.unwrap();
    let events = store.read(agent.id, Sequence::START, WHOLE).await.unwrap();
    store.close().await;
    moved(history.folder.path(), &database).await.unwrap();
    let store = PostgresStore::open(config(&database)).await.unwrap();
    assert_eq!(store.read(agent.id, Sequence::START, WHOLE).await.unwrap(), events);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_compared_is_never_emptied() {
    let (history, database) = (history().await, database());
    died(history.folder.path(), &database, Died::Compared).await;
    // Another folder could be used with it: the copy may be the truth by now.
    let store = PostgresStore::open(config(&database)).await.unwrap();
    store.join().await.unwrap();
    store.create(launch(30).0, launch(30).1.into(), None).await.unwrap();
    store.close().await;
    let error = moved(history.folder.path(), &database).await.unwrap_err();
    assert!(matches!(error, MoveError::Differs { .. }), "{error:?}");
    assert_eq!(database.sql("SELECT count(*) FROM agents"), "9");
    assert!(DataFolder::claim(history.folder.path()).is_err(), "the folder still has its data");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_move_of_another_folder_is_not_touched() {
    let (history, other, database) = (history().await, history().await, database());
    died(history.folder.path(), &database, Died::Copied).await;
    for _ in 0..2 {
        let error = moved(other.folder.path(), &database).await.unwrap_err();
        assert!(matches!(&error, MoveError::OtherMove { .. }), "{error:?}");
        assert!(error.to_string().contains(&history.folder.path().display().to_string()), "{error}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM agents"), "8");
    moved(history.folder.path(), &database).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_handed_over_does_not_move_into_a_second_database() {
    let (history, first, second) = (history().await, database(), database());
    died(history.folder.path(), &first, Died::HandedOver).await;
    let error = moved(history.folder.path(), &second).await.unwrap_err();
    assert!(matches!(error, MoveError::Folder(OpenError::OtherDatabase { .. })), "{error:?}");
    assert_eq!(second.sql("SELECT count(*) FROM agents"), "0");
}
