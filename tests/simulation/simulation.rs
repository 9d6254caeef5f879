//! One simulation: the server starts, and restarts after each crash or stop, until everything has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokenrail_application::{AgentService, AgentType, AgentTypes, AtStop, Outside};
use tokenrail_parser::ClaudeParser;
use tokenrail_ports::Abilities;
use tokenrail_ports::testing::{MemoryBus, MemoryStore, PretendRepository};
use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, timeout};

use crate::answerer::Answerer;
use crate::commander::Commander;
use crate::dice::Dice;
use crate::ends;
use crate::faults::Faults;
use crate::join::join_all;
use crate::nodes::SimWorkspace;
use crate::planted_outside;
use crate::reader::{Agents, Reader};
use crate::runner::{SimRunner, SimRuns};
use crate::store::SimStore;
use crate::world::World;

/// In virtual time. Longer than all turns of an agent may take together.
pub(crate) const LIFE_MAX: Duration = Duration::from_hours(3);
const SHUTDOWN: Duration = Duration::from_mins(1);
/// After this many starts, the server is not stopped any more: a command may take longer than the time between two
/// stops.
const STOPPED_LIVES: u32 = 12;

/// How long a server without followers may still hold events in memory: one read of a slow store.
const RELEASED_WITHIN: Duration = Duration::from_secs(10);
/// The runtime polls no timer and no socket between two tasks, so everything outside the server acts while it waits.
pub(crate) const EVENT_INTERVAL: u32 = 1 << 24;

/// The result of a simulation.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) trace: u64,
    pub(crate) violation: Option<String>,
    /// The end of the trace, if it was recorded.
    pub(crate) lines: String,
    pub(crate) reached: BTreeSet<&'static str>,
    pub(crate) events: usize,
    pub(crate) lives: u32,
    pub(crate) virtual_ms: u64,
    pub(crate) steps: u64,
}

/// Everything outside the server.
pub(crate) struct Cast {
    pub(crate) world: Arc<World>,
    pub(crate) agents: Agents,
    pub(crate) readers: Vec<Reader>,
    pub(crate) commanders: Vec<Commander>,
    pub(crate) answerers: Vec<Answerer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LifeEnd {
    Done,
    Halted,
    Stopped,
}

/// The simulation that the swarm draws for a seed.
pub(crate) fn simulate(seed: u64, record: bool) -> Report {
    simulate_with(Cast::new(seed, Faults::draw(seed), record)).1
}

impl Cast {
    pub(crate) fn new(seed: u64, faults: Faults, record: bool) -> Self {
        let world = World::new(seed, faults, record);
        let agents = Agents::new(world.faults.slots);
        let readers = (0..world.faults.readers).map(|number| Reader::new(&world, number)).collect();
        let commanders = (0..world.faults.slots).map(|slot| Commander::new(&world, slot)).collect();
        let answerers = Answerer::all(&world);
        Self { world, agents, readers, commanders, answerers }
    }
}

/// Plays a simulation to its end.
pub(crate) fn simulate_with(mut cast: Cast) -> (Cast, Report) {
    let world = Arc::clone(&cast.world);
    let mut steps = 0;
    loop {
        let played = catch_unwind(AssertUnwindSafe(|| one_life(&mut cast)));
        steps += world.lock().steps;
        match played {
            Ok(LifeEnd::Halted | LifeEnd::Stopped) if world.lock().violation.is_none() => {}
            Ok(_) => break,
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
                world.fail(format!("a panic: {words}"));
                break;
            }
        }
    }
    if world.lock().violation.is_none() {
        world.check(ends::everything(&cast));
    }
    let report = report(&world, steps);
    (cast, report)
}

fn report(world: &World, steps: u64) -> Report {
    let state = world.lock();
    Report {
        trace: state.trace.hash,
        violation: state.violation.clone(),
        lines: state.trace.last_lines(),
        reached: state.reached.clone(),
        events: state.ledgers.values().map(|ledger| ledger.events.len()).sum(),
        lives: state.life,
        virtual_ms: state.now_ms(),
        steps,
    }
}

fn one_life(cast: &mut Cast) -> LifeEnd {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .event_interval(EVENT_INTERVAL)
        .build()
        .unwrap();
    let world = Arc::clone(&cast.world);
    // Everything outside the server is the root future: it is polled if no task of the server can continue. So the
    // order in which tasks wake it makes no difference.
    let end = runtime.block_on(async {
        world.begin_life();
        let service = AgentService::new(outside(&world, Arc::new(MemoryBus::new(0))), planted_outside::limits(world.faults.limits), Handle::current());
        *world.service() = Some(service.clone());
        let end = tokio::select! {
            biased;
            () = world.halt.notified() => LifeEnd::Halted,
            end = timeout(LIFE_MAX, play(cast, &service)) => end.unwrap_or_else(|_| {
                world.fail(format!("liveness: not at its end after three hours; {}", ends::unfinished(&world)));
                LifeEnd::Halted
            }),
        };
        // A crash between a commit and its return leaves the ledgers behind the disk. If the server has nothing more to
        // save for an agent, nothing else would bring its ledger up to date before the end, at a later time.
        for agent in cast.agents.known() {
            world.sync(agent);
        }
        world.end_life();
        // The service holds the world: this ends the cycle.
        *world.service() = None;
        end
    });
    drop(runtime);
    end
}

pub(crate) fn outside(world: &Arc<World>, bus: Arc<MemoryBus>) -> Outside {
    let store = Arc::new(SimStore(Arc::clone(world)));
    let kind = AgentType {
        runner: Arc::new(SimRunner(Arc::clone(world))),
        workspace: Arc::new(SimWorkspace(Arc::clone(world))),
        parser: Arc::new(|| planted_outside::parser(ClaudeParser::two_way())),
        runner_name: "simulated".into(),
        abilities: Abilities::default(),
        format: "claude".into(),
    };
    Outside {
        journal: store.clone(),
        agents: store.clone(),
        nodes: store.clone(),
        inbox: store,
        credentials: None,
        bus,
        // These tests import nothing.
        archive: Arc::new(MemoryStore::new(0)),
        clock: world.clone(),
        random: world.clone(),
        runs: Arc::new(SimRuns(Arc::clone(world))),
        git: Arc::new(PretendRepository::default()),
        types: AgentTypes { listed: BTreeMap::from([("claude".to_owned(), kind)]), ..AgentTypes::default() },
        default_type: Some("claude".to_owned()),
    }
}

async fn play(cast: &mut Cast, service: &AgentService) -> LifeEnd {
    let Cast { world, agents, readers, commanders, answerers } = cast;
    let (world, agents) = (&**world, &*agents);
    while service.recover().await.is_err() {
        sleep(Duration::from_millis(10)).await;
    }
    let waiting = commanders.iter().filter(|commander| !commander.is_done()).count();
    if waiting == 0 {
        world.calm.cancel();
    }
    let left = std::cell::Cell::new(waiting);
    let commands = commanders.iter_mut().filter(|commander| !commander.is_done()).map(|commander| {
        let left = &left;
        async move {
            commander.command(service, world, agents).await;
            left.set(left.get() - 1);
            if left.get() == 0 {
                world.calm.cancel();
            }
        }
    });
    let commands = join_all(commands.collect());
    let reads = join_all(readers.iter_mut().map(|reader| reader.read(service, world, agents)).collect());
    let answers = join_all(answerers.iter_mut().map(|one| one.answer(service, world, agents)).collect());
    // Answerers never end by themselves.
    let everybody = async {
        tokio::select! {
            biased;
            _ = async { tokio::join!(commands, reads) } => {}
            () = async { answers.await; std::future::pending::<()>().await } => {}
        }
    };
    tokio::pin!(everybody);
    let agents_too = tokio::select! {
        biased;
        agents_too = stop_asked(world) => agents_too,
        () = &mut everybody => {
            settle(service, world).await;
            return LifeEnd::Done;
        }
    };
    // The clients continue while the server stops.
    let left = async {
        everybody.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = stop(service, world, agents_too) => {}
        () = left => {}
    }
    LifeEnd::Stopped
}

/// Returns if the server is to be stopped in an orderly way. True if its agents are to be stopped too.
async fn stop_asked(world: &World) -> bool {
    let life = world.lock().life;
    let dice = &mut Dice::of(world.seed, &format!("stop {life}"));
    if STOPPED_LIVES < life || world.calm.is_cancelled() || !dice.chance(world.faults.graceful) {
        return std::future::pending().await;
    }
    let after = Duration::from_millis(dice.between(1, 20_000));
    let agents_too = dice.chance(300);
    tokio::select! {
        biased;
        () = world.calm.cancelled() => std::future::pending().await,
        () = sleep(after) => agents_too,
    }
}

async fn stop(service: &AgentService, world: &World, agents_too: bool) {
    world.reach("the server was stopped");
    world.lock().agents_stopped |= agents_too;
    let at_stop = if agents_too { AtStop::Cancel } else { AtStop::Keep };
    if !service.shutdown(at_stop, SHUTDOWN).await && world.faults.outage_ms == 0 && !agents_too {
        world.fail("G23: the server did not stop in time");
    }
}

/// After the faults are over and no client wants anything, the server must have nothing to do and hold nothing.
async fn settle(service: &AgentService, world: &World) {
    // A reader has seen the end of each followed agent. The other agents may still run for a while.
    while 0 < service.stats().active_agents {
        sleep(Duration::from_secs(1)).await;
    }
    // A fetch of older events outlives its follower, and holds the tail until it ends.
    let released = async {
        while service.stats().followers != 0 || service.stats().tail_bytes != 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let released = timeout(RELEASED_WITHIN, released).await;
    let stats = service.stats();
    if released.is_err() || stats.active_agents != 0 {
        world.fail(format!("liveness: the server still holds {stats:?}"));
    }
    if let Some(question) = service.list_open_requests(None, 1).items.first() {
        world.fail(format!("N2: nothing runs, and {question:?} is told to be open"));
    }
    if stats.invariant_violations != 0 {
        world.fail("the server has counted a broken invariant");
    }
    if !service.shutdown(AtStop::Keep, SHUTDOWN).await {
        world.fail("G23: a server that has nothing to do does not stop");
    }
}
