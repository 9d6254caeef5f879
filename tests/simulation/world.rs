//! The surroundings of the application in a simulation: time, chance, processes, and the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokenrail_application::AgentService;
use tokenrail_domain::{AgentId, Event, EventBody, TurnNumber, TurnOutcome};
use tokenrail_ports::Append;
use tokenrail_ports::testing::MemoryStore;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounds;
use crate::dice::Dice;
use crate::faults::Faults;
use crate::journal::Ledger;
use crate::nodes::Place;
use crate::outages::Outages;
use crate::process::Process;
use crate::trace::Trace;

pub(crate) const EPOCH_MS: i64 = 1_800_000_000_000;
const SLEEP_PER_MILLE: u64 = 60;

/// The surroundings of the application in a simulation. They survive server restarts.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) faults: Faults,
    /// The content of the disk.
    pub(crate) disk: MemoryStore,
    /// The node that this is the surroundings of, if there are several.
    pub(crate) node: Option<Place>,
    /// Signalled when the server crashes or a promise is broken.
    pub(crate) halt: Notify,
    /// Signalled when the end of a turn is saved.
    pub(crate) ended: Notify,
    /// Fires when an append begins that would arrive late.
    pub(crate) saving: Notify,
    /// Fires when faults and commands are over.
    pub(crate) calm: CancellationToken,
    /// The server, while it runs.
    pub(crate) service: Mutex<Option<AgentService>>,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) dice: Dice,
    pub(crate) trace: Trace,
    pub(crate) violation: Option<String>,
    pub(crate) processes: BTreeMap<(AgentId, TurnNumber), Process>,
    /// When the server first found nothing to adopt of a run.
    pub(crate) missed: BTreeMap<(AgentId, TurnNumber), u64>,
    pub(crate) ledgers: BTreeMap<AgentId, Ledger>,
    /// The frames of each event, as the first client got them.
    pub(crate) frames: BTreeMap<(AgentId, u64), Bytes>,
    /// Rare things that have happened.
    pub(crate) reached: BTreeSet<&'static str>,
    pub(crate) life: u32,
    /// The server was stopped together with its agents.
    pub(crate) agents_stopped: bool,
    /// How many steps the server has taken since its start.
    pub(crate) steps: u64,
    pub(crate) crash_at: Option<u64>,
    /// The step at which the server crashes after its next start, whatever the swarm says.
    pub(crate) crash_next: Option<u64>,
    /// The test itself chose where the server crashes: it does so even if faults are over.
    crash_wanted: bool,
    pub(crate) crashed: bool,
    pub(crate) crashes_left: u64,
    pub(crate) jump_ms: i64,
    /// Permission requests for which a client was told that its answer settled them.
    pub(crate) settled: BTreeSet<(AgentId, String)>,
    /// How often the current append of an agent has failed.
    pub(crate) failed_appends: BTreeMap<AgentId, u64>,
    /// Appends that may still arrive, although whoever sent them knows nothing of it any more.
    pub(crate) late_appends: BTreeMap<AgentId, Vec<Append>>,
    /// Appends that arrive late if the server is killed now, by a number of their own.
    pub(crate) underway: BTreeMap<u64, Append>,
    pub(crate) appends_begun: u64,
    lived_ms: u64,
    pub(crate) outages: Outages,
    life_began: Option<Instant>,
}

/// What a step of the server does before it continues.
enum Pause {
    Nothing,
    Yield(u64),
    Sleep(u64),
    /// The server has crashed: nothing continues.
    Forever,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults, record: bool) -> Arc<Self> {
        Self::with(Dice::of(seed, "world"), (seed, faults, record), MemoryStore::new(seed), None)
    }

    /// The surroundings of one life of a node. Time goes on from `began`, at all nodes.
    pub(crate) fn of_node(
        dice: Dice,
        drawn: (u64, Faults, bool),
        disk: MemoryStore,
        place: Place,
        began: Instant,
    ) -> Arc<Self> {
        let world = Self::with(dice, drawn, disk, Some(place));
        world.lock().life_began = Some(began);
        world
    }

    fn with(
        dice: Dice,
        (seed, faults, record): (u64, Faults, bool),
        disk: MemoryStore,
        node: Option<Place>,
    ) -> Arc<Self> {
        let state = State {
            dice,
            trace: Trace::new(record),
            violation: None,
            processes: BTreeMap::new(),
            missed: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            frames: BTreeMap::new(),
            reached: BTreeSet::new(),
            life: 0,
            agents_stopped: false,
            steps: 0,
            crash_at: None,
            crash_next: None,
            crash_wanted: false,
            crashed: false,
            crashes_left: faults.crashes,
            jump_ms: 0,
            settled: BTreeSet::new(),
            failed_appends: BTreeMap::new(),
            late_appends: BTreeMap::new(),
            underway: BTreeMap::new(),
            appends_begun: 0,
            lived_ms: 0,
            outages: Outages::default(),
            life_began: None,
        };
        Arc::new(Self {
            seed,
            faults,
            disk,
            node,
            halt: Notify::new(),
            ended: Notify::new(),
            saving: Notify::new(),
            calm: CancellationToken::new(),
            service: Mutex::new(None),
            state: Mutex::new(state),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn service(&self) -> MutexGuard<'_, Option<AgentService>> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server starts or restarts.
    pub(crate) fn begin_life(&self) {
        let mut state = self.lock();
        state.life += 1;
        state.steps = 0;
        state.crashed = false;
        state.failed_appends.clear();
        state.life_began = Some(Instant::now());
        let within = self.faults.crash_within;
        let doomed = 0 < state.crashes_left && !self.calm.is_cancelled();
        state.crash_at = doomed.then(|| 1 + state.dice.below(within));
        let wanted = state.crash_next.take();
        (state.crash_at, state.crash_wanted) = (wanted.or(state.crash_at), wanted.is_some());
        let life = u64::from(state.life);
        state.note("life", life, 0);
    }

    /// The server has ended, by a crash or a stop. Some supervisors may die with it.
    pub(crate) fn end_life(&self) {
        let mut state = self.lock();
        let now = state.now_ms();
        if state.crashed {
            state.crashes_left = state.crashes_left.saturating_sub(1);
            state.reached.insert("a crash");
            let State { processes, dice, reached, .. } = &mut *state;
            for process in processes.values_mut() {
                if process.is_alive(now) && dice.chance(self.faults.supervisor_dies) {
                    process.lose(now);
                    reached.insert("a supervisor died with the server");
                }
            }
        }
        state.lived_ms = now;
        state.life_began = None;
    }

    /// One step of the server at a port: it may crash here, and other tasks may run first.
    pub(crate) async fn step(&self, what: &'static str) {
        let checked = |service: &AgentService| {
            bounds::memory(service, &self.faults).and_then(|()| bounds::needs(service, self))
        };
        let held = self.service().as_ref().map(checked);
        self.check(held.unwrap_or(Ok(())));
        self.while_stopped().await;
        let pause = self.take_step(what);
        match pause {
            Pause::Nothing => return,
            Pause::Yield(times) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
            }
            Pause::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Pause::Forever => std::future::pending().await,
        }
        self.while_stopped().await;
        if self.lock().crashed {
            std::future::pending::<()>().await;
        }
    }

    /// Waits while the process of this node is stopped.
    async fn while_stopped(&self) {
        if let Some(place) = &self.node {
            place.while_stopped().await;
        }
    }

    /// Kills the process of this node. Returns the processes of its agents, which live on.
    pub(crate) fn kill(&self) -> BTreeMap<(AgentId, TurnNumber), Process> {
        let mut state = self.lock();
        state.crashed = true;
        std::mem::take(&mut state.processes)
    }

    /// What the killed server of a node had sent. Its tasks do not end, so they do not say it themselves.
    pub(crate) fn take_late_appends(&self) -> Vec<Append> {
        let mut state = self.lock();
        let late = std::mem::take(&mut state.late_appends).into_values().flatten();
        late.chain(std::mem::take(&mut state.underway).into_values()).collect()
    }

    fn take_step(&self, what: &'static str) -> Pause {
        let mut state = self.lock();
        if state.crashed || state.violation.is_some() {
            return Pause::Forever;
        }
        state.steps += 1;
        let steps = state.steps;
        state.note(what, steps, 0);
        if state.crash_at == Some(steps) && (state.crash_wanted || !self.calm.is_cancelled()) {
            state.crashed = true;
            self.halt.notify_one();
            return Pause::Forever;
        }
        let delay = if self.calm.is_cancelled() { 0 } else { self.faults.store_delay_ms };
        if 0 < delay && state.dice.chance(SLEEP_PER_MILLE) {
            return Pause::Sleep(state.dice.between(1, delay));
        }
        match state.dice.below(6) {
            0 => Pause::Yield(1),
            1 => Pause::Yield(2),
            _ => Pause::Nothing,
        }
    }

    /// A promise was broken: the simulation ends.
    pub(crate) fn fail(&self, how: impl Into<String>) {
        self.lock().fail(how);
        self.halt.notify_one();
    }

    /// Fails if the check did.
    pub(crate) fn check(&self, checked: Result<(), String>) {
        if let Err(how) = checked {
            self.fail(how);
        }
    }

    pub(crate) fn reach(&self, what: &'static str) {
        self.lock().reached.insert(what);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.lock().now_ms()
    }

    /// Whether something with that chance happens. Never, if faults are over.
    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        0 < per_mille && !self.calm.is_cancelled() && self.lock().dice.chance(per_mille)
    }

    /// Whether the store is failing now.
    pub(crate) fn outage(&self) -> bool {
        if self.faults.outage_ms == 0 || self.calm.is_cancelled() {
            return false;
        }
        let mut state = self.lock();
        let now = state.now_ms();
        if state.outages.is_down(now) {
            return true;
        }
        let begins = state.dice.chance(10);
        if begins {
            let lasts_ms = state.dice.between(1, self.faults.outage_ms);
            state.outages.begin(now, lasts_ms);
        }
        begins
    }

    /// Whether a process of that agent was asked to stop. Nothing is saved while the pump waits until the store has
    /// saved the reason and the process has been told.
    pub(crate) fn is_stopped(&self, agent: AgentId) -> bool {
        let state = self.lock();
        let of_agent = state.processes.iter().filter(|((owner, _), _)| *owner == agent);
        of_agent.map(|(_, process)| process.stopped_ms).any(|stopped| stopped.is_some())
    }

    /// Kills processes. Returns how many there were.
    pub(crate) fn end_processes(&self, which: impl Fn(&(AgentId, TurnNumber)) -> bool) -> u32 {
        let mut state = self.lock();
        let now = state.now_ms();
        let mut ended = 0;
        for (_, process) in state.processes.iter_mut().filter(|(key, _)| which(key)) {
            if process.is_alive(now) {
                process.lose(now);
                ended += 1;
            }
        }
        ended
    }

    /// Whether an agent waits for an answer to this permission request, and nothing has ended or stopped it.
    pub(crate) fn asks(&self, agent: AgentId, question: &str) -> bool {
        let mut state = self.lock();
        let now = state.now_ms();
        let mut runs = state.processes.iter_mut().filter(|((of, _), _)| *of == agent);
        runs.any(|(_, process)| process.asks(now, question))
    }

    pub(crate) fn jump_clock(&self, ms: i64) {
        self.lock().jump_ms += ms;
    }

    /// Brings the ledger of an agent up to date with the disk.
    pub(crate) fn sync(&self, agent: AgentId) {
        let mut state = self.lock();
        let now = state.now_ms();
        let ledger = state.ledgers.entry(agent).or_default();
        let saved = self.disk.saved_after(agent, ledger.events.len());
        let checked = saved.iter().try_for_each(|event| ledger.add(event, now));
        let checked =
            checked.and_then(|()| saved.iter().try_for_each(|event| self.is_reaped(&state, agent, event)));
        drop(state);
        if saved.iter().any(|event| matches!(event.body, EventBody::TurnResult(_))) {
            self.ended.notify_waiters();
        }
        self.check(checked);
    }

    /// When a cancelled turn is saved as such, none of its processes may be left.
    fn is_reaped(&self, state: &State, agent: AgentId, event: &Event) -> Result<(), String> {
        let cancelled =
            matches!(&event.body, EventBody::TurnResult(result) if result.outcome == TurnOutcome::Cancelled);
        if !cancelled {
            return Ok(());
        }
        let turns = self.disk.saved_turns(agent);
        let Some(run) = turns.iter().find(|turn| turn.number == event.turn).map(|turn| turn.run) else {
            return Ok(());
        };
        if turns.iter().any(|turn| turn.run == run && event.turn < turn.number) {
            // The agent ended this turn by itself and began another one. The same is checked at the end of that turn.
            return Ok(());
        }
        let process = state.processes.get(&(agent, run));
        match process.filter(|process| process.is_alive(state.now_ms()) && !process.unread) {
            Some(_) => {
                Err(format!("G14: turn {} is told to be cancelled, and its processes live", event.turn))
            }
            None => Ok(()),
        }
    }
}

impl State {
    fn fail(&mut self, how: impl Into<String>) {
        let how = how.into();
        self.note("violation", 0, 0);
        self.violation.get_or_insert(how);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let lived = self.life_began.map_or(0, |began| began.elapsed().as_millis() as u64);
        self.lived_ms + lived
    }

    pub(crate) fn note(&mut self, what: &'static str, a: u64, b: u64) {
        let now = self.now_ms();
        self.trace.note(now, what, a, b);
    }
}
