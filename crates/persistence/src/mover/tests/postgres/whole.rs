//! What has moved is what was there.

use tokenrail_ports::testing::samples::{WHOLE, WHOLE_LIST};
use tokenrail_ports::{ListBounds, TurnFilter, TurnLimit, TurnRange};

use tokenrail_domain::ListedAgent;

use super::*;
use crate::{DataFolder, sqlite_backup};

const WHOLE_TURNS: TurnLimit = TurnLimit { turns: 1000, bytes: usize::MAX };

/// Compares what both stores say of these agents.
async fn are_same(old: &SqliteStore, new: &PostgresStore, ids: &[AgentId]) {
    for &id in ids {
        assert_eq!(new.get(id).await.unwrap(), old.get(id).await.unwrap());
        let turns = old.turns(id, TurnNumber(0), WHOLE_TURNS).await.unwrap();
        assert_eq!(new.turns(id, TurnNumber(0), WHOLE_TURNS).await.unwrap(), turns);
        assert_eq!(new.open_turns(id).await.unwrap(), old.open_turns(id).await.unwrap());
        let range = TurnRange { limit: 1000, ..TurnRange::default() };
        let listed = old.list_turns(id, range, WHOLE_LIST).await.unwrap();
        assert_eq!(new.list_turns(id, range, WHOLE_LIST).await.unwrap(), listed);
        for turn in &turns {
            for position in 0..turn.images.len() as u32 {
                let image = old.prompt_image(id.turn(turn.number), position).await.unwrap();
                assert_eq!(new.prompt_image(id.turn(turn.number), position).await.unwrap(), image);
            }
        }
        let events = old.read(id, Sequence::START, WHOLE).await.unwrap();
        assert_eq!(new.read(id, Sequence::START, WHOLE).await.unwrap(), events);
        let messages = old.messages(id, Sequence::START, WHOLE).await.unwrap();
        assert_eq!(new.messages(id, Sequence::START, WHOLE).await.unwrap(), messages);
    }
    let filter = TurnFilter { limit: 1000, ..TurnFilter::default() };
    let all = old.all_turns(filter.clone(), WHOLE_LIST).await.unwrap();
    assert_eq!(new.all_turns(filter, WHOLE_LIST).await.unwrap(), all);
    assert_eq!(new.newest_key().await.unwrap(), old.newest_key().await.unwrap());
    // The first server to join gets all agents.
    new.join().await.unwrap();
    assert_eq!(new.to_purge().await.unwrap(), old.to_purge().await.unwrap());
    let ids = |listed: Vec<ListedAgent>| listed.into_iter().map(|it| it.agent.id).collect::<Vec<_>>();
    let (open, expected) = (new.with_open_turns(100).await.unwrap(), old.with_open_turns(100).await.unwrap());
    assert_eq!(ids(open), ids(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_moves_with_its_keys_numbers_and_ids() {
    let (history, database) = (history().await, database());
    let copy = tempfile::tempdir().unwrap();
    sqlite_backup(history.folder.path(), copy.path()).unwrap();
    let before = std::fs::read(file(&history.folder)).unwrap();
    let (mut steps, mut last) = (Vec::new(), 0);
    let counts = move_to_postgres(history.folder.path(), config(&database), &mut |progress| {
        if !steps.contains(&progress.step) {
            steps.push(progress.step);
            last = 0;
        }
        assert!(last <= progress.done && progress.done <= progress.total, "{progress:?} after {last}");
        last = progress.done;
    })
    .await
    .unwrap();
    assert_eq!(steps, [MoveStep::Copying, MoveStep::Comparing]);
    assert_eq!((counts.agents, counts.open_agents, counts.turns), (8, 3, 10));
    assert_eq!((counts.images, counts.keys, counts.purged), (4, 2, 1));
    assert_eq!(counts.events, 1 + 18 + 300 + 2 + 2 + 4 + 2 + 1 + 20);
    assert_eq!(std::fs::read(file(&history.folder)).unwrap(), before, "the old database is as it was");

    let (old, new) = (sqlite(copy.path()), PostgresStore::open(config(&database)).await.unwrap());
    are_same(&old, &new, &ids(&copy)).await;
    assert_eq!(database.sql("SELECT key FROM agents ORDER BY id"), "1\n2\n3\n4\n5\n6\n7\n8");
    for (name, body) in [("launch\0", "{}"), ("more", "[]"), ("more", "{}")] {
        let (here, there) = (old.recall(key(name, body)).await, new.recall(key(name, body)).await);
        assert_eq!(there.unwrap().unwrap(), here.unwrap().unwrap());
    }
    let strange = old.get(launch(5).0.id).await.unwrap().unwrap();
    assert_eq!(new.by_chat(strange.chat.unwrap()).await.unwrap().unwrap().id, strange.id);
    assert_eq!(database.sql("SELECT to_regclass('unfinished_move')"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_go_on_after_the_move() {
    let (history, database) = (history().await, database());
    moved(history.folder.path(), &database).await.unwrap();
    let _folder = DataFolder::claim(history.folder.path()).unwrap();
    let store = PostgresStore::open(config(&database)).await.unwrap();
    let Running { agent, scribe, queued } = history.running;
    let stale = scribe.rehearse(vec![notice("late")]);
    store.join().await.unwrap();
    let epoch = store.claim(agent.id).await.unwrap().unwrap();
    assert!(store.append(stale).await.is_err(), "a former owner may not append");
    let mut scribe = scribe.at_epoch(epoch);
    let before = store.read(agent.id, Sequence::START, WHOLE).await.unwrap();
    store.append(scribe.say(vec![text_delta(0, "!")])).await.unwrap();
    let complete = scribe.complete(0);
    store.append(scribe.say(vec![complete])).await.unwrap();
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    store.append(scribe.start(&queued)).await.unwrap();
    let after = store.read(agent.id, Sequence::START, WHOLE).await.unwrap();
    assert_eq!((&after[..before.len()], after.len()), (&before[..], before.len() + 4));

    let (agent, turn) = launch(20);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    let mut scribe = Scribe::new(&agent);
    store.append(scribe.start(&turn)).await.unwrap();
    let bounds = ListBounds { bytes: usize::MAX, field_bytes: 100 };
    let newest = store.all_turns(TurnFilter { limit: 1, ..TurnFilter::default() }, bounds).await.unwrap();
    assert_eq!(newest.items[0].turn.agent, agent.id, "new turns follow those that have moved");
    let (again, turn) = (history.purged, launch(4).1);
    assert!(store.create(again, turn.into(), None).await.is_err(), "its id was used");
}

#[test]
fn any_history_moves() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (folder, copy, database) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), database());
    let store = sqlite(folder.path());
    crate::same_as_memory::check(&runtime, &store, tokenrail_ports::testing::MemoryStore::new, 96);
    runtime.block_on(async {
        for _ in 0..20 {
            store.compact_next().await.unwrap();
        }
        store.close().await;
    });
    sqlite_backup(folder.path(), copy.path()).unwrap();
    runtime.block_on(async {
        let counts = moved(folder.path(), &database).await.unwrap();
        assert_eq!(counts.agents, 96);
        let (old, new) = (sqlite(copy.path()), PostgresStore::open(config(&database)).await.unwrap());
        are_same(&old, &new, &ids(&copy)).await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_agents_moves() {
    let (folder, database) = (tempfile::tempdir().unwrap(), database());
    sqlite(folder.path()).close().await;
    assert_eq!(moved(folder.path(), &database).await.unwrap(), MoveCounts::default());
    drop(DataFolder::claim(folder.path()).unwrap());
    PostgresStore::open(config(&database)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_turn_moves_page_by_page() {
    let (folder, copy, database) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), database());
    let store = sqlite(folder.path());
    let (agent, mut scribe) = started(&store, 1).await;
    for at in 0..40_u32 {
        let mut said = vec![text_delta(at, &"x".repeat(40)); 250];
        said.extend([notice(&"n".repeat(60_000)), notice("b")]);
        store.append(scribe.say(said)).await.unwrap();
        let complete = scribe.complete(at);
        store.append(scribe.say(vec![complete])).await.unwrap();
    }
    store.close().await;
    sqlite_backup(folder.path(), copy.path()).unwrap();
    assert_eq!(moved(folder.path(), &database).await.unwrap().events, 1 + 40 * 253);
    let (old, new) = (sqlite(copy.path()), PostgresStore::open(config(&database)).await.unwrap());
    are_same(&old, &new, &[agent.id]).await;
}
