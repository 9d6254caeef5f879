//! What a user sees of a journal.

use tokenrail_domain::{AgentId, EventBody, MessageOrdinal, Sequence, TurnNumber, TurnOutcome};

use super::{everything, numbers, running, saved};
use crate::testing::samples::{WHOLE, notice, page_of, queued_turn, text_delta};
use crate::{IAgentRepository, IJournal};

async fn shown(store: &impl IJournal, agent: AgentId, after: u64) -> (Vec<u64>, u64, u64) {
    let page = store.messages(agent, Sequence(after), WHOLE).await.unwrap();
    (numbers(&page.events), page.up_to.0, page.head.0)
}

pub async fn deltas_of_an_open_message_are_shown_and_then_covered<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![notice("init"), text_delta(0, "a"), text_delta(1, "b")])).await;
    saved(store, scribe.say(vec![text_delta(0, "c")])).await;
    assert_eq!(shown(store, agent.id, 0).await, (vec![1, 2, 3, 4, 5], 5, 5));
    assert_eq!(shown(store, agent.id, 3).await, (vec![4, 5], 5, 5));

    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete])).await;
    assert_eq!(shown(store, agent.id, 0).await, (vec![1, 2, 4, 6], 6, 6), "message 1 is open still");
    assert_eq!(shown(store, agent.id, 4).await, (vec![6], 6, 6));

    let complete = scribe.complete(1);
    saved(store, scribe.say(vec![complete, text_delta(2, "d")])).await;
    assert_eq!(shown(store, agent.id, 0).await, (vec![1, 2, 6, 7, 8], 8, 8));
    assert_eq!(shown(store, agent.id, 8).await, (vec![], 8, 8));
}

pub async fn an_abandoned_message_shows_none_of_its_deltas<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![text_delta(0, "a"), text_delta(1, "b")])).await;
    saved(store, scribe.say(vec![EventBody::Abandoned { message: MessageOrdinal(1) }])).await;
    assert_eq!(shown(store, agent.id, 0).await.0, [1, 2, 4]);
}

pub async fn a_message_said_again_under_its_number_shows_what_came_after<S: IJournal + IAgentRepository>(
    store: &S,
) {
    let (agent, mut scribe) = running(store, 1).await;
    // Message 0 stays open, so that the store reads the deltas of message 1.
    saved(store, scribe.say(vec![text_delta(0, "a"), text_delta(1, "first try")])).await;
    saved(store, scribe.say(vec![EventBody::Abandoned { message: MessageOrdinal(1) }])).await;
    saved(store, scribe.say(vec![text_delta(1, "second try")])).await;
    assert_eq!(shown(store, agent.id, 0).await.0, [1, 2, 4, 5]);
}

pub async fn a_page_of_messages_is_a_prefix<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![text_delta(0, "a"), text_delta(0, "b")])).await;
    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete, text_delta(1, "c"), notice("n"), text_delta(1, "d")])).await;
    let whole = store.messages(agent.id, Sequence::START, WHOLE).await.unwrap();
    assert_eq!(numbers(&whole.events), [1, 4, 5, 6, 7]);

    for limit in 1..=6 {
        let (mut after, mut seen) = (Sequence::START, Vec::new());
        loop {
            let page = store.messages(agent.id, after, page_of(limit)).await.unwrap();
            assert!(page.events.len() <= limit);
            assert_eq!(page.head, Sequence(7));
            seen.extend(page.events.iter().cloned());
            let cut = page.up_to < page.head;
            let last = page.events.last().map(|event| event.sequence);
            assert!(!cut || Some(page.up_to) == last, "a page that is cut says where");
            after = page.up_to;
            if !cut {
                break;
            }
        }
        assert_eq!(seen, whole.events, "pages of {limit}");
        assert_eq!(after, Sequence(7));
    }
}

pub async fn messages_of_two_turns_do_not_mix<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![text_delta(0, "a")])).await;
    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let next = queued_turn(agent.id, TurnNumber(2), "again");
    saved(store, scribe.start(&next)).await;
    saved(store, scribe.say(vec![text_delta(0, "b")])).await;
    assert_eq!(shown(store, agent.id, 0).await, (vec![1, 3, 4, 5, 6], 6, 6));
    assert_eq!(everything(store, agent.id).await.len(), 6);
}
