//! The memory store and a real one behave the same for any commands in any order.

pub(crate) mod nodes;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Event, NewName, Sequence, StopReason, Timestamp, Turn, TurnNumber, TurnOutcome,
};
use tokenrail_ports::testing::MemoryStore;
use tokenrail_ports::testing::samples::{Scribe, WHOLE, launch, notice, queued_turn};
use tokenrail_ports::{
    Append, Deletion, IAgentRepository, IJournal, NewTurn, StoreError, TurnLimit, TurnStep,
};
use tokio::runtime::Runtime;

#[derive(Debug, Clone)]
enum Step {
    /// The start of a turn, more events, or its end. Sometimes malformed.
    Append(AppendSample),
    /// Repeats an earlier append.
    Repeat(usize),
    Enqueue,
    /// A turn that must get this number.
    EnqueueAs(u32),
    Cancel,
    Stop(u32),
    Edit(AgentEdit),
    Delete,
}

#[derive(Debug, Clone)]
struct AppendSample {
    turn: u32,
    kind: u8,
    events: usize,
    /// The distance of the first event from its correct number.
    gap: u64,
    form: u8,
    outcome: TurnOutcome,
}

fn edit() -> impl Strategy<Value = AgentEdit> {
    let name = prop_oneof![Just(NewName::Removed), "[ab]".prop_map(NewName::Text)];
    let fields = (prop::option::of(name), any::<Option<bool>>(), any::<Option<bool>>());
    fields.prop_map(|(name, pinned, archived)| AgentEdit { name, pinned, archived })
}

fn step() -> impl Strategy<Value = Step> {
    let gap = prop_oneof![12 => Just(0_u64), 1 => Just(1_u64), 1 => Just(u64::MAX)];
    let form = prop_oneof![9 => Just(0_u8), 1 => 1..4_u8];
    let append = (1..4_u32, 0..3_u8, 1..4_usize, gap, form, prop::sample::select(&TurnOutcome::ALL[..]));
    let append = append.prop_map(|(turn, kind, events, gap, form, outcome)| {
        Step::Append(AppendSample { turn, kind, events, gap, form, outcome })
    });
    prop_oneof![
        12 => append,
        2 => any::<prop::sample::Index>().prop_map(|at| Step::Repeat(at.index(1 << 16))),
        2 => Just(Step::Enqueue),
        1 => (2..5_u32).prop_map(Step::EnqueueAs),
        1 => Just(Step::Cancel),
        1 => (1..4_u32).prop_map(Step::Stop),
        2 => edit().prop_map(Step::Edit),
        1 => Just(Step::Delete),
    ]
}

/// `turns` is the number of the agent's turns: their numbers have no gaps.
fn append_of(agent: &Agent, turns: usize, sample: &AppendSample) -> Append {
    let AppendSample { turn, kind, events, gap, form, outcome } = *sample;
    let number = TurnNumber(turn.min(turns as u32 + 1));
    let head = Sequence(agent.head.0.saturating_add_signed(gap.cast_signed()));
    let mut scribe = Scribe::new(&Agent { head, ..agent.clone() }).at_turn(number);
    let append = match kind {
        0 => scribe.start(&queued_turn(agent.id, number, "go on")),
        1 => scribe.say(vec![notice("n"); events]),
        _ => scribe.end(outcome),
    };
    match form {
        1 => Append { step: TurnStep::End, ..append },
        2 => Append { step: TurnStep::Continue, ..append },
        3 => {
            let mut more = append.events.to_vec();
            more.push(append.events[0].clone());
            Append { events: more.into(), ..append }
        }
        _ => append,
    }
}

/// The parts of an answer that a caller can distinguish.
fn told<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => error.to_string(),
    }
}

async fn done<S: IJournal + IAgentRepository>(
    store: &S,
    id: AgentId,
    step: &Step,
    append: Option<Append>,
) -> String {
    match step {
        Step::Append(_) | Step::Repeat(_) => match append {
            Some(append) => told(store.append(append).await),
            None => String::new(),
        },
        Step::Enqueue => told(store.enqueue(queued_turn(id, TurnNumber(0), "more").into(), 2, None).await),
        Step::EnqueueAs(number) => {
            let turn = NewTurn::from(queued_turn(id, TurnNumber(0), "next"));
            told(store.enqueue(turn.only_as(Some(TurnNumber(*number))), 2, None).await)
        }
        Step::Cancel => told(store.cancel(id, Timestamp(5000)).await),
        Step::Stop(turn) => told(store.stop_turn(id.turn(TurnNumber(*turn)), StopReason::TurnTimeout).await),
        Step::Edit(edit) => told(store.edit(id, edit.clone()).await),
        Step::Delete => told(store.delete(id, Timestamp(6000), Deletion::KeepHistory).await),
    }
}

/// Everything that is saved of the agent.
async fn saved_of<S: IJournal + IAgentRepository>(
    store: &S,
    id: AgentId,
) -> (Agent, Vec<Turn>, Vec<Turn>, Vec<Event>) {
    let agent = store.get(id).await.unwrap().unwrap();
    let open = store.open_turns(id).await.unwrap();
    let turns =
        store.turns(id, TurnNumber::default(), TurnLimit { turns: 100, bytes: usize::MAX }).await.unwrap();
    (agent, open, turns, store.read(id, Sequence::START, WHOLE).await.unwrap())
}

async fn both_do<S: IJournal + IAgentRepository>(
    (store, memory): (&S, MemoryStore),
    agent: &Agent,
    turn: &Turn,
    steps: &[Step],
) -> usize {
    memory.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    store.create(agent.clone(), turn.clone().into(), None).await.unwrap();
    let mut appends: Vec<Append> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let append = match step {
            Step::Append(sample) => {
                let turns = memory.saved_turns(agent.id).len();
                Some(append_of(&memory.saved_agent(agent.id).unwrap(), turns, sample))
            }
            Step::Repeat(any) => appends.get(any % appends.len().max(1)).cloned(),
            _ => None,
        };
        appends.extend(append.clone());
        let expected = done(&memory, agent.id, step, append.clone()).await;
        assert_eq!(done(store, agent.id, step, append).await, expected, "step {at}: {steps:#?}");
        let expected = saved_of(&memory, agent.id).await;
        assert_eq!(saved_of(store, agent.id).await, expected, "after step {at}: {steps:#?}");
    }
    memory.saved(agent.id).len()
}

/// Runs this many random stories on `store` and on a new store in memory that `memory` makes.
pub(crate) fn check<S: IJournal + IAgentRepository>(
    runtime: &Runtime,
    store: &S,
    memory: fn(u64) -> MemoryStore,
    cases: u32,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let (launched, events) = (Cell::new(0_i64), Cell::new(0));
    let steps = prop::collection::vec(step(), 1..24);
    let found = runner.run(&steps, |steps| {
        launched.set(launched.get() + 1);
        let (agent, turn) = launch(1);
        // The ids of messages depend on the random bits of their agent, and must differ between agents.
        let mut random = [1; 10];
        random[2..].copy_from_slice(&launched.get().to_be_bytes());
        let id = AgentId::new(Timestamp(launched.get()), random);
        let (agent, turn) = (Agent { id, ..agent }, Turn { agent: id, ..turn });
        events.set(events.get() + runtime.block_on(both_do((store, memory(1)), &agent, &turn, &steps)));
        Ok(())
    });
    found.unwrap();
    assert!(launched.get() < events.get() as i64, "some of it was taken");
}
