//! Appending and reading.

use std::sync::Arc;

use bytes::Bytes;
use tokenrail_domain::{Sequence, TurnNumber, TurnOutcome, TurnState};

use super::{agent_now, everything, launched, numbers, running, saved};
use crate::testing::samples::{Scribe, queued_turn};
use crate::testing::samples::{WHOLE, error, every_body, launch, notice, page_of, result, text_delta};
use crate::{Append, IAgentRepository, IJournal, PageLimit, StoreError, TurnStep};

pub async fn events_are_numbered_without_a_hole<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    for batch in [1, 3, 2] {
        saved(store, scribe.say(vec![text_delta(0, "a"); batch])).await;
    }
    assert_eq!(numbers(&everything(store, agent.id).await), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(agent_now(store, agent.id).await.head, Sequence(7));
}

pub async fn a_conflict_burns_no_number<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let mut ahead = scribe.clone();
    ahead.say(vec![text_delta(0, "never saved")]);
    let refused = store.append(ahead.say(vec![text_delta(0, "too far")])).await;
    assert!(matches!(refused, Err(StoreError::Conflict { head: Sequence(1) })), "{refused:?}");
    saved(store, scribe.say(vec![text_delta(0, "a")])).await;
    assert_eq!(numbers(&everything(store, agent.id).await), [1, 2]);
}

pub async fn the_same_append_again_changes_nothing<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn, mut scribe) = launched(store, 1).await;
    let appends = [
        scribe.start(&turn),
        scribe.say(every_body()),
        scribe.say(vec![text_delta(2, "a")]),
        scribe.end(TurnOutcome::Completed),
    ];
    for append in &appends {
        store.append(append.clone()).await.unwrap();
        let before = (agent_now(store, agent.id).await, everything(store, agent.id).await);
        store.append(append.clone()).await.unwrap();
        assert_eq!(before, (agent_now(store, agent.id).await, everything(store, agent.id).await));
    }
    while store.compact_next().await.unwrap() {}
    for append in appends {
        store.append(append).await.unwrap();
    }
    assert_eq!(agent_now(store, agent.id).await.status.as_str(), "completed");
}

pub async fn other_events_under_the_same_numbers_are_a_conflict<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let twin = scribe.rehearse(vec![text_delta(0, "a"), text_delta(0, "another")]);
    let long = scribe.rehearse(vec![text_delta(0, "a"), text_delta(0, "b"), text_delta(0, "c")]);
    let before = saved(store, scribe.say(vec![text_delta(0, "a"), text_delta(0, "b")])).await;
    let mut raw = before.clone();
    raw[1].raw = Some(Bytes::from_static(b"other bytes"));
    for events in [&twin.events, &long.events, &Arc::from(raw)] {
        let append = Append { events: events.clone(), ..twin.clone() };
        let refused = store.append(append).await;
        assert!(matches!(refused, Err(StoreError::Conflict { head: Sequence(3) })), "{refused:?}");
    }
    assert_eq!(everything(store, agent.id).await[1..], before);
}

pub async fn an_append_that_breaks_its_form_is_refused<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let good = scribe.rehearse(vec![notice("a"), notice("b")]);
    let mut hole = good.events.to_vec();
    hole[1].sequence = Sequence(9);
    let mut turns = good.events.to_vec();
    turns[1].turn = TurnNumber(2);
    let end = scribe.end(TurnOutcome::Completed);
    let after_the_end = {
        let mut events = end.events.to_vec();
        let mut more = good.events[1].clone();
        more.sequence = Sequence(3);
        events.push(more);
        events
    };
    let broken = [
        Append { events: Arc::from([]), ..good.clone() },
        Append { events: Arc::from(hole), ..good.clone() },
        Append { events: Arc::from(turns), ..good.clone() },
        Append { events: Arc::from(after_the_end), ..end.clone() },
        Append { step: TurnStep::End, ..good },
        Append { step: TurnStep::Continue, ..end },
    ];
    for append in broken {
        let refused = store.append(append.clone()).await;
        assert!(matches!(refused, Err(StoreError::Conflict { head: Sequence(1) })), "{append:?} {refused:?}");
    }
    assert_eq!(numbers(&everything(store, agent.id).await), [1]);
}

pub async fn a_message_is_completed_once<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![text_delta(0, "a")])).await;
    let complete = scribe.complete(0);
    let twice = store.append(scribe.rehearse(vec![complete.clone(), notice("n"), complete.clone()])).await;
    assert!(matches!(twice, Err(StoreError::Conflict { head: Sequence(2) })), "{twice:?}");
    saved(store, scribe.say(vec![complete.clone()])).await;
    let again = store.append(scribe.rehearse(vec![notice("n"), complete])).await;
    assert!(matches!(again, Err(StoreError::Conflict { head: Sequence(3) })), "{again:?}");
    saved(store, scribe.say(vec![notice("n")])).await;
    assert_eq!(numbers(&everything(store, agent.id).await), [1, 2, 3, 4]);
}

pub async fn an_unknown_agent_has_no_journal<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn) = launch(1);
    let append = Scribe::new(&agent).start(&turn);
    assert!(matches!(store.append(append).await, Err(StoreError::UnknownAgent(id)) if id == agent.id));
    let read = store.read(agent.id, Sequence::START, WHOLE).await;
    assert!(matches!(read, Err(StoreError::UnknownAgent(id)) if id == agent.id));
    let messages = store.messages(agent.id, Sequence::START, WHOLE).await;
    assert!(matches!(messages, Err(StoreError::UnknownAgent(id)) if id == agent.id));
    assert_eq!(store.get(agent.id).await.unwrap(), None);
}

pub async fn every_kind_of_event_comes_back_as_it_was<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn, mut scribe) = launched(store, 1).await;
    let mut expected = saved(store, scribe.start(&turn)).await;
    expected.extend(saved(store, scribe.say(every_body())).await);
    let mut failed = result(TurnOutcome::Failed);
    failed.error = Some(error());
    failed.origin = Some("task".into());
    expected.extend(saved(store, scribe.end_with(failed)).await);

    let next = queued_turn(agent.id, TurnNumber(2), "again");
    expected.extend(saved(store, scribe.start(&next)).await);
    let mut bare = result(TurnOutcome::Interrupted);
    (bare.num_turns, bare.cost_usd, bare.usage) = (None, None, None);
    expected.extend(saved(store, scribe.end_with(bare)).await);

    assert_eq!(everything(store, agent.id).await, expected);
    let shown = store.messages(agent.id, Sequence::START, WHOLE).await.unwrap().events;
    expected.retain(|event| !event.body.is_delta());
    assert_eq!(shown, expected);
}

pub async fn a_read_from_any_cursor_is_a_run_of_consecutive_events<S: IJournal + IAgentRepository>(
    store: &S,
) {
    let (agent, mut scribe) = running(store, 1).await;
    for batch in [2, 1, 4, 1] {
        saved(store, scribe.say(vec![text_delta(0, "word"); batch])).await;
    }
    let all = everything(store, agent.id).await;
    for after in 0..=9 {
        for limit in 1..=10 {
            let page = store.read(agent.id, Sequence(after as u64), page_of(limit)).await.unwrap();
            assert_eq!(page, all[after..all.len().min(after + limit)], "{limit} after {after}");
        }
    }
    assert_eq!(store.read(agent.id, Sequence(400), WHOLE).await.unwrap(), []);
}

pub async fn bytes_limit_a_read_but_never_to_nothing<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let long = "x".repeat(10_000);
    saved(store, scribe.say(vec![text_delta(0, &long); 6])).await;
    let page = |bytes| {
        let limit = PageLimit { events: 100, bytes };
        async move { numbers(&store.read(agent.id, Sequence(1), limit).await.unwrap()) }
    };
    assert_eq!(page(0).await, [2]);
    assert_eq!(page(35_000).await, [2, 3, 4], "three fit, a fourth does not");
    assert_eq!(page(usize::MAX).await.len(), 6);
}

/// Everything that a compaction must not change: pages from any cursor, messages, and the turn's state.
pub async fn a_long_turn_reads_the_same_before_and_after_compaction<S: IJournal + IAgentRepository>(
    store: &S,
) {
    let (agent, mut scribe) = running(store, 1).await;
    for word in 0..300 {
        saved(store, scribe.say(vec![text_delta(0, &format!("word {word} ")); 3])).await;
    }
    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let next = queued_turn(agent.id, TurnNumber(2), "more");
    saved(store, scribe.start(&next)).await;
    saved(store, scribe.say(vec![text_delta(0, "open")])).await;

    let before = look(store, &agent.id).await;
    let mut rounds = 0;
    while store.compact_next().await.unwrap() {
        rounds += 1;
        assert!(rounds < 50, "compaction comes to an end");
        assert_eq!(look(store, &agent.id).await, before);
    }
    assert_eq!(look(store, &agent.id).await, before);
    assert_eq!(store.open_turns(agent.id).await.unwrap()[0].state, TurnState::Running);
    saved(store, scribe.end(TurnOutcome::Completed)).await;
}

async fn look<S: IJournal>(
    store: &S,
    agent: &tokenrail_domain::AgentId,
) -> impl PartialEq + std::fmt::Debug + use<S> {
    let mut pages = Vec::new();
    for after in (0..910).step_by(97) {
        pages.push(store.read(*agent, Sequence(after), page_of(50)).await.unwrap());
    }
    let messages = store.messages(*agent, Sequence::START, WHOLE).await.unwrap();
    (everything(store, *agent).await, pages, messages)
}
