use std::convert::Infallible;

use tokenrail_domain::{AgentStatus, Sequence, TurnNumber, TurnOutcome};

use super::*;
use crate::testing::samples::{Scribe, launch, notice, queued_turn, text_delta};

/// The state of a journal with five events.
fn state(status: AgentStatus, turn: u32, running: bool) -> JournalState {
    JournalState { status, head: Sequence(5), turn: TurnNumber(turn), running, epoch: Epoch::FIRST }
}

const IDLE: fn() -> JournalState = || state(AgentStatus::Completed, 1, false);
const WAITING: fn() -> JournalState = || state(AgentStatus::Initializing, 1, false);
const RUNNING: fn() -> JournalState = || state(AgentStatus::Running, 1, true);

/// A scribe whose next event has number 6, in that turn.
fn scribe(turn: u32) -> Scribe {
    let (agent, _) = launch(1);
    let mut scribe = Scribe::new(&agent).at_turn(TurnNumber(turn));
    scribe.say(vec![notice("a"); 5]);
    scribe
}

fn start(turn: u32) -> Append {
    let (agent, _) = launch(1);
    scribe(turn).start(&queued_turn(agent.id, TurnNumber(turn), "go on"))
}

fn more(turn: u32) -> Append {
    scribe(turn).say(vec![text_delta(0, "a"), text_delta(0, "b")])
}

fn end(turn: u32) -> Append {
    scribe(turn).end(TurnOutcome::Failed)
}

/// Checks the state after the append, or that it is refused if `after` is `None`. `phase` is that of the turn before.
#[track_caller]
fn check(before: JournalState, append: &Append, phase: Option<TurnPhase>, after: Option<JournalState>) {
    assert!(is_well_formed(append));
    let admission = before.admit(append, |_| Ok::<_, Infallible>(phase)).unwrap();
    let found = match admission {
        AppendDecision::Write(new) => Some(new.after),
        AppendDecision::Compare { .. } | AppendDecision::Refuse => None,
    };
    assert_eq!(found, after, "{admission:?}");
}

fn after(status: AgentStatus, head: u64, turn: u32, running: bool) -> JournalState {
    JournalState { status, head: Sequence(head), turn: TurnNumber(turn), running, epoch: Epoch::FIRST }
}

#[test]
fn a_turn_starts_if_it_waits_or_is_new_and_none_runs() {
    let begun = Some(after(AgentStatus::Running, 6, 2, true));
    check(WAITING(), &start(2), Some(TurnPhase::Queued), begun);
    check(IDLE(), &start(2), None, begun);
    check(RUNNING(), &start(2), Some(TurnPhase::Queued), None);
    check(WAITING(), &start(1), Some(TurnPhase::Ended), None);
    check(WAITING(), &start(1), Some(TurnPhase::Running), None);
}

#[test]
fn only_the_turn_that_runs_goes_on() {
    check(RUNNING(), &more(1), None, Some(after(AgentStatus::Running, 7, 1, true)));
    check(RUNNING(), &more(2), None, None);
    check(IDLE(), &more(1), None, None);
    let unasked = |_| -> Result<Option<TurnPhase>, ()> { Err(()) };
    assert!(RUNNING().admit(&more(1), unasked).is_ok(), "the journal's state is enough");
}

#[test]
fn a_turn_ends_if_it_runs_or_could_not_start() {
    check(RUNNING(), &end(1), Some(TurnPhase::Running), Some(after(AgentStatus::Failed, 6, 1, false)));
    check(WAITING(), &end(2), Some(TurnPhase::Queued), Some(after(AgentStatus::Failed, 6, 1, false)));
    check(RUNNING(), &end(2), Some(TurnPhase::Queued), None);
    check(IDLE(), &end(1), Some(TurnPhase::Ended), None);
    check(WAITING(), &end(2), None, None);
}

#[test]
fn what_does_not_follow_the_head_is_compared_or_refused() {
    let append = more(1);
    let admission = |head: u64| {
        let state = JournalState { head: Sequence(head), ..RUNNING() };
        state.admit(&append, |_| Ok::<_, Infallible>(None)).unwrap()
    };
    assert_eq!(admission(4), AppendDecision::Refuse, "a hole");
    assert_eq!(admission(6), AppendDecision::Refuse, "half of it is there");
    for head in [7, 8] {
        assert_eq!(admission(head), AppendDecision::Compare { first: Sequence(6), last: Sequence(7) });
    }
}

#[test]
fn an_append_of_another_ownership_is_fenced_unless_it_was_saved_before() {
    for epoch in [Epoch(0), Epoch(2)] {
        let append = Append { epoch, ..more(1) };
        check(RUNNING(), &append, None, None);
        assert!(matches!(RUNNING().refusal(&append), StoreError::Fenced));
        let state = JournalState { head: Sequence(7), ..RUNNING() };
        let decision = state.admit(&append, |_| Ok::<_, Infallible>(None)).unwrap();
        assert_eq!(decision, AppendDecision::Compare { first: Sequence(6), last: Sequence(7) });
    }
    assert!(matches!(RUNNING().refusal(&more(1)), StoreError::Conflict { head: Sequence(5) }));
}

#[test]
fn a_broken_form_is_noticed() {
    let well_formed = more(1);
    let with = |change: fn(&mut Vec<Event>)| {
        let mut events = well_formed.events.to_vec();
        change(&mut events);
        Append { events: events.into(), ..well_formed.clone() }
    };
    for broken in [
        with(Vec::clear),
        with(|events| events[1].sequence = Sequence(9)),
        with(|events| events[1].turn = TurnNumber(9)),
        Append { step: TurnStep::End, ..well_formed.clone() },
        Append { step: TurnStep::Continue, ..end(1) },
        Append { step: start(2).step, ..well_formed.clone() },
    ] {
        assert!(!is_well_formed(&broken), "{broken:?}");
    }
}

#[test]
fn an_agent_that_has_ended_begins_again_if_a_turn_waits() {
    assert!(begins_again(AgentStatus::Failed, 1));
    assert!(!begins_again(AgentStatus::Failed, 0));
    assert!(!begins_again(AgentStatus::Running, 1) && !begins_again(AgentStatus::Initializing, 1));
}
