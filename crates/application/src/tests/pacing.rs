use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::StoreError;
use tokenrail_ports::testing::{AppendFault, MemoryStore, ScriptedRunner, Step};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::harness::{Harness, harness_with, words};
use crate::{AfterLastTurn, Follower, Limits, Next, Rendering, RenderingKey};

const WAIT: Duration = Duration::from_mins(1);

/// An agent that prints a word each time [`Self::speak`] is called.
struct Speaker {
    harness: Harness,
    id: AgentId,
    gate: Arc<Notify>,
}

impl Speaker {
    async fn start(said: &[&str]) -> Self {
        Self::start_with(said, |_| ()).await
    }

    /// A speaker of whose events only so many may wait for their commit. If it is one, it is as in a flood.
    async fn start_with_pending(events: usize, said: &[&str]) -> Self {
        Self::start_with(said, |limits| limits.saving.pending_events = events).await
    }

    async fn start_with(said: &[&str], limit: impl FnOnce(&mut Limits)) -> Self {
        let gate = Arc::new(Notify::new());
        let steps = said.iter().flat_map(|word| [Step::Gate(Arc::clone(&gate)), Step::line(*word)]).collect();
        let mut limits = Limits::default();
        (limits.saving.follower_wait, limits.saving.follower_wait_from) = (WAIT, 2);
        limit(&mut limits);
        let other = vec![Step::line("say something"), Step::Hang];
        let runner = ScriptedRunner::new([steps, other]);
        let harness = harness_with(Arc::new(MemoryStore::new(7)), Arc::new(runner), limits);
        let id = harness.launch("hi").await;
        harness.wait_for(id, |_| true).await;
        Self { harness, id, gate }
    }

    /// Makes it print the next word, and gives it time to do so.
    async fn speak(&self) {
        self.gate.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Launches another agent, and waits until it has said something.
    async fn other_agent_speaks(&self) {
        let other = self.harness.launch("hi").await;
        self.harness.wait_for(other, |event| words(std::slice::from_ref(event)) == ["+something"]).await;
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

/// The next page, which is rendered as for a client.
async fn next(follower: &mut Follower) -> Vec<String> {
    match follower.next().await.unwrap() {
        Next::Page(page) => {
            let rendering = |_: &[Event]| Rendering { bytes: "rendered".into(), ends: Vec::new() };
            page.batch.rendering(RenderingKey::of::<Speaker>([0, 0]), rendering);
            words(page.events())
        }
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

/// An agent that has said "a", which one of its two followers has not taken, and then "b" and "c".
async fn flood_of(further: &[&str]) -> (Speaker, [Follower; 2]) {
    let said = [&["say first", "say a", "say b", "say c"], further].concat();
    let agent = Speaker::start_with_pending(1, &said).await;
    let [mut quick, mut slow] = agent.two_that_keep_up().await;
    // After this word, nobody waits any more for the follower with which the speaker was started.
    agent.speak().await;
    assert_eq!([next(&mut quick).await, next(&mut slow).await], [["+first"], ["+first"]]);
    agent.speak().await;
    assert_eq!(next(&mut quick).await, ["+a"]);
    agent.speak().await;
    agent.speak().await;
    (agent, [quick, slow])
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_saved_and_announced_once_followers_have_taken_the_last_batch() {
    let (agent, [mut quick, mut slow]) = flood_of(&["say d", "close"]).await;
    let early = timeout(WAIT / 2, quick.next()).await;
    assert!(
        early.is_err(),
        "{early:?} came although half of the followers have not taken the batch before it"
    );
    let (saved, _) = agent.harness.service.events(agent.id, Sequence::START, None).await.unwrap();
    assert_eq!(words(&saved), ["user hi", "+first", "+a", "+b", "+c"], "it is saved meanwhile");
    assert_eq!(next(&mut slow).await, ["+a"]);
    let began = Instant::now();
    assert_eq!([next(&mut quick).await, next(&mut quick).await], [["+b"], ["+c"]]);
    assert_eq!([next(&mut slow).await, next(&mut slow).await], [["+b"], ["+c"]]);
    agent.speak().await;
    assert_eq!(next(&mut quick).await, ["+d"]);
    assert!(began.elapsed() < WAIT / 10, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_flood_does_not_wait_longer_for_a_follower_that_does_not_read() {
    let (_agent, [mut quick, _stuck]) = flood_of(&["close"]).await;
    let began = Instant::now();
    assert_eq!([next(&mut quick).await, next(&mut quick).await], [["+b"], ["+c"]]);
    assert!(began.elapsed() <= WAIT, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_back_when_the_agent_ends() {
    let (agent, [mut quick, _stuck]) = flood_of(&[]).await;
    let began = Instant::now();
    assert_eq!([next(&mut quick).await, next(&mut quick).await], [["+b"], ["+c"]]);
    assert!(began.elapsed() < WAIT / 10, "{:?}", began.elapsed());
    drop(agent);
}

/// It starts at what the store says, which includes what is held back. The others then get that too.
#[tokio::test(start_paused = true)]
async fn a_further_follower_ends_the_wait_of_a_flood() {
    let (agent, [mut quick, _stuck]) = flood_of(&["say d", "close"]).await;
    let began = Instant::now();
    let mut further = agent.follow().await;
    assert_eq!([next(&mut quick).await, next(&mut quick).await], [["+b"], ["+c"]]);
    for expected in ["user hi", "+first", "+a", "+b", "+c"] {
        assert_eq!(next(&mut further).await, [expected]);
    }
    agent.speak().await;
    assert_eq!([next(&mut quick).await, next(&mut further).await], [["+d"], ["+d"]]);
    assert!(began.elapsed() < WAIT / 10, "{:?}", began.elapsed());
}

/// The batches of four words that have to wait, of which twelve may, after two followers have taken "a".
async fn batches_of_four(agent: &Speaker) -> Vec<Vec<String>> {
    let [mut quick, mut slow] = agent.two_that_keep_up().await;
    for word in ["+first", "+a"] {
        agent.speak().await;
        assert_eq!(next(&mut quick).await, [word]);
        if word == "+first" {
            assert_eq!(next(&mut slow).await, [word]);
        }
    }
    for _ in 0..4 {
        agent.speak().await;
    }
    assert_eq!(next(&mut slow).await, ["+a"]);
    let mut batches = vec![next(&mut quick).await];
    while batches.concat().len() < 4 {
        batches.push(next(&mut quick).await);
    }
    batches
}

const FOUR_WORDS: [&str; 7] = ["say first", "say a", "say b", "say c", "say d", "say e", "close"];

#[tokio::test(start_paused = true)]
async fn batches_are_smaller_while_another_agent_saves() {
    let agent = Speaker::start_with_pending(12, &FOUR_WORDS).await;
    agent.other_agent_speaks().await;
    assert_eq!(batches_of_four(&agent).await, [vec!["+b", "+c", "+d"], vec!["+e"]]);
}

#[tokio::test(start_paused = true)]
async fn batches_of_fewer_bytes_are_saved_while_another_agent_saves() {
    let word_bytes = size_of::<Event>() + "say b".len() + "b".len();
    for (is_alone, batches) in
        [(false, vec![vec!["+b", "+c", "+d"], vec!["+e"]]), (true, vec![vec!["+b", "+c", "+d", "+e"]])]
    {
        let agent =
            Speaker::start_with(&FOUR_WORDS, |limits| limits.saving.pending_bytes = 12 * word_bytes).await;
        if !is_alone {
            agent.other_agent_speaks().await;
        }
        assert_eq!(batches_of_four(&agent).await, batches, "alone: {is_alone}");
    }
}

#[tokio::test(start_paused = true)]
async fn batches_are_as_large_as_they_may_be_if_no_other_agent_has_saved_lately() {
    let agent = Speaker::start_with_pending(12, &FOUR_WORDS).await;
    agent.other_agent_speaks().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(batches_of_four(&agent).await, [["+b", "+c", "+d", "+e"]]);
}

/// The agents of which one prints lines that display nothing: with another agent that saves, or alone.
async fn that_print(unshown_bytes: usize, pending_bytes: usize, is_alone: bool) -> (Speaker, Follower) {
    let said = ["?".repeat(unshown_bytes), "say a".to_owned(), "close".to_owned()];
    let said = said.each_ref().map(String::as_str);
    let agent = Speaker::start_with(&said, |limits| limits.saving.pending_bytes = pending_bytes).await;
    if !is_alone {
        agent.other_agent_speaks().await;
    }
    let mut follower = agent.follow().await;
    assert_eq!(next(&mut follower).await, ["user hi"]);
    agent.speak().await;
    (agent, follower)
}

/// They cannot be saved before that event is there.
#[tokio::test(start_paused = true)]
async fn lines_that_display_nothing_do_not_keep_the_event_after_them_from_being_read() {
    const PENDING_BYTES: usize = 1000;
    for (unshown_bytes, is_alone) in [(PENDING_BYTES, true), (PENDING_BYTES / 2, false)] {
        let (agent, mut follower) = that_print(unshown_bytes, PENDING_BYTES, is_alone).await;
        agent.speak().await;
        // For less time than that for which the other agent counts.
        let word = timeout(Duration::from_millis(500), next(&mut follower)).await;
        assert_eq!(word, Ok(vec!["+a".to_owned()]), "{unshown_bytes} bytes, alone: {is_alone}");
    }
}

/// They would take memory without a limit.
#[tokio::test(start_paused = true)]
async fn a_notice_saves_lines_that_display_nothing_if_they_exceed_the_limit() {
    const PENDING_BYTES: usize = 1000;
    for is_alone in [true, false] {
        let (_agent, mut follower) = that_print(PENDING_BYTES + 1, PENDING_BYTES, is_alone).await;
        let notice = timeout(Duration::from_millis(500), next(&mut follower)).await;
        assert_eq!(notice, Ok(vec!["notice unshown_output".to_owned()]), "alone: {is_alone}");
    }
}

/// The output is not read while the start of a turn is saved.
#[tokio::test(start_paused = true)]
async fn an_agent_is_not_ended_for_silence_while_the_start_of_its_own_turn_cannot_be_saved() {
    let pause = Duration::from_millis(1500);
    let agent = Speaker::start_with(&["close a", "next", "close b"], |limits| {
        limits.run.idle_timeout = pause / 3;
        (limits.saving.retry_pause, limits.saving.retry_pause_max) = (pause, pause);
    });
    let agent = agent.await;
    agent.speak().await;
    agent.harness.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Busy));
    agent.speak().await;
    agent.speak().await;
    let told = words(&agent.harness.watch(agent.id).await);
    assert_eq!(told.iter().filter(|said| *said == "result completed -").count(), 2, "{told:?}");
}

/// The disk is full, and the save goes on. Another agent has saved a moment ago, so one event is enough for the agent
/// not to be read. A moment later it may be.
#[tokio::test(start_paused = true)]
async fn an_agent_that_was_not_read_is_not_ended_for_silence_when_it_may_be_read_again() {
    let pause = Duration::from_millis(1500);
    let agent = Speaker::start_with(&["say a", "say b", "say c", "close"], |limits| {
        limits.run.stream_timeout = pause / 3;
        limits.saving.pending_events = 4;
        (limits.saving.retry_pause, limits.saving.retry_pause_max) = (pause, pause);
    });
    let agent = agent.await;
    agent.other_agent_speaks().await;
    // Two of each agent: the other one is silent, so it is ended, which cannot be saved either.
    for _ in 0..4 {
        agent.harness.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Full));
    }
    for _ in 0..3 {
        agent.speak().await;
    }
    tokio::time::sleep(pause).await;
    agent.speak().await;
    let told = words(&agent.harness.watch(agent.id).await);
    assert_eq!(told.last().unwrap(), "result completed -", "{told:?}");
}
