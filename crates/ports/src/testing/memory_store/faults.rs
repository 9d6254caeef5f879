//! How a test makes the memory store fail.

use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId, TurnNumber};
use tokio::time::sleep;

use super::{LostTail, MemoryStore};
use crate::{StoreError, StoreResult};

/// How an append fails.
#[derive(Debug)]
pub enum AppendFault {
    /// Nothing is saved, and the caller gets the error.
    BeforeSaving(StoreError),
    /// The append is saved, but the caller still gets the error.
    AfterSaving(StoreError),
}

impl MemoryStore {
    /// Makes the next append fail that has no fault yet. Two calls make the next two appends fail.
    pub fn fail_next_append(&self, fault: AppendFault) {
        self.lock().faults.push_back(fault);
    }

    /// Makes all appends after the next `left` fail, as if the server had died there. `None` lets all succeed again.
    pub fn take_appends(&self, left: Option<u32>) {
        self.lock().appends_left = left;
    }

    /// Makes the next command that changes an agent or its turns, or that takes it over, succeed, but report that its
    /// outcome is unknown.
    pub fn lose_next_answer(&self) {
        self.lock().answer_lost = true;
    }

    /// The answer to a command, unless that is to be lost.
    pub(super) fn answered<T>(&self, answer: StoreResult<T>) -> StoreResult<T> {
        let lost = std::mem::take(&mut self.lock().answer_lost);
        if lost { Err(StoreError::OutcomeUnknown("told to fail".into())) } else { answer }
    }

    /// Makes the store run the next creation of an agent again after it was saved, and give the answer of the second
    /// run: as if it had not learned the outcome of the first.
    pub fn create_next_twice(&self) {
        self.lock().creates_twice = 1;
    }

    /// Makes the next `times` cancels of agents fail, as if the store was busy.
    pub fn refuse_cancels(&self, times: u32) {
        self.lock().cancels_refused = times;
    }

    /// Makes the next `times` messages to agents fail, as if the store was busy.
    pub fn refuse_messages(&self, times: u32) {
        self.lock().messages_refused = times;
    }

    /// Makes the next `times` joins fail, as if the store was busy.
    pub fn refuse_joins(&self, times: u32) {
        self.lock().cluster.joins_refused = times;
    }

    /// Makes the next `times` creations of agents fail, as if the store was busy.
    pub fn refuse_creations(&self, times: u32) {
        self.lock().creations_refused = times;
    }

    /// Makes the next `times` reads of a journal fail, as if the store was busy.
    pub fn refuse_reads(&self, times: u32) {
        self.lock().reads_refused = times;
    }

    /// Makes reads of a journal or of one agent take so long from here on, as while the database is away.
    pub fn delay_reads(&self, delay: Duration) {
        self.lock().reads_delay = delay;
    }

    pub(super) async fn wait_to_read(&self) {
        let delay = self.lock().reads_delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
    }

    /// Whether a creation must fail now.
    pub(super) fn is_creation_refused(&self) -> bool {
        let left = &mut self.lock().creations_refused;
        let is_refused = 0 < *left;
        *left = left.saturating_sub(1);
        is_refused
    }

    /// Makes the next `times` attempts of nodes to let all their agents go fail with this error. It is
    /// [`StoreError::Busy`] while the store catches up.
    pub fn refuse_leaving(&self, times: u32, error: fn() -> StoreError) {
        self.lock().leaving_refused = (times, error);
    }

    /// Sets whether the beats of all nodes fail, as if the store was away.
    pub fn refuse_beats(&self, refuse: bool) {
        self.lock().cluster.beats_refused = refuse;
    }

    /// A failover may have lost that turns have begun which wait now. A node that beats or joins later saves again what
    /// it knows.
    pub fn lose_starts(&self) {
        self.lock().lose_starts();
    }

    /// A standby receives nothing more from here on.
    pub fn fall_behind(&self) {
        self.lock().fall_behind();
    }

    /// That standby takes over while a node is dead, which cannot save again what it had saved. Each agent of that node
    /// is as the standby has it, unless somebody else has changed it since. Returns what is lost.
    pub fn fail_over(&self, dead: NodeId) -> Vec<LostTail> {
        self.lock().fail_over(dead)
    }

    /// Sets the store back to before the latest join of a node.
    pub fn forget_join(&self, node: NodeId) {
        let mut state = self.lock();
        state.cluster.nodes.entry(node).and_modify(|node| node.pulse.incarnation -= 1);
    }

    /// Makes reads of images fail, as if the database was damaged.
    pub fn damage_images(&self) {
        self.lock().images_damaged = true;
    }
    /// Removes one image of an agent's turn, which still lists it.
    pub fn lose_image(&self, agent: AgentId, turn: TurnNumber, position: usize) {
        self.lock().shelves.entry(agent).and_modify(|shelf| shelf.lose_image(turn, position));
    }

    /// Sets whether [`IAgentRepository::check`] succeeds.
    pub fn set_healthy(&self, healthy: bool) {
        self.lock().healthy = healthy;
    }
}
