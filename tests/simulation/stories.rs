//! Streaming under faults, by name: the happy path, delays, cancels, slow clients, tools; and the risks of streaming.

use tokenrail_domain::{EventBody, TurnOutcome};

use crate::commander::{Commander, Deed};
use crate::faults::{Cut, Faults, Quirk};
use crate::simulation::{Cast, Report, simulate_with};

/// Each story is told so many times, with another seed each.
const TIMES: u64 = 12;

/// Plays a story with each seed; nothing may be broken. `look` sees how it ended.
pub(crate) fn tell(faults: &Faults, prepare: impl Fn(&mut Cast), look: impl Fn(&Cast, &Report)) {
    for seed in 0..TIMES {
        let mut cast = Cast::new(seed, faults.clone(), false);
        prepare(&mut cast);
        let (cast, report) = simulate_with(cast);
        assert_eq!(report.violation, None, "seed {seed}");
        look(&cast, &report);
    }
}

/// The bodies of the journal of the first agent.
pub(crate) fn journal(cast: &Cast) -> Vec<EventBody> {
    let agent = cast.agents.get(0).expect("it was launched");
    let state = cast.world.lock();
    state.ledgers[&agent].events.iter().map(|event| event.body.clone()).collect()
}

/// How the turns of the first agent have ended.
pub(crate) fn outcomes(cast: &Cast) -> Vec<(TurnOutcome, Option<String>)> {
    let of = |body| match body {
        EventBody::TurnResult(result) => Some((result.outcome, result.error.and_then(|error| error.code))),
        _ => None,
    };
    journal(cast).into_iter().filter_map(of).collect()
}

/// Gives the first agent this plan.
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
            // Tokens first, then the message, then the result: and nothing after it.
            let kinds: Vec<_> = journal(cast).iter().map(order).collect();
            assert!(kinds.is_sorted_by(|a, b| a <= b || *a == 3), "{kinds:?}");
            assert_eq!(kinds.last(), Some(&4));
            // What is on the screen is what the agent has said, for each reader the same.
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
    // A client that goes is no cancel: every reader is cut off again and again, and the agent goes on.
    let gone = Faults { readers: 4, disconnect_ms: 20, pace_ms: 200, ..Faults::none() };
    tell(&gone, |_| {}, completed);

    // A cancel is: the turn ends as cancelled, and what the agent has started is gone before that is said.
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
    let faults = Faults { readers: 2, messages: 1, deltas: 10, pace_ms: 1, ..Faults::none() };
    let slow = |cast: &mut Cast| {
        for (reader, slow_ms) in cast.readers.iter_mut().zip([0, 2000]) {
            (reader.slow_ms, reader.only_live) = (slow_ms, true);
        }
    };
    tell(&faults, slow, |cast, report| {
        completed(cast, report);
        // The slow one delays neither the agent nor the other one: what comes is shown within the same millisecond.
        let state = cast.world.lock();
        let agent = cast.agents.get(0).unwrap();
        for event in &state.ledgers[&agent].events {
            let came = cast.readers[0].came_ms.iter().find(|(number, _)| *number == event.sequence.0);
            let (_, came_ms) = came.expect("nothing is lost");
            let saved_ms = (event.at.0 - crate::world::EPOCH_MS) as u64;
            // Readers look for their agent every 40 milliseconds until it is there.
            assert!(
                *came_ms <= saved_ms.max(400) + 100,
                "{} was saved at {saved_ms} and came at {came_ms}",
                event.sequence
            );
        }
    });
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
    // At the end of each simulation the server holds no follower, no byte of a tail and no task.
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
    }
}

#[test]
fn a_question_that_is_open_when_the_server_crashes_is_open_again_afterwards() {
    let faults = Faults { messages: 1, deltas: 2, quirks: vec![Quirk::Asks], quirk: 1000, ..Faults::none() };
    let play = |seed: u64, crash_at: Option<u64>| {
        let mut cast = Cast::new(seed, faults.clone(), false);
        // Nothing crashes any more when nobody has anything to do.
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
