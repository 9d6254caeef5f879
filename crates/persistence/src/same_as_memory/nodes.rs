//! The same for several servers on one store.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokenrail_domain::{Agent, AgentId, NodeId, Timestamp, TurnNumber, TurnOutcome};
use tokenrail_ports::testing::MemoryStore;
use tokenrail_ports::testing::contract::nodes::{Servers, SharedStore};
use tokenrail_ports::testing::samples::{Scribe, launch, queued_turn};
use tokenrail_ports::{Deletion, Epoch, INodes, LaunchClaim, StoreResult};
use tokio::runtime::Runtime;

use super::told;

const AGENTS: u8 = 4;

/// What a server does.
#[derive(Debug, Clone, Copy)]
enum NodeStep {
    Join,
    Beat,
    Leave,
    /// Declares the node with this number lost, with its current pulse.
    Lose(u64),
    Forget(u64),
    Create(u8),
    /// Launches it for any node.
    CreateAnywhere(u8),
    /// Takes at most so many launches.
    ClaimLaunches(usize),
    Idle(u8),
    Enqueue(u8),
    Cancel(u8),
    Delete(u8),
    Purge(u8),
    Claim(u8),
    TakeOver(u8),
    LetGo(u8),
    LetAllGo,
    /// Starts the first open turn, with the epoch that this server has got last.
    Start(u8),
    End(u8),
    Watch(u8, bool),
}

fn step() -> impl Strategy<Value = (usize, NodeStep)> {
    use NodeStep::{
        Beat, Cancel, Claim, ClaimLaunches, Create, CreateAnywhere, Delete, End, Enqueue, Forget, Idle, Join,
        Leave, LetAllGo, LetGo, Lose, Purge, Start, TakeOver, Watch,
    };
    let (node, agent) = (1..4_u64, 0..AGENTS);
    let step = prop_oneof![
        2 => Just(Join),
        1 => Just(Beat),
        1 => Just(Leave),
        3 => node.clone().prop_map(Lose),
        1 => node.prop_map(Forget),
        4 => agent.clone().prop_map(Create),
        2 => agent.clone().prop_map(CreateAnywhere),
        3 => (0..3_usize).prop_map(ClaimLaunches),
        1 => agent.clone().prop_map(Idle),
        3 => agent.clone().prop_map(Enqueue),
        1 => agent.clone().prop_map(Cancel),
        1 => agent.clone().prop_map(Delete),
        1 => agent.clone().prop_map(Purge),
        4 => agent.clone().prop_map(Claim),
        4 => agent.clone().prop_map(TakeOver),
        3 => agent.clone().prop_map(LetGo),
        1 => Just(LetAllGo),
        5 => agent.clone().prop_map(Start),
        5 => agent.clone().prop_map(End),
        1 => (agent, any::<bool>()).prop_map(|(agent, watched)| Watch(agent, watched)),
    ];
    (0..4_usize, step)
}

/// The epochs that each server knows. Stores need not give the same ones.
type Epochs = BTreeMap<(usize, AgentId), Epoch>;

fn server<S>(servers: &Servers<S>, at: usize) -> &S {
    match at {
        0 => &servers.one,
        1 => &servers.other,
        2 => &servers.third,
        _ => &servers.twin,
    }
}

fn id(n: u8) -> AgentId {
    launch(n).0.id
}

async fn lost<S: SharedStore>(store: &S, node: NodeId) -> StoreResult<bool> {
    let nodes = store.nodes().await?;
    let Some(found) = nodes.into_iter().find(|it| it.id == node) else { return Ok(false) };
    store.declare_lost(node, found.pulse).await
}

async fn wrote<S: SharedStore>(
    store: &S,
    agent: AgentId,
    epoch: Option<Epoch>,
    write: impl FnOnce(&mut Scribe, TurnNumber) -> tokenrail_ports::Append,
) -> StoreResult<()> {
    let (Some(now), Some(turn)) =
        (store.get(agent).await?, store.open_turns(agent).await?.first().map(|turn| turn.number))
    else {
        return Ok(());
    };
    let mut scribe = Scribe::new(&now).at_turn(turn).at_epoch(epoch.unwrap_or(Epoch(77)));
    store.append(write(&mut scribe, turn)).await
}

/// Carries it out. Returns the answer, without numbers that may differ.
async fn done<S: SharedStore>(
    servers: &Servers<S>,
    epochs: &mut Epochs,
    (at, step): (usize, NodeStep),
) -> String {
    let store = server(servers, at);
    let known = |agent| epochs.get(&(at, agent)).copied();
    match step {
        NodeStep::Join => told(store.join().await),
        NodeStep::Beat => told(store.beat().await.map(|nodes| nodes.len())),
        NodeStep::Leave => told(store.leave().await),
        NodeStep::Lose(node) => told(lost(store, NodeId(node)).await),
        NodeStep::Forget(node) => told(store.forget(NodeId(node)).await),
        NodeStep::Create(n) => {
            let (agent, turn) = launch(n);
            let created = store.create(agent, turn.into(), None).await;
            if created.is_ok() {
                epochs.insert((at, id(n)), Epoch::FIRST);
            }
            told(created)
        }
        NodeStep::CreateAnywhere(n) => {
            let (agent, turn) = launch(n);
            let agent = Agent { home: Some(NodeId::ANY), ..agent };
            told(store.create(agent, turn.into(), None).await)
        }
        NodeStep::ClaimLaunches(to_run) => {
            let claim = LaunchClaim { types: vec![launch(0).0.kind], to_run, to_stop: 1 };
            told(store.claim_launches(claim).await)
        }
        NodeStep::Idle(n) => told(store.create_idle(launch(n).0).await),
        NodeStep::Enqueue(n) => {
            told(store.enqueue(queued_turn(id(n), TurnNumber(0), "p").into(), 2, None).await)
        }
        NodeStep::Cancel(n) => told(store.cancel(id(n), Timestamp(5)).await),
        NodeStep::Delete(n) => told(store.delete(id(n), Timestamp(6), Deletion::Purge).await),
        NodeStep::Purge(n) => told(store.purge(id(n), Timestamp(7)).await),
        NodeStep::Claim(n) | NodeStep::TakeOver(n) => {
            let got = match step {
                NodeStep::Claim(_) => store.claim(id(n)).await,
                _ => store.take_over(id(n)).await,
            };
            if let Ok(Some(epoch)) = got {
                epochs.insert((at, id(n)), epoch);
            }
            told(got.map(|epoch| epoch.is_some()))
        }
        NodeStep::LetGo(n) => told(store.let_go(id(n)).await),
        NodeStep::LetAllGo => told(store.let_all_go(vec![launch(0).0.kind], 9).await),
        NodeStep::Start(n) => {
            let start = |scribe: &mut Scribe, turn| scribe.start(&queued_turn(id(n), turn, "p"));
            told(wrote(store, id(n), known(id(n)), start).await)
        }
        NodeStep::End(n) => {
            let end = |scribe: &mut Scribe, _| scribe.end(TurnOutcome::Completed);
            told(wrote(store, id(n), known(id(n)), end).await)
        }
        // The memory store does not look whether there is such an agent.
        NodeStep::Watch(n, _) if store.get(id(n)).await.unwrap().is_none() => String::new(),
        NodeStep::Watch(n, watched) => told(store.set_watched(id(n), watched).await),
    }
}

/// Everything that the servers see.
async fn seen<S: SharedStore>(servers: &Servers<S>) -> String {
    let mut seen = Vec::new();
    for at in 0..3 {
        let store = server(servers, at);
        let states: Vec<_> =
            store.nodes().await.unwrap().iter().map(|node| (node.id, node.state, node.pulse)).collect();
        let open = store.with_open_turns(9).await.unwrap();
        let open: Vec<AgentId> = open.iter().map(|listed| listed.agent.id).collect();
        let standings = store.standings((0..AGENTS).map(id).collect()).await.unwrap();
        let mut watched = Vec::new();
        for n in 0..AGENTS {
            // The memory store still knows who has followed an agent that is gone.
            let known = store.get(id(n)).await.unwrap();
            watched.push(known.is_some() && store.is_watched_elsewhere(id(n)).await.unwrap());
        }
        let (errands, orphans) = (store.errands(9).await.unwrap(), store.orphans(9).await.unwrap());
        let to_purge = store.to_purge().await.unwrap();
        seen.push(format!(
            "{states:?} {open:?} {errands:?} {orphans:?} {standings:?} {to_purge:?} {watched:?}"
        ));
    }
    seen.join("\n")
}

fn memory() -> Servers<MemoryStore> {
    let one = MemoryStore::shared(1);
    let as_node = |number| one.as_node(NodeId(number));
    let (twin, other, third) = (as_node(1), as_node(2), as_node(3));
    Servers { one, twin, other, third }
}

/// Servers that have not joined yet get the numbers 1, 2 and 3.
async fn both_do<S: SharedStore>(servers: &Servers<S>, steps: &[(usize, NodeStep)]) {
    let memory = memory();
    let (mut epochs, mut expected_epochs) = (Epochs::new(), Epochs::new());
    for at in [0, 1, 2, 3] {
        assert_eq!(server(servers, at).join().await.unwrap(), server(&memory, at).join().await.unwrap());
    }
    for (at, step) in steps.iter().enumerate() {
        let expected = done(&memory, &mut expected_epochs, *step).await;
        assert_eq!(done(servers, &mut epochs, *step).await, expected, "step {at}: {steps:#?}");
        assert_eq!(seen(servers).await, seen(&memory).await, "after step {at}: {steps:#?}");
    }
}

/// Runs this many random stories, each on new servers that `fresh` makes, and on new ones in memory.
pub(crate) fn check<S: SharedStore, G>(
    runtime: &Runtime,
    fresh: impl AsyncFn() -> (Servers<S>, G),
    cases: u32,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let stories = Cell::new(0);
    let found = TestRunner::new(config).run(&prop::collection::vec(step(), 1..40), |steps| {
        stories.set(stories.get() + 1);
        runtime.block_on(async {
            let (servers, _guard) = fresh().await;
            both_do(&servers, &steps).await;
        });
        Ok(())
    });
    found.unwrap();
    assert!(cases <= stories.get());
}
