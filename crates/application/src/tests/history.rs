//! What readers fetch of the history: every stretch once, and one ahead for a single reader.

use std::future::Future as _;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokenrail_domain::{AgentId, Sequence};
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};
use tokenrail_ports::{IJournal, MockIJournal, PageLimit};
use tokio::runtime::Handle;

use super::harness::{harness_with, outside, tiny_limits};
use crate::{AfterLastTurn, AgentService, Follower, Next};

/// Two stretches fit into memory.
const STRETCH: usize = 4;

/// A service that was just started over a journal of `5 * STRETCH` events, and the reads that it makes.
struct Old {
    service: AgentService,
    agent: AgentId,
    reads: Arc<Mutex<Vec<Sequence>>>,
}

async fn old_journal() -> Old {
    journal_that(false).await
}

/// The same. If the journal is slow, the reads are not recorded.
async fn journal_that(hesitates: bool) -> Old {
    let store = Arc::new(MemoryStore::new(7));
    let words = (0..5 * STRETCH - 3).map(|n| format!("say w{n}")).chain(["close done".to_owned()]).collect();
    let runner = Arc::new(ScriptedRunner::new([vec![Step::Lines(words)]]));
    let mut limits = tiny_limits();
    (limits.reading.history_events, limits.reading.tail_bytes) = (STRETCH, 64 << 10);
    let written = harness_with(store.clone(), runner.clone(), limits);
    let agent = written.launch("hi").await;
    assert_eq!(written.watch(agent).await.len(), 5 * STRETCH);

    let (reads, mut journal) = (Arc::new(Mutex::new(Vec::new())), MockIJournal::new());
    let (seen, saved) = (reads.clone(), store.saved(agent));
    journal.expect_read().returning(move |_, after, limit: PageLimit| {
        seen.lock().unwrap().push(after);
        Ok(saved.iter().skip(after.0 as usize).take(limit.events).cloned().collect())
    });
    journal.expect_compact_next().returning(|| Ok(false));
    let journal: Arc<dyn IJournal> = if hesitates { store.clone() } else { Arc::new(journal) };
    let outside = crate::Outside { journal, ..outside(&store, &runner, &written.workspace) };
    let service = AgentService::new(outside, limits, Handle::current());
    Old { service, agent, reads }
}

async fn page(follower: &mut Follower) -> Option<usize> {
    match follower.next().await.unwrap() {
        Next::Page(page) => Some(page.events().len()),
        Next::End(_) => None,
    }
}

#[tokio::test]
async fn a_single_reader_finds_the_next_stretch_fetched() {
    let Old { service, agent, reads } = old_journal().await;
    let (_, mut follower) = service.follow(agent, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
    let mut all = 0;
    for stretch in 1..=5 {
        all += page(&mut follower).await.unwrap();
        let ahead = 5.min(stretch + 1);
        while reads.lock().unwrap().len() < ahead {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((all, page(&mut follower).await), (5 * STRETCH, None));
    let begins: Vec<_> = (0..5).map(|stretch| Sequence(stretch * STRETCH as u64)).collect();
    assert_eq!(*reads.lock().unwrap(), begins, "each once, in order");
}

#[tokio::test]
async fn readers_that_go_together_fetch_each_stretch_once_and_none_ahead() {
    let Old { service, agent, reads } = old_journal().await;
    let mut followers = Vec::new();
    for _ in 0..3 {
        followers.push(service.follow(agent, Some(Sequence::START), AfterLastTurn::End).await.unwrap().1);
    }
    for stretch in 1..=5 {
        for follower in &mut followers {
            assert_eq!(page(follower).await, Some(STRETCH));
        }
        assert_eq!(reads.lock().unwrap().len(), stretch);
    }
}

#[tokio::test]
async fn a_reader_that_stops_in_mid_fetch_holds_up_no_other() {
    let Old { service, agent, .. } = journal_that(true).await;
    let (_, mut stopped) = service.follow(agent, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
    let (_, mut queued) = service.follow(agent, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
    let (_, mut reader) = service.follow(agent, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
    // These two are not polled again, as if their clients accepted nothing.
    let mut unpolled = [Box::pin(stopped.next()), Box::pin(queued.next())];
    for next in &mut unpolled {
        let asked = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
        assert!(asked.is_pending(), "it fetches");
    }
    for _ in 0..5 {
        assert_eq!(page(&mut reader).await, Some(STRETCH));
    }
    drop(unpolled);
    assert_eq!(page(&mut stopped).await, Some(STRETCH));
}
