//! Lists of agents and of turns.

use tokenrail_domain::{
    Agent, AgentError, AgentStatus, CommitId, ErrorClass, EventBody, LaunchedBy, ListedAgent, LongField,
    Timestamp, Turn, TurnNumber, TurnOutcome, Usage,
};

use super::{agent_now, launched, running, saved};
use crate::testing::samples::{
    LAUNCHED_AT, WHOLE_LIST, json, launch, notice, queued_turn, result, text_delta,
};
use crate::{
    AgentFilter, Deletion, IAgentRepository, IJournal, ListBounds, TurnFilter, TurnLimit, TurnRange,
};

/// The number of this sample agent.
fn number(listed: &ListedAgent) -> i64 {
    listed.agent.created_at.0 - launch(0).0.created_at.0
}

pub async fn lists_are_newest_first_and_page<S: IJournal + IAgentRepository>(store: &S) {
    for n in [2, 4, 1, 3, 5] {
        launched(store, n).await;
    }
    let (mut filter, mut seen) = (AgentFilter { limit: 2, ..AgentFilter::default() }, Vec::new());
    loop {
        let page = store.list(filter.clone(), WHOLE_LIST).await.unwrap();
        seen.extend(page.items.iter().map(number));
        assert_eq!(page.more, page.items.len() == 2 && seen.len() < 5, "after {seen:?}");
        let Some(last) = page.items.last().filter(|_| page.more) else { break };
        filter.before = Some(last.agent.id);
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    let exactly = AgentFilter { limit: 5, ..AgentFilter::default() };
    assert!(!store.list(exactly, WHOLE_LIST).await.unwrap().more);
}

pub async fn lists_filter<S: IJournal + IAgentRepository>(store: &S) {
    launched(store, 1).await;
    running(store, 2).await;
    let (_, mut scribe) = running(store, 3).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let (mut other, turn) = launch(4);
    other.kind = "other".into();
    other.name = Some("Grace".into());
    store.create(other.clone(), turn.into(), None).await.unwrap();

    let names = |filter: AgentFilter| async move {
        let agents = store.list(AgentFilter { limit: 10, ..filter }, WHOLE_LIST).await.unwrap();
        agents.items.iter().map(number).collect::<Vec<_>>()
    };
    let active = vec![AgentStatus::Initializing, AgentStatus::Running];
    let kind = |kind: &str| AgentFilter { kind: Some(kind.into()), ..AgentFilter::default() };
    assert_eq!(names(AgentFilter { statuses: active.clone(), ..AgentFilter::default() }).await, [4, 2, 1]);
    assert_eq!(names(AgentFilter { statuses: active, ..kind("demo") }).await, [2, 1]);
    assert_eq!(names(kind("other")).await, [4]);
    assert_eq!(names(AgentFilter { before: Some(other.id), ..kind("demo") }).await, [3, 2, 1]);
    assert_eq!(names(AgentFilter { deleted: true, ..AgentFilter::default() }).await, Vec::<i64>::new());
    assert_eq!(names(kind("nobody")).await, Vec::<i64>::new());
    let called = |name: &str| AgentFilter { name: Some(name.into()), ..AgentFilter::default() };
    assert_eq!(names(called("Grace")).await, [4]);
    assert_eq!(names(called("Gra")).await, Vec::<i64>::new());
    let (first, fourth) = (Some(launch(1).0.id), Some(other.id));
    let between = AgentFilter { after: first, before: fourth, oldest_first: true, ..AgentFilter::default() };
    assert_eq!(names(between).await, [2, 3]);
}

pub async fn a_list_has_the_children_of_an_agent<S: IJournal + IAgentRepository>(store: &S) {
    let parent = launched(store, 1).await.0.id;
    launched(store, 2).await;
    for (n, by) in
        [(3, LaunchedBy { agent: parent, depth: 1 }), (4, LaunchedBy { agent: launch(3).0.id, depth: 2 })]
    {
        let (agent, turn) = launch(n);
        let child = Agent { launched_by: Some(by), ..agent };
        store.create(child.clone(), turn.into(), None).await.unwrap();
        assert_eq!(agent_now(store, child.id).await.launched_by, Some(by));
        let statuses = vec![AgentStatus::Initializing, AgentStatus::Running];
        let children =
            AgentFilter { launched_by: Some(by.agent), limit: 9, statuses, ..AgentFilter::default() };
        let found = store.list(children.clone(), WHOLE_LIST).await.unwrap();
        assert_eq!(found.items.iter().map(|listed| listed.agent.id).collect::<Vec<_>>(), [child.id]);
        let ended = AgentFilter { statuses: vec![AgentStatus::Completed], ..children };
        assert!(store.list(ended, WHOLE_LIST).await.unwrap().items.is_empty());
    }
}

/// An agent whose fields are all long, and whose texts have characters of several bytes.
fn long(n: u8, bytes: usize) -> (Agent, Turn) {
    let (agent, turn) = launch(n);
    let text = |first: &str| format!("{first}{}", "€".repeat(bytes / 3));
    let object = json(&format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes)));
    let agent = Agent {
        name: Some(text("n")),
        prompt: text("p"),
        model: Some(text("mm")),
        cwd: text("c"),
        chat: Some(text("chat")),
        session: Some(text("s")),
        metadata: Some(object.clone()),
        options: Some(object),
        ..agent
    };
    let turn = Turn { prompt: agent.prompt.clone(), ..turn };
    (agent, turn)
}

pub async fn a_list_shows_the_beginning_of_long_fields<S: IJournal + IAgentRepository>(store: &S) {
    use LongField::{Chat, Cwd, Metadata, Model, Name, Options, Prompt, Session};

    let (agent, turn) = long(1, 9_000);
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    launched(store, 2).await;
    let bounds = ListBounds { field_bytes: 100, ..WHOLE_LIST };
    let filter = AgentFilter { limit: 9, ..AgentFilter::default() };
    let page = store.list(filter.clone(), bounds).await.unwrap();
    let [short, listed] = page.items.as_slice() else { panic!("{page:?}") };
    assert_eq!((short.agent.prompt.as_str(), &short.truncated), ("count to three", &vec![]));
    assert_eq!(listed.truncated, [Name, Prompt, Model, Cwd, Chat, Session, Metadata, Options]);
    assert_eq!(listed.agent.prompt, format!("p{}", "€".repeat(33)), "100 bytes");
    assert_eq!(listed.agent.name, Some(format!("n{}", "€".repeat(33))));
    assert_eq!(listed.agent.model, Some(format!("mm{}", "€".repeat(32))), "98 bytes: no half of a character");
    assert_eq!((&listed.agent.chat, &listed.agent.session), (&None, &None));
    assert_eq!((&listed.agent.metadata, &listed.agent.options), (&None, &None));
    assert_eq!(agent_now(store, agent.id).await.prompt, agent.prompt, "the agent has all of it");

    for field_bytes in [0, 1, 2, 3, 4, 5, 8_999, 9_000, 9_001, 9_002, usize::MAX] {
        let page = store.list(filter.clone(), ListBounds { field_bytes, ..WHOLE_LIST }).await.unwrap();
        let as_it_is = store.get(agent.id).await.unwrap().unwrap();
        assert_eq!(page.items[1], ListedAgent::new(as_it_is, field_bytes), "{field_bytes} bytes");
    }
    let open = store.with_open_turns(1).await.unwrap();
    assert_eq!((open[0].agent.id, open[0].agent.prompt.as_str()), (agent.id, "p"));
}

pub async fn the_error_and_usage_of_a_listed_agent_are_cut_too<S: IJournal + IAgentRepository>(store: &S) {
    let (_, mut scribe) = running(store, 1).await;
    let error = AgentError {
        class: ErrorClass::Process,
        code: None,
        text: "€".repeat(1_000),
        retry_after_ms: None,
        recoverable: false,
    };
    let usage = json(&format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000)));
    let failed = tokenrail_domain::TurnResult {
        error: Some(error),
        usage: Some(usage),
        ..result(TurnOutcome::Failed)
    };
    saved(store, scribe.end_with(failed)).await;
    let bounds = ListBounds { field_bytes: 10, ..WHOLE_LIST };
    let filter = AgentFilter { limit: 9, ..AgentFilter::default() };
    let listed = store.list(filter, bounds).await.unwrap().items.remove(0);
    assert_eq!(listed.agent.error.unwrap().text, "€€€");
    assert_eq!(listed.agent.usage, None);
    assert!([LongField::Error, LongField::Usage].iter().all(|field| listed.truncated.contains(field)));
}

pub async fn a_list_has_a_bound_in_bytes<S: IJournal + IAgentRepository>(store: &S) {
    let mut behind = TurnNumber(0);
    for n in 1..=6 {
        let (agent, turn) = long(n, 30_000);
        let agent = Agent { chat: None, ..agent };
        store.create(agent.clone(), turn.into(), None).await.unwrap();
        let again = Turn { prompt: agent.prompt.clone(), ..queued_turn(launch(1).0.id, TurnNumber(0), "") };
        store.enqueue(again.into(), 16, None).await.unwrap();
        behind = behind.next();
    }
    let bounds = ListBounds { bytes: 20_000, field_bytes: 1_500 };
    let mut filter = AgentFilter { limit: 100, ..AgentFilter::default() };
    let mut seen = Vec::new();
    loop {
        let page = store.list(filter.clone(), bounds).await.unwrap();
        let bytes: usize = page.items.iter().map(ListedAgent::bytes).sum();
        assert!(bytes <= 20_000 && page.items.len() < 6, "{bytes} bytes");
        seen.extend(page.items.iter().map(number));
        let Some(last) = page.items.last().filter(|_| page.more) else { break };
        filter.before = Some(last.agent.id);
    }
    assert_eq!(seen, [6, 5, 4, 3, 2, 1], "each is listed once");

    let id = launch(1).0.id;
    let tiny = ListBounds { bytes: 1, field_bytes: 10 };
    let filter = TurnFilter { limit: 9, ..TurnFilter::default() };
    assert_eq!(store.all_turns(filter, tiny).await.unwrap().items.len(), 1, "never nothing");
    let mut range = TurnRange { limit: 100, ..TurnRange::default() };
    let mut numbers = Vec::new();
    loop {
        let page =
            store.list_turns(id, range, ListBounds { bytes: 4_000, field_bytes: 1_000 }).await.unwrap();
        assert!(page.items.iter().all(|listed| listed.truncated && listed.turn.prompt.len() <= 1_000));
        assert!(page.items.len() <= 4);
        numbers.extend(page.items.iter().map(|listed| listed.turn.number.0));
        let Some(last) = page.items.last().filter(|_| page.more) else { break };
        range.after = last.turn.number;
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    let whole = store.turns(id, TurnNumber(0), TurnLimit { turns: 100, bytes: 70_000 }).await.unwrap();
    assert_eq!(whole.iter().map(|turn| turn.prompt.len()).collect::<Vec<_>>(), [30_001; 2], "whole ones");
}

pub async fn turns_of_an_agent_are_listed_from_either_end<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, ..) = launched(store, 1).await;
    for _ in 0..4 {
        store.enqueue(queued_turn(agent.id, TurnNumber(0), "x").into(), 16, None).await.unwrap();
    }
    store.delete(agent.id, Timestamp(1), Deletion::KeepHistory).await.unwrap();
    let list = async |range: TurnRange| -> Vec<u32> {
        let page = store.list_turns(agent.id, range, WHOLE_LIST).await.unwrap();
        page.items.iter().map(|listed| listed.turn.number.0).collect()
    };
    let all = TurnRange { limit: 9, ..TurnRange::default() };
    assert_eq!(list(all).await, [1, 2, 3, 4, 5], "of a deleted agent too");
    assert_eq!(list(TurnRange { newest_first: true, limit: 2, ..all }).await, [5, 4]);
    let before = Some(TurnNumber(4));
    assert_eq!(list(TurnRange { newest_first: true, before, after: TurnNumber(1), ..all }).await, [3, 2]);
    assert_eq!(list(TurnRange { after: TurnNumber(u32::MAX), ..all }).await, Vec::<u32>::new());
    assert_eq!(list(TurnRange { with_base: true, ..all }).await, Vec::<u32>::new());
}

pub async fn the_first_turn_with_a_commit_is_found<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, turn, mut scribe) = launched(store, 1).await;
    saved(store, scribe.start(&turn)).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let base = CommitId::new("0123456789abcdef0123456789abcdef01234567");
    for number in [2, 3].map(TurnNumber) {
        store.enqueue(queued_turn(agent.id, TurnNumber(0), "x").into(), 16, None).await.unwrap();
        let turn = Turn { base: base.clone(), ..queued_turn(agent.id, number, "x") };
        saved(store, scribe.start(&turn)).await;
        saved(store, scribe.end(TurnOutcome::Completed)).await;
    }
    let range = TurnRange { with_base: true, limit: 1, ..TurnRange::default() };
    let page = store.list_turns(agent.id, range, WHOLE_LIST).await.unwrap();
    let turn = &page.items[0].turn;
    assert_eq!((turn.number, &turn.base, page.more), (TurnNumber(2), &base, true));
    let range = TurnRange { after: TurnNumber(2), limit: 9, ..range };
    let page = store.list_turns(agent.id, range, WHOLE_LIST).await.unwrap();
    assert_eq!(page.items.iter().map(|listed| listed.turn.number.0).collect::<Vec<_>>(), [3]);
}

/// The last reason counts, if it was reported near the end.
pub async fn a_listed_turn_says_how_it_has_ended<S: IJournal + IAgentRepository>(store: &S) {
    let usage = |reason: Option<&str>| {
        let stop_reason = reason.map(str::to_owned);
        EventBody::Usage(Box::new(Usage { stop_reason, usage: json("{}") }))
    };
    let far = (0..crate::STOP_REASON_EVENTS).map(|_| notice("far")).collect::<Vec<_>>();
    let stories = [
        (vec![], None),
        (
            vec![usage(Some("tool_use")), text_delta(0, "a"), usage(Some("max_tokens")), usage(None)],
            Some("max_tokens"),
        ),
        ([vec![usage(Some("refusal"))], far].concat(), None),
    ];
    for (n, (said, reason)) in (1..).zip(stories) {
        let (agent, mut scribe) = running(store, n).await;
        if !said.is_empty() {
            saved(store, scribe.say(said)).await;
        }
        let range = TurnRange { limit: 1, ..TurnRange::default() };
        let listed = store.list_turns(agent.id, range, WHOLE_LIST).await.unwrap().items.remove(0);
        assert_eq!((listed.ended_at, listed.stop_reason), (None, None), "it runs");
        let end = saved(store, scribe.end(TurnOutcome::Completed)).await;
        let listed = store.list_turns(agent.id, range, WHOLE_LIST).await.unwrap().items.remove(0);
        assert_eq!(listed.ended_at, end.last().map(|event| event.at));
        assert_eq!(listed.stop_reason.as_deref(), reason);
        let filter = TurnFilter { limit: 1, ..TurnFilter::default() };
        assert_eq!(store.all_turns(filter, WHOLE_LIST).await.unwrap().items, [listed]);
    }
}

pub async fn turns_of_all_agents_are_listed_as_they_were_saved<S: IJournal + IAgentRepository>(store: &S) {
    let (one, mut scribe) = running(store, 1).await;
    let two = launched(store, 2).await.0.id;
    let later = Turn { asked_at: Timestamp(LAUNCHED_AT.0 + 600), ..queued_turn(one.id, TurnNumber(0), "x") };
    store.enqueue(later.into(), 2, None).await.unwrap();
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let gone = launched(store, 3).await.0.id;
    store.delete(gone, Timestamp(LAUNCHED_AT.0 + 700), Deletion::KeepHistory).await.unwrap();
    let list = async |filter: TurnFilter| -> Vec<_> {
        let filter = TurnFilter { limit: filter.limit.max(1), ..filter };
        let turns = store.all_turns(filter, WHOLE_LIST).await.unwrap().items;
        turns.into_iter().map(|listed| (listed.turn.agent, listed.turn.number.0)).collect()
    };
    let all = TurnFilter { limit: 9, ..TurnFilter::default() };
    let (first, second, third) = ((one.id, 1), (two, 1), (one.id, 2));
    assert_eq!(list(all.clone()).await, [third, second, first], "not those of a deleted agent");
    assert_eq!(list(TurnFilter { oldest_first: true, ..all.clone() }).await, [first, second, third]);
    assert_eq!(list(TurnFilter { limit: 2, ..all.clone() }).await, [third, second]);
    assert_eq!(list(TurnFilter { agents: vec![one.id, gone], ..all.clone() }).await, [third, first]);
    assert_eq!(list(TurnFilter { open: true, ..all.clone() }).await, [third, second], "they wait");
    let behind = |agent, number| Some((agent, TurnNumber(number)));
    assert_eq!(list(TurnFilter { behind: behind(one.id, 2), ..all.clone() }).await, [second, first]);
    let up = TurnFilter { behind: behind(one.id, 1), oldest_first: true, limit: 1, ..all.clone() };
    assert_eq!(list(up).await, [second]);
    let only = TurnFilter { agents: vec![one.id], behind: behind(two, 1), ..all.clone() };
    assert_eq!(list(only).await, [first], "behind a turn of another agent");
    assert_eq!(list(TurnFilter { behind: behind(two, 9), ..all }).await, [], "no such turn");
    let of_two = TurnFilter { agents: vec![two], limit: 9, ..TurnFilter::default() };
    let listed = store.all_turns(of_two, WHOLE_LIST).await.unwrap().items;
    let turns: Vec<_> = listed.into_iter().map(|listed| listed.turn).collect();
    assert_eq!(
        turns,
        store.turns(two, TurnNumber(0), TurnLimit { turns: 9, bytes: usize::MAX }).await.unwrap(),
        "the whole turn"
    );
}
