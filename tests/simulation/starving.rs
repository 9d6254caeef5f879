//! The real store: small writes must be answered during a flood of large ones.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_util::future::Either;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokenrail_persistence::{SqliteConfig, SqliteLimits, SqliteStore, Synchronous};
use tokenrail_ports::testing::samples::{Scribe, launch, text_delta};
use tokenrail_ports::{Append, IAgentRepository, IJournal, StoreError};
use tokio::runtime::Builder;

use crate::dice::Dice;

const QUIET: u8 = 1;
const LAUNCHED: u8 = 2;
/// The number of the first agent that floods.
const FLOODING: u8 = 3;
/// The size of a large write.
const LARGE_BYTES: usize = 32 << 10;
/// Large writes that may be answered while a small one waits: the one that is running or next, and one that was
/// answered together with the small one.
const MOST: usize = 2;

#[test]
fn who_writes_little_is_not_starved() {
    for seed in 0..10 {
        assert_eq!(nobody_is_starved(seed), None, "seed {seed}");
    }
}

/// Many agents make one large write after the other. Then another agent makes a small one.
pub(crate) fn nobody_is_starved(seed: u64) -> Option<String> {
    let dice = &mut Dice::of(seed, "starving");
    let folder = tempfile::tempdir().unwrap();
    // One write for each transaction, so that the answers show the order of the transactions.
    let limits = SqliteLimits { commit_max_jobs: 1, ..SqliteLimits::default() };
    let config =
        SqliteConfig { synchronous: Synchronous::Normal, limits, ..SqliteConfig::new(folder.path()) };
    let store = SqliteStore::open(config).unwrap();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let answered = answered_before(&store, dice.between(8, 24) as u8, dice.chance(500)).await.unwrap();
        store.close().await;
        let said =
            || format!("G15: {answered} large writes were answered while a small one waited, of {MOST}");
        (MOST < answered).then(said)
    })
}

/// How many large writes are answered while the small one waits: a launch, or some output.
async fn answered_before(store: &SqliteStore, flooding: u8, launches: bool) -> Result<usize, StoreError> {
    let small = running(store, QUIET).await?.say(vec![text_delta(0, "x")]);
    let mut flood = FuturesUnordered::new();
    for number in FLOODING..FLOODING + flooding {
        let mut scribe = running(store, number).await?;
        let mut large = || -> Append { scribe.say(vec![text_delta(0, &"x".repeat(LARGE_BYTES))]) };
        // The first large write may be a single long message, and does not count as a flood.
        store.append(large()).await?;
        flood.push(store.append(large()));
    }
    let (agent, turn) = launch(LAUNCHED);
    let small = if launches {
        Either::Left(async { store.create(agent, turn.into(), None).await.map(|_| ()) })
    } else {
        Either::Right(store.append(small))
    };
    let mut small = Box::pin(small);
    // A write is queued when it is first polled. The small write did not wait for those that were answered before.
    take_answered(&mut flood).await?;
    let mut is_answered = is_ready(small.as_mut()).await?;
    take_answered(&mut flood).await?;
    let mut answered = 0;
    while !is_answered {
        tokio::select! {
            // This order counts what the small write waited for, not how late this test polls it.
            biased;
            done = &mut small => is_answered = done.map(|()| true)?,
            Some(done) = flood.next() => {
                done?;
                answered += 1;
            }
        }
    }
    while let Some(done) = flood.next().await {
        done?;
    }
    Ok(answered)
}

/// An agent whose turn is running.
async fn running(store: &SqliteStore, number: u8) -> Result<Scribe, StoreError> {
    let (agent, turn) = launch(number);
    let mut scribe = Scribe::new(&agent);
    store.create(agent, turn.clone().into(), None).await?;
    store.append(scribe.start(&turn)).await?;
    Ok(scribe)
}

/// Takes the answers that are there, without waiting for more.
async fn take_answered<F>(flood: &mut FuturesUnordered<F>) -> Result<(), StoreError>
where
    F: Future<Output = Result<(), StoreError>>,
{
    poll_fn(|context| {
        loop {
            match flood.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(error)) => return Poll::Ready(error),
                Poll::Ready(None) | Poll::Pending => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}

/// Whether it has been answered already.
async fn is_ready<F>(mut small: Pin<&mut F>) -> Result<bool, StoreError>
where
    F: Future<Output = Result<(), StoreError>>,
{
    poll_fn(|context| match small.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(done.map(|()| true)),
        Poll::Pending => Poll::Ready(Ok(false)),
    })
    .await
}
