//! Readers that go on at another node when theirs is gone.

use std::time::Duration;

use tokenrail_application::{AfterLastTurn, Next, Refusal, StreamEnd};
use tokenrail_domain::{AgentId, Event, Sequence};
use tokio::time::sleep;

use super::Cluster;
use super::clients::any;
use super::node::Life;
use crate::dice::Dice;

/// How late an event may be, in virtual time, whatever becomes of hints. The same of the news that an agent is purged.
const LATE_MS: u64 = 1500;
/// How often a client that knows that an agent is purged asks for it again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

pub(super) struct Reader {
    pub(super) slot: usize,
    number: usize,
    dice: Dice,
    pub(super) seen: Vec<Event>,
}

impl Reader {
    pub(super) fn new(cluster: &Cluster, number: usize) -> Self {
        let dice = cluster.dice(&format!("reader {number}"));
        Self { slot: number % cluster.faults.slots, number, dice, seen: Vec::new() }
    }

    pub(super) async fn read(&mut self, cluster: &Cluster) {
        loop {
            sleep(Duration::from_millis(self.dice.pick(&[1, 50, 500]))).await;
            if cluster.told_gone.borrow().contains(&self.number) {
                sleep(ASK_AGAIN).await;
            }
            let agent = cluster.agents.borrow().get(&self.slot).copied();
            let Some((agent, life)) = agent.zip(any(cluster, &mut self.dice)) else { continue };
            let stay = self.dice.pick(&[100, 5000, 30_000, 90_000]);
            let leaves = async {
                sleep(Duration::from_millis(stay)).await;
                // In calm weather, nothing but the server itself brings the rest.
                if cluster.calm.is_cancelled() && !life.is_stopped() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                () = life.ended.cancelled() => cluster.reach("a reader went on at another node"),
                () = self.follow(cluster, &life, agent) => {}
                () = leaves => {}
            }
        }
    }

    async fn follow(&mut self, cluster: &Cluster, life: &Life, agent: AgentId) {
        if let Some(left) = cluster.cut_off.borrow_mut().remove(&self.number) {
            self.seen.truncate(left);
        }
        let cursor = Sequence(self.seen.len() as u64);
        let is_purged = || cluster.disk.saved_agent(agent).is_none();
        let was_purged = is_purged();
        let mut follower = match life.service.follow(agent, Some(cursor), AfterLastTurn::Wait).await {
            Ok(_) if was_purged && is_purged() => {
                return cluster.fail(format!("G27: agent {} is purged, and can be followed", self.slot));
            }
            Ok((_, follower)) => follower,
            Err(Refusal::NotFound(_)) => return self.is_told_gone(cluster, agent),
            Err(_) => return,
        };
        let stay_began = cluster.now_ms();
        let _following = Following::begin(cluster, self.number, life);
        loop {
            let page = match follower.next().await {
                Ok(Next::Page(page)) => page,
                Ok(Next::End(StreamEnd::AgentDeleted)) => {
                    self.check_gone(cluster, life, agent, stay_began);
                    return self.is_told_gone(cluster, agent);
                }
                Ok(Next::End(_)) | Err(_) => return,
            };
            self.check_gone(cluster, life, agent, stay_began);
            for event in page.events() {
                let expected = self.seen.len() as u64 + 1;
                if event.sequence.0 != expected {
                    let got = event.sequence;
                    cluster.fail(format!("G2: a reader got {got} of agent {}, not {expected}", self.slot));
                    return;
                }
                self.check_late(cluster, life, event, stay_began);
                self.seen.push(event.clone());
            }
        }
    }

    /// The reader is told that the agent is deleted or unknown.
    fn is_told_gone(&self, cluster: &Cluster, agent: AgentId) {
        if cluster.disk.saved_agent(agent).is_none() {
            cluster.reach("a reader was told that an agent is gone");
            cluster.told_gone.borrow_mut().insert(self.number);
        } else if !cluster.promises.may_be_deleted(agent) {
            cluster.fail(format!("agent {} is told to be deleted, and is not", self.slot));
        }
    }

    /// A reader of a purged agent is told so soon, and gets none of its events any more.
    fn check_gone(&self, cluster: &Cluster, life: &Life, agent: AgentId, stay_began: u64) {
        if cluster.disk.saved_agent(agent).is_some() {
            return;
        }
        let Some(purged) = cluster.promises.purged_ms(agent) else { return };
        if let Some(late) = late_ms(cluster, life, purged.max(stay_began)) {
            let (slot, now) = (self.slot, cluster.now_ms());
            cluster
                .fail(format!("G27: a reader of agent {slot} goes on {late} ms after its purge, at {now}"));
        }
    }

    fn check_late(&self, cluster: &Cluster, life: &Life, event: &Event, stay_began: u64) {
        let agent = cluster.agents.borrow()[&self.slot];
        let Some(saved) = cluster.promises.saved_ms(event.sequence, agent) else { return };
        if let Some(late) = late_ms(cluster, life, saved.max(stay_began)) {
            let (number, now) = (event.sequence, cluster.now_ms());
            cluster.fail(format!("G30: {number} came {late} ms late, at {now}"));
        }
    }
}

/// How much too late it is now for something that a node has had to tell since then.
fn late_ms(cluster: &Cluster, life: &Life, since: u64) -> Option<u64> {
    let place = life.place()?;
    let late = cluster.now_ms().saturating_sub(since.max(place.woken_ms()));
    let is_prompt = cluster.is_prompt && cluster.failovers.get() == 0 && !place.is_stopped();
    (is_prompt && LATE_MS < late).then_some(late)
}

/// As long as it is there, a reader follows at a node.
struct Following<'a>(&'a Cluster, usize);

impl<'a> Following<'a> {
    fn begin(cluster: &'a Cluster, reader: usize, life: &Life) -> Self {
        if let Some(place) = life.place() {
            cluster.following.borrow_mut().insert(reader, place.node());
        }
        Self(cluster, reader)
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.following.borrow_mut().remove(&self.1);
    }
}
