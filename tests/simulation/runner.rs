//! The simulated runner: processes that play scripts, and a spool that is read through the real framer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, TurnNumber};
use tokenrail_ports::{
    Adoption, IAgentRun, IAgentRunner, IRuns, OutputLine, PermissionAnswer, Probe, RunEnd, RunOutput,
    RunnerError, TurnOrder,
};
use tokenrail_runner::{FramerLimits, LineFramer};

use crate::bounds;
use crate::faults::Cut;
use crate::nodes::Place;
use crate::planted_outside;
use crate::process::{Look, NEVER, Process};
use crate::script::Author;
use crate::world::{State, World};

pub(crate) const OUTPUT_LINES: usize = 8;
pub(crate) const FRAMER: FramerLimits = FramerLimits { line_bytes: 4096, head_bytes: 64 };

/// Starts simulated agents.
pub(crate) struct SimRunner(pub(crate) Arc<World>);

struct SimRun {
    world: Arc<World>,
    key: (AgentId, TurnNumber),
    offset: usize,
    /// The output up to here was saved before the run was adopted.
    committed: u64,
    framer: LineFramer,
    finished: bool,
    /// The server has asked it to stop.
    stopped: bool,
}

impl SimRunner {
    fn open(&self, key: (AgentId, TurnNumber), committed: u64) -> Box<dyn IAgentRun> {
        let framer = LineFramer::new(FRAMER);
        Box::new(SimRun {
            world: Arc::clone(&self.0),
            key,
            offset: 0,
            committed,
            framer,
            finished: false,
            stopped: false,
        })
    }
}

#[async_trait]
impl IAgentRunner for SimRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        let world = &self.0;
        let asked = world.node.as_ref().map(Place::woken_ms);
        world.step("start").await;
        if 0 < world.faults.start_delay_ms && !world.calm.is_cancelled() {
            let delay = world.lock().dice.below(world.faults.start_delay_ms);
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        if world.chance(world.faults.start_error) {
            world.reach("an agent could not be started");
            return Err(RunnerError::ProgramMissing { program: "claude".to_owned() });
        }
        if let Some(place) = &world.node {
            world.check(place.starts(order, world, asked != Some(place.woken_ms())));
        }
        let key = (order.agent, order.run);
        let script = Author::new(&world.faults, world.seed, order).script();
        let mut checked = Ok(());
        {
            let mut state = world.lock();
            let now = state.now_ms();
            state.note("spawn", u64::from(order.run.0), hash_of(order.agent));
            let mut others = state.processes.iter().filter(|((agent, _), _)| *agent == order.agent);
            // If the output of a process cannot be read, the server asks it to stop and does not wait for its end.
            if others.any(|(_, process)| process.is_alive(now) && !process.unread) {
                checked = Err(format!("two processes of agent {} at once", order.agent));
            }
            if state.processes.insert(key, Process::start(now, script)).is_some() {
                checked = Err(format!("turn {} of agent {} was run twice", order.run, order.agent));
            }
        }
        world.check(checked);
        world.step("started").await;
        Ok(self.open(key, 0))
    }

    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError> {
        self.0.step("adopt").await;
        let key = (order.agent, order.run);
        let mut state = self.0.lock();
        let now = state.now_ms();
        let process = state.processes.get_mut(&key).map(|process| process.heard_ms = now);
        drop(state);
        if process.is_some() {
            self.0.reach("an agent was adopted");
            Ok(Adoption::Run(self.open(key, committed)))
        } else {
            self.0.reach("there was nothing to adopt");
            let mut state = self.0.lock();
            let now = state.now_ms();
            state.missed.entry(key).or_insert(now);
            Ok(Adoption::Gone)
        }
    }

    async fn probe(&self) -> Probe {
        Probe::default()
    }

    fn needs_home(&self) -> bool {
        !self.0.faults.needs_no_home
    }
}

/// The runs of the simulated agents.
pub(crate) struct SimRuns(pub(crate) Arc<World>);

#[async_trait]
impl IRuns for SimRuns {
    async fn sweep(&self, keep: &BTreeSet<(AgentId, TurnNumber)>) -> Result<u32, RunnerError> {
        self.0.step("sweep").await;
        Ok(self.0.end_processes(|key| !keep.contains(key)))
    }

    async fn forget(&self, agent: AgentId) -> Result<(), RunnerError> {
        self.0.step("forget").await;
        self.0.end_processes(|(of, _)| *of == agent);
        Ok(())
    }

    async fn has_room(&self) -> bool {
        true
    }

    async fn end(&self, agent: AgentId, run: TurnNumber) -> Result<(), RunnerError> {
        self.0.end_processes(|key| *key == (agent, run));
        Ok(())
    }
}

fn hash_of(agent: AgentId) -> u64 {
    agent.as_uuid().as_u128() as u64
}

impl SimRun {
    fn lines(&mut self) -> Vec<OutputLine> {
        let lines = std::iter::from_fn(|| self.framer.next_line()).take(OUTPUT_LINES).collect();
        planted_outside::lines(lines, self.committed)
    }

    fn look(&self) -> Option<Look> {
        let mut state = self.world.lock();
        let now = state.now_ms();
        let most = match self.world.faults.cut {
            Cut::EveryByte | Cut::Pieces => state.dice.between(1, 600) as usize,
            Cut::Lines | Cut::Burst => 1 << 16,
        };
        let process = state.processes.get_mut(&self.key)?;
        Some(process.look(now, self.offset, most))
    }

    async fn wait(&self, until: u64) {
        let changed = {
            let state = self.world.lock();
            state.processes.get(&self.key).map(|process| Arc::clone(&process.changed))
        };
        let Some(changed) = changed else { return };
        let ms = until.saturating_sub(self.world.now_ms());
        let sleep = async {
            if until == NEVER {
                std::future::pending::<()>().await;
            } else {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        };
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = sleep => {}
        }
    }
}

#[async_trait]
impl IAgentRun for SimRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        self.world.step("look").await;
        if self.stopped && !planted_outside::is_reaped() {
            return Ok(RunOutput::Ended(RunEnd::default()));
        }
        loop {
            let lines = self.lines();
            if !lines.is_empty() {
                // In a flood, the server gets these lines long after they were printed, and its timers start now.
                let mut state = self.world.lock();
                let now = state.now_ms();
                if let Some(process) = state.processes.get_mut(&self.key) {
                    process.heard_ms = now;
                }
                return Ok(RunOutput::Lines(lines));
            }
            if self.world.chance(self.world.faults.spool_error) {
                self.world.reach("the spool could not be read");
                if let Some(process) = self.world.lock().processes.get_mut(&self.key) {
                    process.unread = true;
                }
                return Err(RunnerError::Io(std::io::ErrorKind::Other.into()));
            }
            match self.look() {
                Some(Look::Output(output)) => {
                    self.offset += output.len();
                    self.framer.feed(output);
                }
                Some(Look::Later(until)) => self.wait(until).await,
                Some(Look::Ended(end)) => {
                    if !std::mem::replace(&mut self.finished, true)
                        && let Some(line) = self.framer.finish()
                    {
                        return Ok(RunOutput::Lines(vec![line]));
                    }
                    return Ok(RunOutput::Ended(end));
                }
                None => return Err(RunnerError::Io(std::io::ErrorKind::NotFound.into())),
            }
        }
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        self.world.step("stop").await;
        if !planted_outside::heeds_cancels() {
            return Ok(());
        }
        self.stopped = true;
        let mut state = self.world.lock();
        let now = state.now_ms();
        let State { processes, outages, .. } = &mut *state;
        let mut checked = Ok(());
        if let Some(process) = processes.get_mut(&self.key) {
            if process.stopped_ms.is_none() {
                checked = bounds::stopped(process, self.key, (now, outages), &self.world.faults);
            }
            process.stop(now);
        }
        drop(state);
        self.world.check(checked);
        Ok(())
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        self.world.step("answer").await;
        let mut state = self.world.lock();
        let now = state.now_ms();
        if let Some(process) = state.processes.get_mut(&self.key) {
            process.answer(now, &answer.request_id, answer.reply.first_option());
        }
        drop(state);
        if self.stopped {
            self.world.fail("Q5: an agent was given an answer after it was asked to stop");
        }
        Ok(())
    }

    async fn leave(&mut self) {
        self.world.step("discard").await;
    }
}
