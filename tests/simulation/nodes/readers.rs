//! Readers that go on at another node when theirs is gone.

use std::time::Duration;

use tokenrail_application::{Next, StreamEnd};
use tokenrail_domain::{AgentId, Event, Sequence};
use tokio::time::sleep;

use super::Cluster;
use super::clients::any;
use super::node::Life;
use crate::dice::Dice;

/// How late an event may be, in virtual time, whatever becomes of hints.
const LATE_MS: u64 = 1500;

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
        let Ok((_, mut follower)) = life.service.follow(agent, Some(cursor), true).await else { return };
        let stay_began = cluster.now_ms();
        let _following = Following::begin(cluster, self.number, life);
        loop {
            let page = match follower.next().await {
                Ok(Next::Page(page)) => page,
                Ok(Next::End(StreamEnd::AgentDeleted)) => {
                    return cluster.fail(format!("agent {} is told to be deleted, and is not", self.slot));
                }
                Ok(Next::End(_)) | Err(_) => return,
            };
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

    fn check_late(&self, cluster: &Cluster, life: &Life, event: &Event, stay_began: u64) {
        let Some(place) = life.place() else { return };
        let Some(saved) = cluster.promises.saved_ms(event.sequence, cluster.agents.borrow()[&self.slot])
        else {
            return;
        };
        let since = saved.max(stay_began).max(place.woken_ms());
        let late = cluster.now_ms().saturating_sub(since);
        if cluster.is_prompt && cluster.failovers.get() == 0 && !place.is_stopped() && LATE_MS < late {
            let (number, now) = (event.sequence, cluster.now_ms());
            cluster.fail(format!("G30: {number} came {late} ms late, at {now}"));
        }
    }
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
