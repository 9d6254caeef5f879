//! Copies of a history: imported, replayed, and reparsed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokenrail_domain::{
    Agent, AgentId, AgentStatus, Copied, Event, EventBody, JsonText, Notice, Sequence, SessionId, Timestamp,
    Turn, TurnNumber, TurnState,
};
use tokenrail_ports::testing::{ScriptedRunner, Step};
use tokenrail_ports::{Deletion, IArchive};

use super::harness::{Harness, harness, harness_with, tiny_limits, words};
use crate::own_notices::EVENTS_LOST;
use crate::{Finding, ImportError, Imported, Refusal, Reparsed};

async fn two_turns(harness: &Harness) -> (AgentId, Vec<Event>) {
    let id = harness.launch("hi").await;
    harness.watch(id).await;
    harness.service.send(id, "and then?".into(), None).await.unwrap();
    let events = harness.watch(id).await;
    assert_eq!(events.last().unwrap().turn, TurnNumber(2));
    (id, events)
}

const LINES: [&str; 6] = ["quiet", "say one ", "say two", "end", "note status", "close done"];

fn lines(lines: &[&str]) -> Vec<Step> {
    lines.iter().map(|line| Step::line(*line)).collect()
}

fn talker() -> ScriptedRunner {
    ScriptedRunner::new([lines(&LINES), lines(&LINES)])
}

fn bodies(events: &[Event]) -> Vec<(u64, u32, EventBody, Option<bytes::Bytes>)> {
    let parts = |event: &Event| (event.sequence.0, event.turn.0, event.body.clone(), event.raw.clone());
    events.iter().map(parts).collect()
}

fn imported(agent: &Agent) -> Imported {
    let Agent { kind, name, prompt, model, cwd, session, created_at, metadata, options, .. } = agent.clone();
    let session = session.and_then(|session| SessionId::new(&session).ok());
    Imported { kind, name, prompt, model, cwd, session, created_at, metadata, options }
}

async fn import(harness: &Harness, id: AgentId, events: Vec<Event>) -> Result<Agent, ImportError> {
    let agent = harness.service.get(id).await.unwrap();
    let turns = harness.service.turns(id, TurnNumber(0), 100).await.unwrap();
    let mut import = harness.service.import(imported(&agent)).await?;
    import.turns(turns.into_iter().map(tokenrail_ports::NewTurn::from).collect()).await?;
    import.events(events).await?;
    import.finish().await
}

#[tokio::test]
async fn an_imported_agent_has_the_same_history_and_nobody_can_talk_with_it() {
    let harness = harness(talker());
    let (id, events) = two_turns(&harness).await;
    let original = harness.service.get(id).await.unwrap();
    let copy = import(&harness, id, events.clone()).await.unwrap();
    assert_ne!(copy.id, id);
    assert_eq!(harness.service.get(copy.id).await.unwrap(), copy);
    assert_eq!(harness.watch(copy.id).await, events, "times and lines, too");
    let same = |turn: Turn| Turn { agent: copy.id, ..turn };
    let turns = harness.service.turns(id, TurnNumber(0), 9).await.unwrap();
    assert_eq!(
        harness.service.turns(copy.id, TurnNumber(0), 9).await.unwrap(),
        turns.into_iter().map(same).collect::<Vec<_>>()
    );
    assert_eq!((copy.status, copy.head, copy.turn), (original.status, original.head, original.turn));
    assert_eq!((copy.ended_at, copy.copy), (original.ended_at, Some(Copied::File)));
    let refused = harness.service.send(copy.id, "hello?".into(), None).await;
    assert!(matches!(refused, Err(Refusal::ReadOnly)), "{refused:?}");
}

#[tokio::test]
async fn a_history_that_breaks_a_rule_leaves_nothing() {
    let harness = harness(talker());
    let (id, events) = two_turns(&harness).await;
    let broken = |change: &dyn Fn(&mut Vec<Event>)| {
        let mut events = events.clone();
        change(&mut events);
        events
    };
    let last = events.len() - 1;
    let result_again = broken(&|events| events[2].body = events[last].body.clone());
    for (place, events) in [
        ("/events/3", broken(&|events| events[3].sequence = Sequence(5))),
        ("/events/1", broken(&|events| events[1].turn = TurnNumber(2))),
        ("/events/2", result_again),
        ("/events/3", broken(&|events| events[3].body = events[1].body.clone())),
        (
            "/events/12",
            broken(&|events| {
                events.pop();
            }),
        ),
        ("/events/4", broken(&|events| events.truncate(4))),
    ] {
        let refused = import(&harness, id, events).await;
        let Err(ImportError::Invalid { place: at, detail }) = &refused else { panic!("{refused:?}") };
        let near: u64 = at.rsplit('/').next().unwrap().parse().unwrap();
        let meant: u64 = place.rsplit('/').next().unwrap().parse().unwrap();
        assert!(near.abs_diff(meant) <= 3, "{at}: {detail}, not {place}");
    }
    let agents = crate::AgentFilter { limit: 9, deleted: true, ..crate::AgentFilter::default() };
    while !harness.service.list(agents.clone()).await.unwrap().items.is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn few_histories_are_taken_in_at_once() {
    let harness = harness(talker());
    let (id, _) = two_turns(&harness).await;
    let agent = harness.service.get(id).await.unwrap();
    let first = harness.service.import(imported(&agent)).await.unwrap();
    let _second = harness.service.import(imported(&agent)).await.unwrap();
    let refused = harness.service.import(imported(&agent)).await;
    assert!(matches!(refused, Err(ImportError::Refused(Refusal::TooManyImports))));
    drop(first);
    assert!(harness.service.import(imported(&agent)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_replay_says_the_same_with_the_same_timing() {
    let harness = harness(talker());
    let (id, events) = two_turns(&harness).await;
    // The clock of the tests stands still. These are the times of an agent that took two seconds for each event.
    let spread: Vec<Event> = events
        .iter()
        .map(|event| Event { at: Timestamp(1_000_000 + 2000 * event.sequence.0 as i64), ..event.clone() })
        .collect();
    let slow = import(&harness, id, spread).await.unwrap();
    let started = tokio::time::Instant::now();
    let replay = harness.service.replay(slow.id, 2.0).await.unwrap();
    assert_eq!(replay.status, AgentStatus::Initializing);
    let played = harness.watch(replay.id).await;
    assert_eq!(bodies(&played), bodies(&events));
    let steps = events.len() as u64 - 2;
    assert_eq!(started.elapsed().as_secs(), steps, "one second each, and none between the turns");
    let now = harness.service.get(replay.id).await.unwrap();
    let turns = harness.service.turns(replay.id, TurnNumber(0), 9).await.unwrap();
    let prompts: Vec<_> = turns.iter().map(|turn| (turn.number.0, &*turn.prompt, turn.state)).collect();
    let TurnState::Ended(outcome) = turns[0].state else { panic!("it has ended") };
    assert_eq!(prompts, [(1, "hi", TurnState::Ended(outcome)), (2, "and then?", TurnState::Ended(outcome))]);
    assert_eq!((now.status, now.turn), (AgentStatus::Completed, TurnNumber(2)));
    let refused = harness.service.send(replay.id, "hello?".into(), None).await;
    assert!(matches!(refused, Err(Refusal::ReadOnly)), "{refused:?}");
    assert_eq!(harness.runner.orders().len(), 2, "nothing was run");
}

/// A replay that has played two events of a history with a minute between two events: the original, the replay, and the
/// events.
async fn slow_replay(harness: &Harness) -> (AgentId, AgentId, Vec<Event>) {
    let (id, events) = two_turns(harness).await;
    let minutes = |event: &Event| Event { at: Timestamp(60_000 * event.sequence.0 as i64), ..event.clone() };
    let slow = import(harness, id, events.iter().map(minutes).collect()).await.unwrap();
    let replay = harness.service.replay(slow.id, 1.0).await.unwrap().id;
    harness.wait_for(replay, |event| event.sequence == Sequence(2)).await;
    (slow.id, replay, events)
}

#[tokio::test(start_paused = true)]
async fn a_replay_can_be_cancelled_and_its_open_message_ends() {
    let harness = harness(talker());
    let (_, replay, events) = slow_replay(&harness).await;
    harness.service.cancel(replay).await.unwrap();
    let played = words(&harness.watch(replay).await);
    assert_eq!(played[..2], words(&events)[..2]);
    assert_eq!(played[2..], ["message \"one \" from 2 cancelled", "result cancelled -"]);
}

#[tokio::test(start_paused = true)]
async fn wherever_the_server_dies_a_replay_goes_on_in_its_next_life() {
    for appends in 0.. {
        let first = harness(talker());
        let (id, events) = two_turns(&first).await;
        first.store.take_appends(Some(appends));
        let replay = first.service.replay(id, 0.0).await.unwrap().id;
        // Paused time only advances if all tasks wait.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let all_taken = !first.service.get(replay).await.unwrap().status.is_active();
        first.service.shutdown(crate::AtStop::Keep, Duration::from_mins(1)).await;
        first.store.take_appends(None);
        let next = harness_with(Arc::clone(&first.store), Arc::new(talker()), tiny_limits());
        next.service.recover().await.unwrap();
        assert_eq!(bodies(&next.watch(replay).await), bodies(&events), "after {appends} appends");
        if all_taken {
            assert!(2 < appends, "it takes several");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_whose_original_is_purged_fails() {
    let harness = harness(talker());
    let (slow, replay, _) = slow_replay(&harness).await;
    harness.service.delete(slow, Deletion::Purge).await.unwrap();
    let played = words(&harness.watch(replay).await);
    assert_eq!(played.last().unwrap(), "result failed replay_original_gone");
}

#[tokio::test]
async fn only_a_whole_history_is_copied() {
    let harness = harness(ScriptedRunner::new([vec![Step::line("say one "), Step::Hang]]));
    let id = harness.launch("hi").await;
    harness.wait_for(id, |event| event.sequence == Sequence(2)).await;
    assert!(matches!(harness.service.ended(id).await, Err(Refusal::Active)));
    assert!(matches!(harness.service.replay(id, 1.0).await, Err(Refusal::Active)));
    harness.service.cancel(id).await.unwrap();
    harness.watch(id).await;
    assert!(harness.service.ended(id).await.is_ok());
}

async fn reparse(harness: &Harness, id: AgentId, apply: bool) -> (Reparsed, Vec<Finding>) {
    let findings = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&findings);
    let mut tell = move |finding| tell.lock().unwrap().push(finding);
    let reparsed = harness.service.reparse(id, apply, &mut tell).await.unwrap();
    let findings = findings.lock().unwrap().clone();
    (reparsed, findings)
}

#[tokio::test]
async fn reading_the_lines_again_finds_what_is_stored() {
    let scripts: [&[&str]; 6] = [
        &["quiet", "say one ", "say two", "end", "note status", "close done"],
        &["say cut"],
        &["say one", "retry", "say again", "end", "fail too much to do"],
        &["tool Bash", "returned ok", "say x", "close a", "next", "say y", "end", "close b"],
        &["close a", "bare", "say y", "end", "close b"],
        &["close a", "twice b", "say z", "end", "close c"],
    ];
    for script in scripts {
        let harness = harness(ScriptedRunner::new([lines(script)]));
        let id = harness.launch("hi").await;
        let events = harness.watch(id).await;
        let (reparsed, findings) = reparse(&harness, id, false).await;
        assert_eq!(findings, [], "{script:?} {:?}", words(&events));
        assert_eq!((reparsed.events, reparsed.changed), (events.len() as u64, 0));
    }
}

/// Stores other bodies for the events of an ended agent, as an older parser would have.
async fn spoil(harness: &Harness, id: AgentId, spoil: impl Fn(&mut EventBody)) -> Vec<Event> {
    let good = harness.watch(id).await;
    for event in &good {
        let mut old = event.clone();
        spoil(&mut old.body);
        harness.store.rewrite(id, Arc::from([old])).await.unwrap();
    }
    good
}

#[tokio::test]
async fn what_an_older_parser_has_said_is_shown_and_then_written_anew() {
    let harness = harness(talker());
    let id = harness.launch("hi").await;
    let good = spoil(&harness, id, |body| match body {
        EventBody::TextDelta { text, .. } => text.push('?'),
        EventBody::Notice(notice) => notice.subtype = "old".into(),
        _ => {}
    })
    .await;
    let (dry, findings) = reparse(&harness, id, false).await;
    assert_eq!((dry.changed, dry.refused, findings.len()), (3, 0, 3));
    let stored = harness.store.saved(id);
    assert_ne!(stored, good, "a look changes nothing");
    let Finding::Changed { stored: old, parsed } = &findings[0] else { panic!("{findings:?}") };
    assert_eq!(words(&[(**old).clone(), (**parsed).clone()]), ["+one ?", "+one "]);

    assert_eq!(reparse(&harness, id, true).await.0.changed, 3);
    assert_eq!(harness.store.saved(id), good, "numbers, times and lines as they were");
    assert_eq!(
        reparse(&harness, id, true).await.0,
        Reparsed { events: good.len() as u64, ..Reparsed::default() }
    );
}

/// An import of an agent that has ended, with other events and turns.
async fn copy_with(harness: &Harness, of: AgentId, turns: Vec<Turn>, events: Vec<Event>) -> AgentId {
    let agent = harness.service.get(of).await.unwrap();
    let mut import = harness.service.import(imported(&agent)).await.unwrap();
    import.turns(turns.into_iter().map(tokenrail_ports::NewTurn::from).collect()).await.unwrap();
    import.events(events).await.unwrap();
    import.finish().await.unwrap().id
}

#[tokio::test]
async fn reparsing_keeps_the_notices_of_events_that_a_failover_has_lost() {
    let harness = harness(talker());
    let id = harness.launch("hi").await;
    let mut events = harness.watch(id).await;
    let mut turns = harness.service.turns(id, TurnNumber(0), 9).await.unwrap();
    // They stand where the server has resumed the turn, and before the message of a turn.
    for at in [2, 0] {
        let lost = Notice { subtype: EVENTS_LOST.into(), data: JsonText::new_unchecked("{}") };
        let lost = EventBody::Notice(Box::new(lost));
        let notice = Event { body: lost, raw: None, ..events[at].clone() };
        events.insert(at, notice);
    }
    for (number, event) in (1..).zip(&mut events) {
        event.sequence = Sequence(number);
        if let EventBody::Message(message) = &mut event.body {
            message.first_sequence = message.first_sequence.map(Sequence::next);
        }
    }
    turns[0].last_sequence = Some(Sequence(events.len() as u64));
    let copy = copy_with(&harness, id, turns, events.clone()).await;

    let (reparsed, findings) = reparse(&harness, copy, true).await;
    assert_eq!(findings, []);
    assert_eq!((reparsed.events, reparsed.changed), (events.len() as u64, 0));
    assert_eq!(harness.store.saved(copy), events);
}

#[tokio::test]
async fn a_turn_whose_numbers_would_mean_something_else_stays_as_it_is() {
    let harness = harness(talker());
    let (id, _) = two_turns(&harness).await;
    let mut old = harness.store.saved(id);
    // The older parser did not display the second delta of turn 2, and misspelled the first one of turn 1.
    let second = old.iter().rposition(|event| matches!(event.body, EventBody::TextDelta { .. })).unwrap();
    let EventBody::TextDelta { text, .. } = &mut old[1].body else { panic!("a delta") };
    text.push('?');
    let gone = old.remove(second);
    old[second].raw = Some([gone.raw.unwrap(), old[second].raw.clone().unwrap()].join(&b"\n"[..]).into());
    for event in &mut old[second..] {
        event.sequence.0 -= 1;
    }
    let mut turns = harness.service.turns(id, TurnNumber(0), 9).await.unwrap();
    turns[1].last_sequence = turns[1].last_sequence.map(|last| Sequence(last.0 - 1));
    let copy = copy_with(&harness, id, turns, old.clone()).await;

    let (reparsed, findings) = reparse(&harness, copy, true).await;
    assert_eq!((reparsed.changed, reparsed.refused), (1, 1), "{findings:?}");
    assert!(matches!(&findings[1], Finding::Refused { turn: TurnNumber(2), .. }), "{findings:?}");
    let EventBody::TextDelta { text, .. } = &mut old[1].body else { panic!("a delta") };
    text.pop();
    assert_eq!(harness.store.saved(copy), old, "turn 1 is written, turn 2 is not");
}
