//! Entries of every kind of turn, and their pages.

use tokenrail_domain::{
    AgentError, Event, EventBody, JsonText, MessageOrdinal, Sequence, ToolCall, TurnNumber, TurnOutcome,
};
use tokenrail_ports::testing::samples::{self, Scribe};

use super::EntryPage;
use crate::tests::journals::{LONG, ROUNDS, STORIES, events, written};
use crate::vocabularies::mcp::dto::{AgentState, EntryDto, SaidDto};

/// The journals of all stories, and of a turn that asks its user.
fn journals() -> Vec<(&'static str, Vec<Event>)> {
    let mut journals: Vec<_> =
        STORIES.iter().chain([&LONG]).map(|(name, story)| (*name, events(&written(*story).1))).collect();
    let (agent, turn) = samples::launch(1);
    let mut scribe = Scribe::new(&agent);
    let asked = vec![
        samples::permission_request("q1", Some("c1")),
        samples::settled("q1", Some("yes"), "user"),
        EventBody::Abandoned { message: MessageOrdinal(0) },
    ];
    let appends = [scribe.start(&turn), scribe.say(asked), scribe.end(TurnOutcome::Completed)];
    journals.push(("a permission request", events(&appends)));
    journals.push(("a text that comes only with the result", only_with_the_result()));
    journals.push(("a text after an abandoned one only with the result", after_an_abandoned_one()));
    journals
}

/// A turn that uses a tool, and says something only in its result. Then one that says it before, too.
fn only_with_the_result() -> Vec<Event> {
    let (agent, turn) = samples::launch(2);
    let mut scribe = Scribe::new(&agent);
    let used = EventBody::ToolCall(Box::new(ToolCall {
        call: "c1".into(),
        tool: "Bash".into(),
        input: JsonText::new_unchecked("{}"),
        parent_call: None,
    }));
    let mut appends = vec![scribe.start(&turn), scribe.say(vec![used, samples::notice("n")])];
    appends.push(scribe.end(TurnOutcome::Completed));
    let next = samples::queued_turn(agent.id, TurnNumber(2), "and then?");
    appends.extend([scribe.start(&next), scribe.say(vec![samples::text_delta(0, "All is well.")])]);
    appends.push(scribe.end(TurnOutcome::Completed));
    let mut journal = events(&appends);
    for event in &mut journal {
        if let EventBody::TurnResult(result) = &mut event.body {
            result.text = "All is well.".into();
        }
    }
    journal
}

/// A turn whose text comes with its result, after the agent has abandoned a message. Then one that says a text before
/// it abandons another.
fn after_an_abandoned_one() -> Vec<Event> {
    let (agent, turn) = samples::launch(3);
    let mut scribe = Scribe::new(&agent);
    let abandoned = |message| EventBody::Abandoned { message: MessageOrdinal(message) };
    let said = vec![samples::text_delta(0, "Hel"), samples::text_delta(0, "l"), abandoned(0)];
    let mut appends = vec![scribe.start(&turn), scribe.say(said), scribe.say(vec![samples::notice("n")])];
    appends.push(scribe.end(TurnOutcome::Completed));
    let next = samples::queued_turn(agent.id, TurnNumber(2), "and then?");
    let said = vec![samples::text_delta(0, "Hello"), samples::text_delta(1, "Hel"), abandoned(1)];
    appends.extend([scribe.start(&next), scribe.say(said), scribe.end(TurnOutcome::Completed)]);
    let mut journal = events(&appends);
    for event in &mut journal {
        if let EventBody::TurnResult(result) = &mut event.body {
            result.text = "Hello".into();
        }
    }
    journal
}

/// Reads a page, as a client that has the events up to `since`.
fn page(journal: &[Event], since: Sequence, bytes: usize) -> EntryPage {
    let mut page = EntryPage::new(since, bytes);
    for event in journal.iter().filter(|event| since < event.sequence) {
        if let Some((message, first)) = page.begun_before(event) {
            for heard in journal.iter().filter(|heard| first <= heard.sequence && heard.sequence <= since) {
                page.hear(heard, message);
            }
        }
        if page.ends_with_text(event) {
            let of_turn = |heard: &&Event| heard.turn == event.turn && heard.sequence <= since;
            journal.iter().filter(of_turn).for_each(|heard| page.hear_turn(heard));
        }
        page.event(event);
    }
    page
}

/// The same for a reader that begins with the turn.
fn page_of_turn(journal: &[Event], since: Sequence, bytes: usize) -> EntryPage {
    let mut page = EntryPage::new(since, bytes);
    for event in journal {
        page.event(event);
    }
    page
}

fn whole(journal: &[Event], since: Sequence) -> Vec<EntryDto> {
    page(journal, since, usize::MAX).into_entries()
}

/// The entries of pages that contain as little as possible: one event that says something. A text that does not fit
/// into such a page is cut there, and whole here.
fn pieces(journal: &[Event]) -> Vec<EntryDto> {
    let (head, mut since, mut pieces) = (journal.last().unwrap().sequence, Sequence::START, Vec::new());
    while since < head {
        let small = page(journal, since, 1);
        let up_to = small.up_to();
        assert!(since < up_to, "every page goes on");
        assert_eq!(small.is_full(), up_to < head);
        let read: Vec<_> = journal.iter().filter(|event| event.sequence <= up_to).cloned().collect();
        let entries = whole(&read, since);
        let numbers = |entries: &[EntryDto]| entries.iter().map(|entry| entry.seq).collect::<Vec<_>>();
        assert!(entries.len() <= 1, "{entries:?}");
        assert_eq!(numbers(&small.into_entries()), numbers(&entries));
        pieces.extend(entries);
        since = up_to;
    }
    pieces
}

/// Joins the pieces after `since` as a client does: those of a text follow each other.
fn joined(pieces: Vec<EntryDto>, since: Sequence) -> Vec<EntryDto> {
    let mut joined: Vec<EntryDto> = Vec::new();
    for piece in pieces.into_iter().filter(|piece| since.0 < piece.seq) {
        match (&piece.said, joined.last_mut()) {
            (
                SaidDto::Text { message, text },
                Some(EntryDto { seq, turn, said: SaidDto::Text { message: before, text: so_far } }),
            ) if before == message && *turn == piece.turn => {
                so_far.text.push_str(&text.text);
                *seq = piece.seq;
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[test]
fn every_kind_of_turn_has_its_entries() {
    for (name, journal) in journals().into_iter().filter(|(name, _)| *name != LONG.0) {
        let entries = whole(&journal, Sequence::START);
        let lines: Vec<_> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        insta::assert_snapshot!(name.replace([' ', '-'], "_").replace(':', ""), lines.join("\n"));
    }
}

#[test]
fn after_every_number_and_on_every_page_come_the_same_entries() {
    for (name, journal) in journals() {
        let head = journal.last().unwrap().sequence;
        for since in (0..=head.0).map(Sequence) {
            let rest = joined(pieces(&journal), since);
            assert_eq!(whole(&journal, since), rest, "{name} after {since}");
            let again = page_of_turn(&journal, since, usize::MAX);
            assert_eq!(again.into_entries(), rest, "{name} after {since}, for who waits");
        }
    }
}

#[test]
fn a_text_that_follows_an_abandoned_one_only_with_the_result_is_in_the_end_of_the_turn() {
    let journal = after_an_abandoned_one();
    for since in (0..journal.last().unwrap().sequence.0).map(Sequence) {
        let ends = whole(&journal, since).into_iter().filter_map(|entry| match entry.said {
            SaidDto::TurnEnd { text, .. } => Some((entry.turn, text)),
            _ => None,
        });
        let expected = [(1, Some("Hello".to_owned())), (2, None)];
        let ends: Vec<_> = ends.collect();
        assert_eq!(ends, expected[expected.len() - ends.len()..], "after {since}");
    }
}

#[test]
fn a_model_need_not_read_what_sub_agents_say() {
    let (_, journal) = journals().into_iter().find(|(name, _)| *name == LONG.0).unwrap();
    let entries = whole(&journal, Sequence::START);
    let lines: Vec<_> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line.contains(&format!(r#""kind":"{kind}""#))).count();
    let kinds = ["prompt", "text", "retracted", "tool_call", "tool_result", "turn_end"];
    assert_eq!(kinds.map(of), [0, 3, 1, 2, 2, 0].map(|each| each * ROUNDS as usize).map(|all| all.max(1)));
    assert!(lines.iter().all(|line| !line.contains("its own words") && !line.contains("deep_")));
}

#[test]
fn a_long_error_of_a_turn_is_cut_and_can_be_read_whole() {
    let (_, mut journal) = journals().into_iter().find(|(name, _)| *name == "error").unwrap();
    let end = journal.last_mut().unwrap();
    let EventBody::TurnResult(result) = &mut end.body else { panic!("{end:?}") };
    result.error.as_mut().unwrap().text = "x".repeat(10_000);
    let end = end.clone();
    let last = whole(&journal, Sequence::START).pop().unwrap();
    let SaidDto::TurnEnd { error: Some(error), truncated: true, .. } = last.said else { panic!("{last:?}") };
    assert_eq!(error.len(), 4096);
    assert_eq!(EntryPage::new(Sequence::START, 1).whole_text(&end).unwrap().len(), 10_000);
}

/// An agent stands in every list and result.
#[test]
fn a_long_error_of_an_agent_is_cut() {
    let mut agent = samples::launch(1).0;
    agent.error = Some(AgentError { text: "x".repeat(10_000), ..samples::error() });
    let shown = serde_json::to_value(AgentState::from(agent)).unwrap();
    assert_eq!(shown["error"], format!("{} […]", "x".repeat(4096)));
}

/// Each of them is an entry, and takes more than its text.
#[test]
fn many_short_messages_fill_a_page() {
    let (agent, turn) = samples::launch(1);
    let mut scribe = Scribe::new(&agent);
    let said = (0..1000).map(|message| samples::text_delta(message, "a")).collect();
    let journal = events(&[scribe.start(&turn), scribe.say(said)]);
    let page = page(&journal, Sequence::START, 1000);
    assert!(page.is_full() && page.len() < 20, "{} entries", page.len());
}
