//! A simulation of two or three nodes on one store, in one runtime and in virtual time: processes of nodes are killed
//! and stopped, some never come back, the store loses its last moments, hints are lost, doubled and late, and clients
//! go on at another node.
//!
//! 1. [`place`]: what is checked at the ports of a node;
//! 2. [`node`]: the lives of a node, and what goes wrong in them;
//!    [`failover`]: a store that loses the last moments; [`late`]: appends that arrive after their server has ended;
//! 3. [`clients`]: launches, messages, cancels, answers; [`remover`]: deletes and purges; [`removals`]: what is known
//!    of these; [`folders`]: the folders that they remove; [`readers`]: what clients read;
//! 4. [`promises`]: checks after everything has ended; [`seeds`]: the sweep.
//!
//! `TOKENRAIL_NODES_SEED=<number>` replays one seed. `TOKENRAIL_NODES_SEEDS=<count>` sets the number of fresh seeds.

mod clients;
mod failover;
mod folders;
mod late;
mod node;
mod place;
mod promises;
mod readers;
mod removals;
mod remover;
mod seeds;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokenrail_application::Limits;
use tokenrail_domain::{AgentId, NodeId};
use tokenrail_ports::testing::{BusFaults, MemoryBus, MemoryStore};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::dice::{Dice, fold};
use crate::faults::{Cut, Faults, Quirk};
use crate::join::join_all;
use crate::simulation::EVENT_INTERVAL;

pub(crate) use self::folders::SimWorkspace;
pub(crate) use self::late::LateAppend;
pub(crate) use self::place::Place;

use self::late::Kills;
use self::node::Node;
use self::place::Promises;
use self::readers::Reader;

/// How long faults happen, in virtual time.
const STORM_MS: u64 = 150_000;
/// After the storm, clients say the rest, and a stopped node is declared lost, within this time. Then only what waits
/// runs.
const QUEUES_WITHIN: Duration = Duration::from_mins(15);

/// How often the simulation looks whether everything has ended.
const LOOK: Duration = Duration::from_millis(250);
/// Everything has ended if that was seen so many times in a row. Readers must have everything by then.
const SETTLED: u32 = 40;

/// The result of a simulation.
pub(crate) struct Report {
    pub(crate) trace: u64,
    pub(crate) violation: Option<String>,
    pub(crate) lines: String,
    pub(crate) reached: BTreeSet<&'static str>,
    pub(crate) events: usize,
}

/// The nodes, and what their clients know.
struct Cluster {
    seed: u64,
    faults: Faults,
    record: bool,
    /// Whether the store and the agents are never slow, so that readers must not be late.
    is_prompt: bool,
    began: Instant,
    disk: MemoryStore,
    bus: MemoryBus,
    bus_faults: BusFaults,
    promises: std::sync::Arc<Promises>,
    nodes: Vec<Node>,
    /// Fires when nothing goes wrong any more.
    calm: CancellationToken,
    failed: CancellationToken,
    violation: RefCell<Option<String>>,
    reached: RefCell<BTreeSet<&'static str>>,
    trace: Cell<u64>,
    lines: RefCell<String>,
    agents: RefCell<BTreeMap<usize, AgentId>>,
    /// The prompts that were accepted.
    accepted: RefCell<Vec<(AgentId, String)>>,
    commanders: Cell<usize>,
    /// This node never comes back after its first end.
    never_back: Option<NodeId>,
    /// Standbys take over that lack the last moments.
    loses_tails: bool,
    kills: Kills,
    failovers: Cell<u32>,
    quiet_until_ms: Cell<u64>,
    /// At which node each reader is, while it follows.
    following: RefCell<BTreeMap<usize, NodeId>>,
    /// How much is left of what a reader has seen, after a failover.
    cut_off: RefCell<BTreeMap<usize, usize>>,
    /// How many clients may still remove agents.
    removers: Cell<usize>,
    /// The agents of which a client was told that they are deleted.
    removed: RefCell<BTreeSet<AgentId>>,
    /// The readers that were told that their agent is gone.
    told_gone: RefCell<BTreeSet<usize>>,
}

impl Cluster {
    fn new(seed: u64, record: bool) -> Rc<Self> {
        let mut dice = Dice::of(seed, "nodes");
        let mut faults = draw(&mut dice);
        // Dice of their own: what a seed has drawn before does not change.
        let of_its_own = |purpose: &str| Dice::of(seed, &format!("nodes {purpose}"));
        faults.needs_no_home = of_its_own("homes").chance(300);
        let is_prompt = faults.store_delay_ms + faults.read_error + faults.store_error == 0;
        let some = |dice: &mut Dice, most| if dice.chance(500) { dice.below(most) } else { 0 };
        let bus_faults = BusFaults {
            lost: some(&mut dice, 500),
            doubled: some(&mut dice, 200),
            late: some(&mut dice, 200),
            late_max: Duration::from_millis(dice.pick(&[10, 500, 5000])),
        };
        let bus = MemoryBus::new(seed);
        bus.set_faults(bus_faults);
        let nodes: Vec<_> = (1..=dice.between(2, 3)).map(|id| Node::new(NodeId(id))).collect();
        let mut never_back = of_its_own("never back");
        let one = NodeId(1 + never_back.below(nodes.len() as u64));
        let removers =
            if of_its_own("whether agents are removed").chance(remover::EXIST) { faults.slots } else { 0 };
        Rc::new(Self {
            removers: Cell::new(removers),
            seed,
            record,
            is_prompt,
            commanders: Cell::new(faults.slots),
            faults,
            began: Instant::now(),
            disk: MemoryStore::shared(seed),
            bus,
            bus_faults,
            promises: std::sync::Arc::default(),
            nodes,
            calm: CancellationToken::new(),
            failed: CancellationToken::new(),
            violation: RefCell::default(),
            reached: RefCell::default(),
            trace: Cell::new(seed),
            lines: RefCell::default(),
            agents: RefCell::default(),
            accepted: RefCell::default(),
            never_back: never_back.chance(300).then_some(one),
            loses_tails: of_its_own("tails").chance(400),
            kills: if of_its_own("kills").chance(300) { Kills::WhileSaving } else { Kills::AtAnyTime },
            failovers: Cell::default(),
            quiet_until_ms: Cell::default(),
            following: RefCell::default(),
            cut_off: RefCell::default(),
            removed: RefCell::default(),
            told_gone: RefCell::default(),
        })
    }

    fn fail(&self, how: impl Into<String>) {
        self.violation.borrow_mut().get_or_insert(how.into());
        self.failed.cancel();
    }

    fn reach(&self, what: &'static str) {
        self.reached.borrow_mut().insert(what);
    }

    fn note(&self, what: u64) {
        self.trace.set(fold(self.trace.get(), what));
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// The numbers of the readers of an agent.
    fn readers_of(&self, slot: usize) -> impl Iterator<Item = usize> {
        (slot..self.faults.slots * self.faults.readers).step_by(self.faults.slots)
    }

    fn dice(&self, purpose: &str) -> Dice {
        Dice::of(self.seed, &format!("nodes {purpose}"))
    }
}

/// What goes wrong at the ports of every node. Agents end by themselves, so that simulations are short.
fn draw(dice: &mut Dice) -> Faults {
    let quirks =
        [Quirk::Asks, Quirk::Tools, Quirk::AnswersInterrupt, Quirk::Stall, Quirk::Garbage, Quirk::Retry];
    let mut some = |exists: u64, most: u64| if dice.chance(exists) { 1 + dice.below(most) } else { 0 };
    let (store_delay_ms, store_error) = (some(300, 2000), some(200, 100));
    let (commit_unknown, read_error) = (some(200, 150), some(200, 100));
    let cancels = some(400, 400);
    Faults {
        slots: dice.between(1, 4) as usize,
        readers: dice.between(1, 2) as usize,
        deeds: dice.between(0, 4),
        messages: dice.between(1, 3),
        deltas: dice.pick(&[1, 4, 8, 20]),
        pace_ms: dice.pick(&[1, 50, 400, 2000]),
        cut: dice.pick(&[Cut::Lines, Cut::Pieces, Cut::Burst]),
        quirks: quirks.to_vec(),
        quirk: dice.pick(&[100, 400]),
        store_delay_ms,
        store_error,
        commit_unknown,
        read_error,
        cancels,
        ..Faults::none()
    }
}

/// Plays the simulation of a seed.
pub(crate) fn simulate(seed: u64, record: bool) -> Report {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .event_interval(EVENT_INTERVAL)
        .build()
        .unwrap();
    let report = runtime.block_on(async {
        let cluster = Cluster::new(seed, record);
        play(&cluster).await;
        // Ends the cycles between the services and their surroundings.
        for node in &cluster.nodes {
            node.kill(&cluster);
        }
        Report {
            trace: cluster.trace.get(),
            violation: cluster.violation.borrow().clone(),
            lines: cluster.lines.borrow().clone(),
            reached: cluster.reached.borrow().clone(),
            events: cluster.agents.borrow().values().map(|id| cluster.disk.saved(*id).len()).sum(),
        }
    });
    drop(runtime);
    report
}

type Part<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

async fn play(cluster: &Cluster) {
    let mut readers: Vec<Reader> = (0..cluster.faults.slots * cluster.faults.readers)
        .map(|number| Reader::new(cluster, number))
        .collect();
    {
        let mut parts: Vec<Part<'_>> = Vec::new();
        for node in &cluster.nodes {
            parts.push(Box::pin(node.live(cluster)));
        }
        parts.push(Box::pin(clients::forget(cluster)));
        for slot in 0..cluster.faults.slots {
            parts.push(Box::pin(clients::command(cluster, slot)));
            parts.push(Box::pin(clients::answer(cluster, slot)));
        }
        for slot in 0..cluster.removers.get() {
            parts.push(Box::pin(remover::remove(cluster, slot)));
        }
        for reader in &mut readers {
            parts.push(Box::pin(reader.read(cluster)));
        }
        let forever = async {
            join_all(parts).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = cluster.failed.cancelled() => {}
            () = weather(cluster) => {}
            () = forever => {}
        }
    }
    if cluster.violation.borrow().is_none()
        && let Err(how) = promises::everything(cluster, &readers)
    {
        cluster.fail(how);
    }
}

/// How long after the storm everything must have ended. Each turn ends within its timeout. The turns of an agent run
/// one after the other, and of the agents of a node, so many at a time as may run.
fn ends_within(faults: &Faults) -> Duration {
    let Limits { admission, run, .. } = faults.limits;
    let rounds = faults.slots.div_ceil(admission.running_agents);
    let turns = 1 + faults.deeds as u32;
    QUEUES_WITHIN + run.turn_timeout * turns * rounds as u32
}

/// The storm, and then calm until everything has ended.
async fn weather(cluster: &Cluster) {
    sleep(Duration::from_millis(STORM_MS)).await;
    cluster.calm.cancel();
    for node in &cluster.nodes {
        if let Some(life) = node.life() {
            life.world.calm.cancel();
        }
    }
    let ended = timeout(ends_within(&cluster.faults), async {
        // A node that goes on after it was stopped may still learn that it was declared lost.
        let mut settled = 0;
        while settled < SETTLED {
            sleep(LOOK).await;
            settled = if promises::has_ended(cluster) { settled + 1 } else { 0 };
        }
    });
    if ended.await.is_err() {
        cluster.fail(format!("liveness: {}", promises::open(cluster)));
    }
}
