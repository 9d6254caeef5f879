use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, Sequence};
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::harness::{Harness, harness_with, words};
use crate::{AfterLastTurn, Follower, Limits, Next};

const WAIT: Duration = Duration::from_mins(1);

/// An agent that prints a word each time [`Self::speak`] is called.
struct Speaker {
    harness: Harness,
    id: AgentId,
    gate: Arc<Notify>,
}

impl Speaker {
    async fn start(said: &[&str]) -> Self {
        let gate = Arc::new(Notify::new());
        let steps = said.iter().flat_map(|word| [Step::Gate(Arc::clone(&gate)), Step::line(*word)]).collect();
        let mut limits = Limits::default();
        (limits.saving.follower_wait, limits.saving.follower_wait_from) = (WAIT, 2);
        let store = Arc::new(MemoryStore::new(7));
        let harness = harness_with(store, Arc::new(ScriptedRunner::new([steps])), limits);
        let id = harness.launch("hi").await;
        harness.wait_for(id, |_| true).await;
        Self { harness, id, gate }
    }

    /// Makes it print the next word, and gives it time to do so.
    async fn speak(&self) {
        self.gate.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    async fn follow(&self) -> Follower {
        self.harness.service.follow(self.id, Some(Sequence::START), AfterLastTurn::End).await.unwrap().1
    }

    /// Two followers that have read everything so far.
    async fn two_that_keep_up(&self) -> [Follower; 2] {
        let mut followers = [self.follow().await, self.follow().await];
        for follower in &mut followers {
            assert_eq!(next(follower).await, ["user hi"]);
        }
        followers
    }
}

async fn next(follower: &mut Follower) -> Vec<String> {
    match follower.next().await.unwrap() {
        Next::Page(page) => words(page.events()),
        Next::End(end) => panic!("it ended: {end:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_collected_while_followers_take_the_last_batch() {
    let agent = Speaker::start(&["say a", "say b", "say c", "say d", "close"]).await;
    let [mut quick, mut slow] = agent.two_that_keep_up().await;
    agent.speak().await;
    assert_eq!(next(&mut quick).await, ["+a"]);
    for _ in 0..3 {
        agent.speak().await;
    }
    let early = timeout(WAIT / 2, quick.next()).await;
    assert!(
        early.is_err(),
        "{early:?} came although half of the followers have not taken the batch before it"
    );
    assert_eq!(next(&mut slow).await, ["+a"]);
    assert_eq!(
        next(&mut quick).await,
        ["+b", "+c", "+d"],
        "in one batch, as soon as the other has caught up"
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_does_not_read_delays_one_batch_and_only_for_a_while() {
    let agent = Speaker::start(&["say a", "say b", "say c", "close"]).await;
    let [mut quick, _stuck] = agent.two_that_keep_up().await;
    agent.speak().await;
    assert_eq!(next(&mut quick).await, ["+a"]);
    let began = Instant::now();
    agent.speak().await;
    assert_eq!(next(&mut quick).await, ["+b"]);
    assert!(began.elapsed() <= WAIT, "{:?}", began.elapsed());
    let began = Instant::now();
    agent.speak().await;
    assert_eq!(next(&mut quick).await, ["+c"]);
    assert!(
        began.elapsed() < WAIT / 10,
        "the one that does not read is waited for again: {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_single_follower_is_not_waited_for() {
    let agent = Speaker::start(&["say a", "say b", "close"]).await;
    let mut only = agent.follow().await;
    assert_eq!(next(&mut only).await, ["user hi"]);
    agent.speak().await;
    agent.speak().await;
    assert_eq!((next(&mut only).await, next(&mut only).await), (vec!["+a".into()], vec!["+b".into()]));
}
