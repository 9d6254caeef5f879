//! What can go wrong with streamed messages, one test for each case. The message vocabulary (`message.start`,
//! `message.chunk`, `message.end`) is a dialect, so these tests check the events behind it.

use tokenrail_domain::{EventBody, MessageOutcome, TurnOutcome};

use crate::commander::Deed;
use crate::faults::{Cut, Faults, Quirk, tiny_limits};
use crate::process::KILL_GRACE_MS;
use crate::reader::Reader;
use crate::simulation::Cast;
use crate::stories::{journal, outcomes, plan, saved_ms, tell, text_of_message};
use crate::view::Item;
use crate::world::EPOCH_MS;

/// When a reader connects that has missed everything.
const LATE_MS: u64 = 600_000;

fn with(quirk: Quirk) -> Faults {
    Faults { quirks: vec![quirk], quirk: 1000, readers: 2, ..Faults::none() }
}

fn messages(cast: &Cast) -> Vec<(String, MessageOutcome)> {
    let of = |body| match body {
        EventBody::Message(message) => Some((message.text(), message.outcome)),
        _ => None,
    };
    journal(cast).into_iter().filter_map(of).collect()
}

fn completed(cast: &Cast) {
    assert_eq!(outcomes(cast), [(TurnOutcome::Completed, None)]);
}

/// One reader that keeps reloading everything, and one that only follows.
fn refreshing(cast: &mut Cast) {
    cast.readers.iter_mut().for_each(|reader| reader.only_live = true);
    let mut refreshing = Reader::new(&cast.world, 9);
    (refreshing.slot, refreshing.disconnect_ms, refreshing.only_refresh) = (0, 200, true);
    cast.readers.push(refreshing);
}

#[test]
fn a_message_is_one_bubble_whether_it_was_refreshed_during_the_stream_or_not() {
    let faults = Faults { readers: 2, deltas: 20, pace_ms: 60, cut: Cut::Pieces, ..Faults::none() };
    tell(&faults, refreshing, |cast, _| {
        completed(cast);
        let said: Vec<_> = journal(cast).iter().filter_map(text_of_message).collect();
        for reader in &cast.readers {
            assert_eq!(reader.view.bubbles(), said, "one bubble each, and no piece of one");
        }
    });
}

#[test]
fn a_refresh_after_the_stream_shows_what_the_stream_has_shown() {
    let faults = Faults { readers: 2, ..Faults::none() };
    let late = |cast: &mut Cast| {
        refreshing(cast);
        // It connects after the agent has finished. The others have followed the stream.
        cast.readers[2].from_ms = LATE_MS;
        plan(cast, &[Deed::Launch, Deed::Wait(2 * LATE_MS)]);
    };
    tell(&faults, late, |cast, _| {
        let (_, ended_ms) = *saved_ms(cast).last().expect("it has ended");
        assert!(ended_ms < LATE_MS && cast.readers[2].view.last == cast.readers[0].view.last);
        assert_eq!(cast.readers[0].view.items, cast.readers[2].view.items);
        assert!(cast.readers[2].view.items.values().all(|item| !matches!(item, Item::Open(_))));
    });
}

#[test]
fn an_empty_message_is_no_bubble_and_no_harm() {
    tell(
        &Faults { messages: 1, ..with(Quirk::EmptyMessage) },
        |_| {},
        |cast, _| {
            completed(cast);
            assert!(messages(cast).iter().all(|(text, _)| text.is_empty()), "{:?}", messages(cast));
            for reader in &cast.readers {
                assert_eq!(reader.view.bubbles().concat(), "", "nobody is shown anything");
            }
        },
    );
}

#[test]
fn a_message_of_more_than_a_thousand_chunks_is_one_message() {
    let faults = Faults { messages: 1, deltas: 3000, pace_ms: 1, readers: 1, ..Faults::none() };
    let most = std::cell::Cell::new(0);
    tell(
        &faults,
        |_| {},
        |cast, _| {
            completed(cast);
            assert_eq!(messages(cast).len(), 1);
            let deltas = journal(cast).iter().filter(|body| body.is_delta()).count();
            most.set(deltas.max(most.get()));
        },
    );
    assert!(1000 < most.get(), "{}", most.get());
}

#[test]
fn a_chunk_without_a_start_is_shown_and_ended_with_its_turn() {
    tell(
        &with(Quirk::ChunkWithoutStart),
        |_| {},
        |cast, _| {
            completed(cast);
            let bodies = journal(cast);
            assert!(
                bodies
                    .iter()
                    .any(|body| matches!(body, EventBody::TextDelta { text, .. } if text == "orphan"))
            );
        },
    );
}

#[test]
fn an_end_without_a_start_changes_nothing() {
    tell(
        &with(Quirk::EndWithoutStart),
        |_| {},
        |cast, _| {
            completed(cast);
            assert!(
                messages(cast)
                    .iter()
                    .all(|(text, outcome)| !text.is_empty() && *outcome == MessageOutcome::Complete)
            );
        },
    );
}

#[test]
fn a_message_that_stops_for_a_minute_has_failed() {
    let in_a_message = std::cell::Cell::new(0);
    tell(
        &with(Quirk::HangInMessage),
        |_| {},
        |cast, _| {
            let agent = cast.agents.get(0).expect("it was launched");
            let state = cast.world.lock();
            let events = &state.ledgers[&agent].events;
            // If the agent stops before its first chunk, no message has begun, and the idle timeout applies.
            let begun = events.iter().any(|event| event.body.is_delta());
            let (code, bound) = if begun {
                ("stream_timeout", tiny_limits().run.stream_timeout)
            } else {
                ("idle_timeout", tiny_limits().run.idle_timeout)
            };
            in_a_message.set(in_a_message.get() + u32::from(begun));
            let result = events.last().expect("it has ended");
            let EventBody::TurnResult(told) = &result.body else { panic!("{result:?}") };
            let told = told.error.as_ref().and_then(|error| error.code.as_deref());
            assert_eq!(told, Some(code));
            let heard_ms = state.processes.values().map(|process| process.heard_ms).max();
            let ended_ms = (result.at.0 - EPOCH_MS) as u64;
            let silent_ms = ended_ms - heard_ms.expect("it has run");
            let most = bound.as_millis() as u64;
            assert!(
                (most..=most + KILL_GRACE_MS).contains(&silent_ms),
                "ended after {silent_ms} ms of {most}"
            );
        },
    );
    assert!(0 < in_a_message.get(), "a message was begun");
    tell(
        &with(Quirk::HangInMessage),
        |_| {},
        |cast, _| assert!(messages(cast).iter().all(|(_, outcome)| *outcome == MessageOutcome::Failed)),
    );
}

#[test]
fn a_message_that_stops_for_less_than_a_minute_goes_on() {
    tell(&with(Quirk::Stall), |_| {}, |cast, _| completed(cast));
}

#[test]
fn events_that_come_twice_are_applied_once() {
    // Readers resume at older cursors, and commands are repeated. At the end all views are compared.
    let faults = Faults { readers: 4, disconnect_ms: 100, pace_ms: 30, ..Faults::none() };
    let deeds = [
        Deed::Launch,
        Deed::LaunchAgain,
        Deed::Send(0),
        Deed::SendAgain(0),
        Deed::Wait(20_000),
        Deed::SendAgain(0),
    ];
    tell(
        &faults,
        |cast| plan(cast, &deeds),
        |cast, _| {
            assert_eq!(outcomes(cast), [(TurnOutcome::Completed, None), (TurnOutcome::Completed, None)]);
        },
    );
}

#[test]
fn streams_of_several_agents_do_not_meet() {
    let faults = Faults { slots: 3, readers: 6, cut: Cut::Pieces, ..Faults::none() };
    tell(
        &faults,
        |_| {},
        |cast, report| {
            assert_eq!(cast.world.lock().ledgers.len(), 3);
            assert_eq!(report.lives, 1);
        },
    );
}

#[test]
fn a_message_is_failed_and_not_lost_where_the_agent_ends_in_it() {
    for quirk in [Quirk::NoResult, Quirk::HalfResult] {
        tell(
            &with(quirk),
            |_| {},
            |cast, _| {
                assert_eq!(outcomes(cast), [(TurnOutcome::Failed, Some("no_result".to_owned()))]);
            },
        );
    }
}

#[test]
fn a_message_for_an_agent_that_is_gone_is_refused_and_harms_nobody() {
    // A purge while the agent is streaming: its events must not meet a missing row, and nobody else is affected.
    let faults = Faults { readers: 2, pace_ms: 300, slots: 2, ..Faults::none() };
    let deeds = [Deed::Launch, Deed::Wait(500), Deed::Delete { purge: true }, Deed::Send(0)];
    tell(
        &faults,
        |cast| plan(cast, &deeds),
        |cast, _| {
            let agent = cast.agents.get(0).unwrap();
            assert!(cast.world.disk.saved_agent(agent).is_none());
            assert!(cast.commanders[0].sent.is_empty(), "nothing was accepted for it");
        },
    );
}

#[test]
fn an_agent_is_saved_before_it_runs() {
    // Each journal begins with the prompt. A process of an agent that is not saved fails the simulation.
    let faults =
        Faults { store_error: 300, commit_unknown: 300, crashes: 2, crash_within: 40, ..Faults::none() };
    tell(
        &faults,
        |_| {},
        |cast, _| {
            assert!(
                matches!(&journal(cast)[0], EventBody::UserMessage { content, .. } if content == "launch 0")
            );
        },
    );
}

#[test]
fn readers_that_cannot_be_reached_do_not_stop_an_agent() {
    // First without any reader, then with readers that can hardly read.
    tell(&Faults { readers: 0, ..Faults::none() }, |_| {}, |cast, _| completed(cast));
    tell(&Faults { readers: 3, read_error: 900, ..Faults::none() }, |_| {}, |cast, _| completed(cast));
}
