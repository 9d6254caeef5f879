//! Streaming under faults, by name: the normal case, delays, cancels, slow clients, tools, and the risks of streaming.

use std::sync::atomic::Ordering;

use tokenrail_domain::{Event, EventBody, TurnOutcome};

use crate::commander::{Commander, Deed};
use crate::faults::{Cut, Faults, Quirk};
use crate::simulation::{Cast, Report, simulate_with};
use crate::world::EPOCH_MS;

/// This many seeds of the swarm are crashed at each of their steps, taken from seeds with [`SWEPT_STEPS`] steps.
const SWEPT_SEEDS: usize = 10;
const SWEPT_STEPS: std::ops::Range<u64> = 60..250;

/// How many seeds each story is played with.
const TIMES: u64 = 12;

/// Plays a story with each seed. No promise may be broken. `look` checks the end.
pub(crate) fn tell(faults: &Faults, prepare: impl Fn(&mut Cast), look: impl Fn(&Cast, &Report)) {
    for seed in 0..TIMES {
        let mut cast = Cast::new(seed, faults.clone(), false);
        prepare(&mut cast);
        let (cast, report) = simulate_with(cast);
        assert_eq!(report.violation, None, "seed {seed}");
        look(&cast, &report);
    }
}

/// The event bodies in the journal of the first agent.
pub(crate) fn journal(cast: &Cast) -> Vec<EventBody> {
    let agent = cast.agents.get(0).expect("it was launched");
    let state = cast.world.lock();
    state.ledgers[&agent].events.iter().map(|event| event.body.clone()).collect()
}

/// How the turns of the first agent ended.
pub(crate) fn outcomes(cast: &Cast) -> Vec<(TurnOutcome, Option<String>)> {
    let of = |body| match body {
        EventBody::TurnResult(result) => Some((result.outcome, result.error.and_then(|error| error.code))),
        _ => None,
    };
    journal(cast).into_iter().filter_map(of).collect()
}

/// Sets the plan for the first agent.
pub(crate) fn plan(cast: &mut Cast, deeds: &[Deed]) {
    cast.commanders[0] = Commander::with_plan(0, deeds.to_vec(), false);
}

fn completed(cast: &Cast, _: &Report) {
    assert_eq!(outcomes(cast), [(TurnOutcome::Completed, None)]);
}

#[test]
fn test_dst_streaming_basic() {
    tell(
        &Faults { readers: 3, ..Faults::none() },
        |_| {},
        |cast, report| {
            completed(cast, report);
            // First the deltas, then the message, then the result, and nothing after it.
            let kinds: Vec<_> = journal(cast).iter().map(order).collect();
            assert!(kinds.is_sorted_by(|a, b| a <= b || *a == 3), "{kinds:?}");
            assert_eq!(kinds.last(), Some(&4));
            // Each reader's screen shows what the agent said.
            let said: Vec<_> = journal(cast).iter().filter_map(text_of_message).collect();
            for reader in &cast.readers {
                assert_eq!(reader.view.bubbles(), said);
            }
        },
    );
}

fn order(body: &EventBody) -> u8 {
    match body {
        EventBody::UserMessage { .. } => 0,
        EventBody::Notice(_) => 1,
        EventBody::TextDelta { .. } | EventBody::Usage(_) => 2,
        EventBody::Message(_) => 3,
        EventBody::TurnResult(_) => 4,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn text_of_message(body: &EventBody) -> Option<String> {
    match body {
        EventBody::Message(message) => Some(message.text()),
        _ => None,
    }
}

#[test]
fn test_dst_streaming_with_network_delay() {
    let faults = Faults {
        readers: 4,
        slow_ms: 500,
        disconnect_ms: 1500,
        store_delay_ms: 500,
        cut: Cut::Pieces,
        ..Faults::none()
    };
    tell(&faults, |_| {}, completed);
}

#[test]
fn test_dst_streaming_cancellation() {
    // A disconnect is no cancel: every reader is cut off again and again, and the agent continues.
    let gone = Faults { readers: 4, disconnect_ms: 20, pace_ms: 200, ..Faults::none() };
    tell(&gone, |_| {}, completed);

    // With a cancel, the turn ends as cancelled, and the agent's child processes are gone before that is saved.
    let mut cancelled = gone;
    cancelled.quirks = vec![Quirk::HangInMessage, Quirk::Children, Quirk::IgnoresTerm];
    cancelled.quirk = 1000;
    let deeds = [Deed::Launch, Deed::Wait(10_000), Deed::Cancel, Deed::Cancel];
    tell(
        &cancelled,
        |cast| plan(cast, &deeds),
        |cast, _| {
            assert_eq!(outcomes(cast), [(TurnOutcome::Cancelled, None)]);
            let notice =
                |body: &EventBody| matches!(body, EventBody::Notice(notice) if notice.subtype == "reaped");
            assert!(journal(cast).iter().any(notice), "it is told how many processes were left");
        },
    );
}

#[test]
fn test_dst_streaming_backpressure() {
    let faults = Faults { readers: 2, messages: 2, deltas: 40, pace_ms: 30, ..Faults::none() };
    // Readers are slow only until all commanders are done, so the plan waits.
    let deeds = [Deed::Launch, Deed::Wait(300_000)];
    let slow = |cast: &mut Cast| {
        plan(cast, &deeds);
        for (reader, slow_ms) in cast.readers.iter_mut().zip([0, 2000]) {
            (reader.slow_ms, reader.only_live) = (slow_ms, true);
        }
    };
    let with_slow = std::cell::RefCell::new(Vec::new());
    tell(&faults, slow, |cast, report| {
        completed(cast, report);
        let saved = saved_ms(cast);
        let came = |reader: usize| first_times(&cast.readers[reader].came_ms);
        // A reader checks for its agent every 40 ms. From then on, it gets each event in the millisecond it is saved.
        let (_, there_ms) = came(0)[0];
        let expected: Vec<_> = saved.iter().map(|(number, at)| (*number, (*at).max(there_ms))).collect();
        assert_eq!(came(0), expected, "the slow one does not delay the other one");
        let late = came(1).iter().zip(&saved).filter(|((_, came), (_, saved))| saved + 100 < *came).count();
        assert!(saved.len() == came(1).len() && 0 < late, "the slow one is slow, and loses nothing");
        with_slow.borrow_mut().push(saved);
    });
    let alone = std::cell::RefCell::new(Vec::new());
    tell(
        &Faults { readers: 0, ..faults },
        |cast| plan(cast, &deeds),
        |cast, _| alone.borrow_mut().push(saved_ms(cast)),
    );
    assert_eq!(with_slow, alone, "it does not delay the agent: each event is as old as without any reader");
}

/// When each event came first. A reader that has reached the end may read some of it again.
fn first_times(came_ms: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut last = 0;
    let mut first = Vec::new();
    for (number, at) in came_ms {
        if last < *number {
            last = *number;
            first.push((*number, *at));
        }
    }
    first
}

/// When each event of the first agent was recorded. Nothing delays the store in these stories, so this is also when it
/// was saved.
pub(crate) fn saved_ms(cast: &Cast) -> Vec<(u64, u64)> {
    let state = cast.world.lock();
    let events = &state.ledgers[&cast.agents.get(0).expect("it was launched")].events;
    let at = |event: &Event| (event.sequence.0, (event.at.0 - EPOCH_MS) as u64);
    events.iter().map(at).collect()
}

#[test]
fn test_dst_streaming_with_tool_calls() {
    let faults =
        Faults { readers: 2, quirks: vec![Quirk::Tools], quirk: 1000, cut: Cut::Pieces, ..Faults::none() };
    tell(
        &faults,
        |_| {},
        |cast, report| {
            completed(cast, report);
            let mut waiting = Vec::new();
            for body in journal(cast) {
                match body {
                    EventBody::ToolCall(call) => waiting.push(call.call),
                    EventBody::ToolResult(result) => assert_eq!(waiting.pop(), Some(result.call)),
                    _ => {}
                }
            }
            assert!(waiting.is_empty(), "each call has its result");
        },
    );
}

#[test]
fn a_client_that_goes_leaves_nothing_behind() {
    // At the end of each simulation, the server holds no follower, no byte of a tail, and no task.
    let faults = Faults { readers: 4, disconnect_ms: 5, slow_ms: 50, pace_ms: 50, ..Faults::none() };
    tell(
        &faults,
        |cast| plan(cast, &[Deed::Launch, Deed::Wait(60_000)]),
        |_, report| assert!(report.reached.contains("a reader was disconnected")),
    );
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_again_at_its_cursor() {
    let faults = Faults {
        readers: 3,
        disconnect_ms: 30,
        deltas: 20,
        pace_ms: 30,
        crashes: 3,
        crash_within: 80,
        ..Faults::none()
    };
    tell(
        &faults,
        |cast| plan(cast, &[Deed::Launch, Deed::Wait(60_000)]),
        |_, report| assert!(1 < report.lives),
    );
}

#[test]
fn a_stream_of_a_kind_that_nobody_knows_is_kept_and_does_no_harm() {
    let quirks = vec![Quirk::Garbage, Quirk::InvalidUtf8, Quirk::LongLine, Quirk::WholeOnly];
    let faults = Faults { quirks, quirk: 1000, cut: Cut::EveryByte, ..Faults::none() };
    tell(&faults, |_| {}, completed);
}

#[test]
fn the_same_seed_goes_the_same_way() {
    for seed in 0..TIMES {
        let [first, second] = [(); 2].map(|()| simulate_with(Cast::new(seed, Faults::draw(seed), false)).1);
        assert_eq!((first.trace, first.steps), (second.trace, second.steps), "seed {seed}");
    }
    let traces: std::collections::BTreeSet<u64> =
        (0..TIMES).map(|seed| simulate_with(Cast::new(seed, Faults::draw(seed), false)).1.trace).collect();
    assert_eq!(traces.len() as u64, TIMES, "and another seed another way");
}

#[test]
fn a_crash_at_any_step_loses_nothing() {
    let faults = Faults {
        readers: 2,
        messages: 1,
        deltas: 4,
        quirks: vec![Quirk::Tools, Quirk::TurnOfItsOwn],
        quirk: 1000,
        ..Faults::none()
    };
    let deeds = [Deed::Launch, Deed::Send(0), Deed::Wait(100_000)];
    let play = |crash_at: Option<u64>| {
        let mut cast = Cast::new(7, faults.clone(), false);
        plan(&mut cast, &deeds);
        cast.world.lock().crash_next = crash_at;
        simulate_with(cast).1
    };
    let whole = play(None);
    assert_eq!(whole.violation, None);
    for step in 1..=whole.steps {
        let report = play(Some(step));
        assert_eq!(report.violation, None, "a crash at step {step} of {}", whole.steps);
        assert_eq!(report.lives, 2, "the server crashed at step {step}");
    }
}

#[test]
fn a_crash_at_any_step_of_a_seed_with_faults_breaks_no_promise() {
    let play = |seed: u64, crash_at: u64| {
        let cast = Cast::new(seed, Faults::draw(seed), false);
        cast.world.lock().crash_next = Some(crash_at);
        simulate_with(cast).1
    };
    let seeds = (0..).map(|seed| (seed, steps_of_first_life(seed)));
    let seeds: Vec<_> = seeds.filter(|(_, steps)| SWEPT_STEPS.contains(steps)).take(SWEPT_SEEDS).collect();
    let points: Vec<(u64, u64)> =
        seeds.iter().flat_map(|(seed, steps)| (1..=*steps).map(move |step| (*seed, step))).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(&(seed, step)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = play(seed, step);
                    assert_eq!(report.violation, None, "seed {seed}: a crash at step {step}");
                    assert!(1 < report.lives, "seed {seed}: the server crashed at step {step}");
                }
            });
        }
    });
}

/// How many steps a seed takes before the first restart, if it does not crash. 0 if the seed has hardly any fault, or
/// if the server is also stopped in an orderly way.
fn steps_of_first_life(seed: u64) -> u64 {
    let faults = Faults::draw(seed);
    let troubles = [faults.store_error, faults.commit_unknown, faults.cancels, faults.disconnect_ms];
    if troubles.iter().filter(|trouble| **trouble != 0).count() < 2 || faults.graceful != 0 {
        return 0;
    }
    let cast = Cast::new(seed, faults, false);
    cast.world.lock().crash_next = Some(u64::MAX);
    simulate_with(cast).1.steps
}

#[test]
fn a_question_that_is_open_when_the_server_crashes_is_open_again_afterwards() {
    let faults = Faults { messages: 1, deltas: 2, quirks: vec![Quirk::Asks], quirk: 1000, ..Faults::none() };
    let play = |seed: u64, crash_at: Option<u64>| {
        let mut cast = Cast::new(seed, faults.clone(), false);
        // Crashes happen only until all commanders are done, so the plan waits.
        plan(&mut cast, &[Deed::Launch, Deed::Wait(100_000)]);
        cast.world.lock().crash_next = crash_at;
        simulate_with(cast).1
    };
    let mut reached = std::collections::BTreeSet::new();
    for seed in 0..TIMES / 2 {
        let whole = play(seed, None);
        assert_eq!(whole.violation, None, "seed {seed}");
        for step in 1..=whole.steps {
            let report = play(seed, Some(step));
            assert_eq!(report.violation, None, "seed {seed}: a crash at step {step} of {}", whole.steps);
            reached.extend(report.reached);
        }
    }
    assert!(reached.contains("a question of before a crash was answered"), "{reached:?}");
}
