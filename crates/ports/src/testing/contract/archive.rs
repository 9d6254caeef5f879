//! Whole histories: imported from outside, and rewritten.

use std::sync::Arc;

use tokenrail_domain::{
    Agent, AgentStatus, Copied, Event, EventBody, Replay, Sequence, Timestamp, Turn, TurnNumber, TurnOutcome,
    TurnState,
};

use super::{agent_now, everything, running, saved};
use crate::testing::samples::{
    WHOLE, WHOLE_LIST, every_body, json, launch, notice, queued_turn, result, text_delta,
};
use crate::{AgentFilter, IAgentRepository, IArchive, IJournal, NewTurn, StoreError, TurnLimit};

/// The result of an import: an agent with two turns.
struct History {
    agent: Agent,
    turns: Vec<Turn>,
    events: Vec<Event>,
}

impl History {
    fn new_turns(&self) -> Vec<NewTurn> {
        self.turns.iter().cloned().map(NewTurn::from).collect()
    }
}

fn history(n: u8) -> History {
    let (agent, _) = launch(n);
    let mut scribe = super::Scribe::new(&agent);
    let first = queued_turn(agent.id, TurnNumber(1), "count to three");
    let mut second = queued_turn(agent.id, TurnNumber(2), "");
    second.run = TurnNumber(1);
    let appends = [
        scribe.start(&first),
        scribe.say(every_body()),
        scribe.end(TurnOutcome::Failed),
        scribe.start(&second),
        scribe.end(TurnOutcome::Completed),
    ];
    let events: Vec<Event> = appends.iter().flat_map(|append| append.events.iter().cloned()).collect();
    let head = events.len() as u64;
    let turns = [(first, 1, head - 2, TurnOutcome::Failed), (second, head - 1, head, TurnOutcome::Completed)];
    let turns = turns.map(|(turn, first, last, outcome)| Turn {
        first_sequence: Some(Sequence(first)),
        last_sequence: Some(Sequence(last)),
        state: TurnState::Ended(outcome),
        ..turn
    });
    let agent = Agent {
        copy: Some(Copied::File),
        status: AgentStatus::Interrupted,
        queued: 0,
        turn: TurnNumber::default(),
        cancel_on_disconnect: false,
        ..agent
    };
    History { agent, turns: turns.to_vec(), events }
}

/// The agent as it is after the import.
fn finished(history: &History) -> Agent {
    Agent {
        status: AgentStatus::Completed,
        head: Sequence(history.events.len() as u64),
        turn: TurnNumber(2),
        updated_at: Timestamp(77),
        ended_at: Some(Timestamp(77)),
        usage: Some(json("{}")),
        cost_usd: Some(0.5),
        session: Some("session-1".into()),
        ..history.agent.clone()
    }
}

async fn take_in<S: IArchive>(store: &S, history: &History) {
    store.begin_import(history.agent.clone()).await.unwrap();
    store.import_turns(history.agent.id, history.new_turns()).await.unwrap();
    for events in history.events.chunk_by(|one, other| one.turn == other.turn) {
        store.import_events(history.agent.id, Arc::from(events)).await.unwrap();
    }
}

pub async fn an_imported_history_reads_back_as_it_was<S: IJournal + IAgentRepository + IArchive>(store: &S) {
    let history = history(1);
    take_in(store, &history).await;
    store.finish_import(finished(&history)).await.unwrap();
    assert_eq!(agent_now(store, history.agent.id).await, finished(&history));
    assert_eq!(
        store
            .turns(history.agent.id, TurnNumber(0), TurnLimit { turns: 10, bytes: usize::MAX })
            .await
            .unwrap(),
        history.turns
    );
    assert_eq!(everything(store, history.agent.id).await, history.events);
    let shown = store.messages(history.agent.id, Sequence::START, WHOLE).await.unwrap();
    let complete = history.events.iter().filter(|event| !event.body.is_delta());
    assert_eq!(shown.events, complete.cloned().collect::<Vec<_>>());
    assert_eq!(store.open_turns(history.agent.id).await.unwrap(), []);
}

pub async fn an_import_is_hidden_until_all_of_it_is_there<S: IJournal + IAgentRepository + IArchive>(
    store: &S,
) {
    let history = history(1);
    take_in(store, &history).await;
    let id = history.agent.id;
    let filter = AgentFilter { limit: 9, ..AgentFilter::default() };
    assert!(store.list(filter, WHOLE_LIST).await.unwrap().items.is_empty());
    assert!(store.with_open_turns(usize::MAX).await.unwrap().is_empty(), "nobody would run it");
    assert_eq!(store.to_purge().await.unwrap(), [id], "if the server died now");

    let early = Agent { head: Sequence(3), ..finished(&history) };
    let refused = store.finish_import(early).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    store.discard_import(id).await.unwrap();
    assert_eq!(store.get(id).await.unwrap(), None);
    take_in(store, &history).await;
    store.finish_import(finished(&history)).await.unwrap();
    assert_eq!(store.to_purge().await.unwrap(), []);

    store.discard_import(id).await.unwrap();
    assert!(store.get(id).await.unwrap().is_some(), "what is shown is not thrown away");
    let late = store.import_turns(id, history.new_turns()).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    let again = store.begin_import(history.agent).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })), "{again:?}");
}

pub async fn an_import_takes_no_hole_and_nothing_twice<S: IJournal + IAgentRepository + IArchive>(store: &S) {
    let history = history(1);
    let id = history.agent.id;
    store.begin_import(history.agent.clone()).await.unwrap();
    store.import_turns(id, history.new_turns()[..1].to_vec()).await.unwrap();
    let conflicts = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::Conflict { .. })), "{result:?}");
    };
    conflicts(store.import_turns(id, history.new_turns()).await);
    let open = Turn { number: TurnNumber(7), state: TurnState::Queued, ..history.turns[0].clone() };
    conflicts(store.import_turns(id, vec![open.into()]).await);
    conflicts(store.import_events(id, Arc::from(&history.events[1..3])).await);
    store.import_events(id, Arc::from(&history.events[..3])).await.unwrap();
    store.import_events(id, Arc::from(&history.events[..3])).await.unwrap();
    conflicts(store.import_events(id, Arc::from(&history.events[4..6])).await);
    assert_eq!(everything(store, id).await, history.events[..3]);

    let (agent, _) = running(store, 2).await;
    conflicts(store.import_turns(agent.id, history.new_turns()).await);
    conflicts(store.import_events(agent.id, Arc::from(&history.events[1..2])).await);
}

pub async fn events_of_an_ended_turn_are_written_anew<S: IJournal + IAgentRepository + IArchive>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let mut stored = everything(store, agent.id).await;
    for text in ["one ", "two ", "three"] {
        stored.extend(saved(store, scribe.say(vec![text_delta(0, text), notice("status")])).await);
    }
    let new = |stored: &Event, body: EventBody| Event { body, ..stored.clone() };
    let running = store.rewrite(agent.id, Arc::from([new(&stored[2], notice("early"))])).await;
    assert!(matches!(running, Err(StoreError::Conflict { .. })), "{running:?}");
    let complete = scribe.complete(0);
    stored.extend(saved(store, scribe.say(vec![complete])).await);
    stored.extend(saved(store, scribe.end(TurnOutcome::Completed)).await);

    stored[2] = new(&stored[2], notice("other"));
    stored[3] = new(&stored[3], text_delta(0, "zwei "));
    store.rewrite(agent.id, Arc::from(&stored[2..4])).await.unwrap();
    assert_eq!(everything(store, agent.id).await, stored, "the others stay");
    while store.compact_next().await.unwrap() {}
    let mut cheaper = result(TurnOutcome::Completed);
    cheaper.cost_usd = Some(0.25);
    let last = stored.len() - 1;
    stored[last] = new(&stored[last], EventBody::TurnResult(Box::new(cheaper)));
    store.rewrite(agent.id, Arc::from(&stored[last..])).await.unwrap();
    assert_eq!(everything(store, agent.id).await, stored);
    assert_eq!(agent_now(store, agent.id).await.cost_usd, Some(0.25), "the agent follows its result");
    let shown = store.messages(agent.id, Sequence::START, WHOLE).await.unwrap();
    let kept = stored.iter().filter(|event| !event.body.is_delta());
    assert_eq!(shown.events, kept.cloned().collect::<Vec<_>>());
    while store.compact_next().await.unwrap() {}
    assert_eq!(everything(store, agent.id).await, stored);
}

pub async fn a_compaction_keeps_what_is_written_anew_meanwhile<S: IJournal + IAgentRepository + IArchive>(
    store: &S,
) {
    let (agent, mut scribe) = running(store, 1).await;
    for _ in 0..40 {
        saved(store, scribe.say(vec![notice("status"); 25])).await;
    }
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let mut stored = everything(store, agent.id).await;
    for round in 0..20 {
        let at = 1 + 50 * round;
        stored[at].body = notice(&format!("round {round}"));
        let rewrite = store.rewrite(agent.id, Arc::from(&stored[at..=at]));
        let (compacted, rewritten) = tokio::join!(store.compact_next(), rewrite);
        compacted.unwrap();
        rewritten.unwrap();
        assert_eq!(everything(store, agent.id).await, stored, "round {round}");
    }
    while store.compact_next().await.unwrap() {}
    assert_eq!(everything(store, agent.id).await, stored);
}

pub async fn no_number_gets_another_meaning<S: IJournal + IAgentRepository + IArchive>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.say(vec![text_delta(0, "a"), notice("status")])).await;
    let complete = scribe.complete(0);
    saved(store, scribe.say(vec![complete])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let stored = everything(store, agent.id).await;
    let with = |at: usize, body: EventBody| vec![Event { body, ..stored[at].clone() }];
    let failed = EventBody::TurnResult(Box::new(result(TurnOutcome::Failed)));
    let other_turn = vec![Event { turn: TurnNumber(2), ..stored[1].clone() }];
    for events in [
        with(1, text_delta(1, "a")),
        with(1, notice("a")),
        with(2, text_delta(0, "a")),
        with(3, notice("a")),
        with(4, notice("a")),
        with(4, failed),
        other_turn,
        vec![stored[1].clone(), stored[3].clone()],
    ] {
        let refused = store.rewrite(agent.id, Arc::from(events)).await;
        assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    }
    assert_eq!(everything(store, agent.id).await, stored);
}

pub async fn a_replay_is_kept_with_its_agent<S: IJournal + IAgentRepository + IArchive>(store: &S) {
    let (original, _) = launch(1);
    let (agent, turn) = launch(2);
    let replay = Replay { of: original.id, until: Sequence(7), speed: 0.1 + 0.2 };
    let agent = Agent { copy: Some(Copied::Replay(replay)), ..agent };
    store.create(agent.clone(), turn.into(), None).await.unwrap();
    assert_eq!(agent_now(store, agent.id).await, agent);
}
