//! A runner that plays a script: what an agent prints, where it waits, and how it ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use tokenrail_domain::{AgentId, TurnNumber};
use tokio::sync::Notify;

use crate::{
    Adoption, ExitStatus, IAgentRun, IAgentRunner, IRuns, Line, OutputLine, PermissionAnswer, Probe, RunEnd,
    RunOutput, RunnerError, TurnOrder,
};

/// One thing that a scripted agent does.
#[derive(Debug, Clone)]
pub enum Step {
    /// It prints these lines, which reach the reader together.
    Lines(Vec<String>),
    /// It prints a line that is longer than allowed.
    LongLine { length_bytes: u64 },
    /// It prints part of a line: `bytes` bytes without a line end.
    Unfinished { bytes: u64 },
    /// It waits for an answer to a permission request.
    UntilAnswered,
    /// It waits until the gate is opened.
    Gate(Arc<Notify>),
    /// It prints nothing more until it is cancelled.
    Hang,
    /// It ends its turn, and its process is idle. After a cancel, the process ends.
    Idle,
    /// It makes the read panic, as a bug would.
    Panic,
    /// It ends. A script without an end exits with 0.
    End(RunEnd),
}

impl Step {
    /// Prints one line by itself.
    pub fn line(line: impl Into<String>) -> Self {
        Self::Lines(vec![line.into()])
    }
}

/// A run, named by its agent and turn.
type RunKey = (AgentId, TurnNumber);

/// Plays one script for each turn, in the order in which the scripts were given. It hesitates: it yields to other tasks
/// before each output. It also implements [`IRuns`], for the runs that it has started.
#[derive(Debug, Default)]
pub struct ScriptedRunner {
    scripts: Mutex<VecDeque<Vec<Step>>>,
    adoptions: Mutex<VecDeque<Option<Vec<Step>>>>,
    /// The runs that are left, and their scripts.
    left: Arc<Mutex<BTreeMap<RunKey, Vec<Step>>>>,
    orders: Mutex<Vec<TurnOrder>>,
    cancels: Arc<Mutex<u32>>,
    deaf_to: Arc<Mutex<u32>>,
    failing_adoptions: Mutex<u32>,
    swept: Mutex<Vec<BTreeSet<RunKey>>>,
    ended: Mutex<Vec<RunKey>>,
    forgotten: Mutex<Vec<AgentId>>,
    dismissed: Mutex<Vec<AgentId>>,
    discards: Arc<Mutex<u32>>,
    answers: Arc<Mutex<Vec<PermissionAnswer>>>,
}

impl ScriptedRunner {
    /// Plays `scripts`, one for each start.
    pub fn new(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self { scripts: Mutex::new(scripts.into_iter().collect()), ..Self::default() }
    }

    /// Sets what the next adoption finds, in place of the runs that are left: a run from its first byte, or nothing.
    pub fn adopt_next(&self, script: Option<Vec<Step>>) {
        lock(&self.adoptions).push_back(script);
    }

    /// Makes the next `times` adoptions fail.
    pub fn fail_adoptions(&self, times: u32) {
        *lock(&self.failing_adoptions) = times;
    }

    /// The orders so far, of starts and of adoptions.
    pub fn orders(&self) -> Vec<TurnOrder> {
        lock(&self.orders).clone()
    }

    /// How many runs were cancelled.
    pub fn cancels(&self) -> u32 {
        *lock(&self.cancels)
    }

    /// Makes the next `times` cancels or answers fail.
    pub fn fail_messages(&self, times: u32) {
        *lock(&self.deaf_to) = times;
    }

    /// The runs that each sweep was asked to keep.
    pub fn swept(&self) -> Vec<BTreeSet<RunKey>> {
        lock(&self.swept).clone()
    }

    /// The runs that were ended without being adopted.
    pub fn ended(&self) -> Vec<RunKey> {
        lock(&self.ended).clone()
    }

    /// The agents that were forgotten.
    pub fn forgotten(&self) -> Vec<AgentId> {
        lock(&self.forgotten).clone()
    }

    /// The agents whose idle processes were dismissed.
    pub fn dismissed(&self) -> Vec<AgentId> {
        lock(&self.dismissed).clone()
    }

    /// The answers that were passed on to agents.
    pub fn answers(&self) -> Vec<PermissionAnswer> {
        lock(&self.answers).clone()
    }

    /// How many runs were left after their end.
    pub fn discards(&self) -> u32 {
        *lock(&self.discards)
    }

    fn remove(&self, is_chosen: impl Fn(&RunKey) -> bool) -> u32 {
        let mut left = lock(&self.left);
        let before = left.len();
        left.retain(|key, _| !is_chosen(key));
        (before - left.len()) as u32
    }

    fn run(&self, order: &TurnOrder, script: Vec<Step>) -> Box<dyn IAgentRun> {
        lock(&self.orders).push(order.clone());
        let (key, left) = ((order.agent, order.run), Arc::clone(&self.left));
        lock(&left).insert(key, script.clone());
        let cancels = Arc::clone(&self.cancels);
        let (deaf_to, discards) = (Arc::clone(&self.deaf_to), Arc::clone(&self.discards));
        let (answers, answered) = (Arc::clone(&self.answers), Notify::new());
        Box::new(ScriptedRun {
            key,
            left,
            steps: script.into(),
            offset: 0,
            cancelled: false,
            stop: Notify::new(),
            cancels,
            deaf_to,
            discards,
            answers,
            answered,
        })
    }
}

#[async_trait]
impl IAgentRunner for ScriptedRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        tokio::task::yield_now().await;
        let script = lock(&self.scripts).pop_front();
        match script {
            Some(script) => Ok(self.run(order, script)),
            None => Err(RunnerError::ProgramMissing { program: "scripted".to_owned() }),
        }
    }

    async fn adopt(&self, order: &TurnOrder, _committed: u64) -> Result<Adoption, RunnerError> {
        tokio::task::yield_now().await;
        if take_one(&self.failing_adoptions) {
            return Err(std::io::Error::other("told to fail").into());
        }
        let planned = lock(&self.adoptions).pop_front();
        let left = || lock(&self.left).get(&(order.agent, order.run)).cloned();
        Ok(match planned.unwrap_or_else(left) {
            Some(script) => Adoption::Run(self.run(order, script)),
            None => Adoption::Gone,
        })
    }

    async fn probe(&self) -> Probe {
        Probe { program: Some("scripted".to_owned()), ..Probe::default() }
    }

    async fn dismiss(&self, agent: AgentId) {
        lock(&self.dismissed).push(agent);
    }
}

#[async_trait]
impl IRuns for ScriptedRunner {
    async fn sweep(&self, keep: &BTreeSet<RunKey>) -> Result<u32, RunnerError> {
        lock(&self.swept).push(keep.clone());
        Ok(self.remove(|key| !keep.contains(key)))
    }

    async fn end(&self, agent: AgentId, run: TurnNumber) -> Result<(), RunnerError> {
        lock(&self.ended).push((agent, run));
        self.remove(|key| *key == (agent, run));
        Ok(())
    }

    async fn forget(&self, agent: AgentId) -> Result<(), RunnerError> {
        lock(&self.forgotten).push(agent);
        self.remove(|(of, _)| *of == agent);
        Ok(())
    }

    async fn has_room(&self) -> bool {
        true
    }
}

struct ScriptedRun {
    key: RunKey,
    left: Arc<Mutex<BTreeMap<RunKey, Vec<Step>>>>,
    steps: VecDeque<Step>,
    offset: u64,
    cancelled: bool,
    stop: Notify,
    cancels: Arc<Mutex<u32>>,
    deaf_to: Arc<Mutex<u32>>,
    discards: Arc<Mutex<u32>>,
    answers: Arc<Mutex<Vec<PermissionAnswer>>>,
    answered: Notify,
}

impl ScriptedRun {
    fn output(&mut self, line: Line, length: u64) -> OutputLine {
        self.offset += length + 1;
        OutputLine { line, end_offset: self.offset }
    }
}

#[async_trait]
impl IAgentRun for ScriptedRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        tokio::task::yield_now().await;
        loop {
            match self.steps.front().cloned() {
                Some(Step::Lines(lines)) => {
                    self.steps.pop_front();
                    let whole = |line: String| (line.len() as u64, Line::Whole(Bytes::from(line)));
                    let lines = lines.into_iter().map(whole);
                    let lines: Vec<_> = lines.map(|(length, line)| self.output(line, length)).collect();
                    return Ok(RunOutput::Lines(lines));
                }
                Some(Step::LongLine { length_bytes }) => {
                    self.steps.pop_front();
                    let line = Line::TooLong { head: Bytes::from_static(b"long"), length_bytes };
                    return Ok(RunOutput::Lines(vec![self.output(line, length_bytes)]));
                }
                Some(Step::Unfinished { bytes }) => {
                    self.steps.pop_front();
                    self.offset += bytes;
                    return Ok(RunOutput::Progress { offset: self.offset });
                }
                Some(Step::Gate(gate)) => {
                    tokio::select! {
                        () = gate.notified() => { self.steps.pop_front(); }
                        () = self.stop.notified() => self.steps.clear(),
                    }
                }
                Some(Step::UntilAnswered) => {
                    tokio::select! {
                        () = self.answered.notified() => { self.steps.pop_front(); }
                        () = self.stop.notified() => self.steps.clear(),
                    }
                }
                Some(Step::Hang) => {
                    self.stop.notified().await;
                    self.steps.pop_front();
                }
                Some(Step::Idle) if !self.cancelled => {
                    return Ok(RunOutput::Ended(RunEnd { idle: true, ..RunEnd::default() }));
                }
                Some(Step::Idle) => {
                    self.steps.pop_front();
                }
                Some(Step::Panic) => panic!("told to"),
                Some(Step::End(end)) => return Ok(RunOutput::Ended(end)),
                None => {
                    let status = if self.cancelled { ExitStatus::Signal(15) } else { ExitStatus::Code(0) };
                    return Ok(RunOutput::Ended(RunEnd { status, ..RunEnd::default() }));
                }
            }
        }
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        if take_one(&self.deaf_to) {
            return Err(std::io::Error::other("told to fail").into());
        }
        if !self.cancelled {
            self.cancelled = true;
            *lock(&self.cancels) += 1;
            self.stop.notify_one();
        }
        Ok(())
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        if take_one(&self.deaf_to) {
            return Err(std::io::Error::other("told to fail").into());
        }
        lock(&self.answers).push(answer.clone());
        self.answered.notify_one();
        Ok(())
    }

    async fn leave(&mut self) {
        lock(&self.left).remove(&self.key);
        *lock(&self.discards) += 1;
    }
}

/// Decrements the counter. Returns false if it was already 0.
fn take_one(left: &Mutex<u32>) -> bool {
    let mut left = lock(left);
    let one_less = left.checked_sub(1);
    *left = one_less.unwrap_or(0);
    one_less.is_some()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
