//! The lives of a node, and what goes wrong in them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokenrail_application::{AgentService, AtStop, LifecycleEvent};
use tokenrail_domain::{AgentId, AgentStatus, NodeId, TurnNumber};
use tokenrail_ports::AgentFilter;
use tokenrail_ports::testing::MemoryBus;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Cluster, Place};
use crate::dice::Dice;
use crate::planted_outside;
use crate::process::Process;
use crate::simulation::outside;
use crate::world::World;

/// A node: its processes live on between its lives.
pub(super) struct Node {
    pub(super) id: NodeId,
    life: RefCell<Option<Rc<Life>>>,
    processes: RefCell<BTreeMap<(AgentId, TurnNumber), Process>>,
    lives: Cell<u64>,
    is_gone: Cell<bool>,
}

/// From a start of the server to its end.
pub(super) struct Life {
    pub(super) world: Arc<World>,
    pub(super) service: AgentService,
    bus: Arc<MemoryBus>,
    pub(super) ended: CancellationToken,
    /// It has recovered. Before that, a server does not listen: no client can talk to it.
    pub(super) is_serving: Cell<bool>,
    /// It is being stopped in order.
    pub(super) is_closing: Cell<bool>,
    /// What a client knows that watches all agents.
    pub(super) told: RefCell<BTreeMap<AgentId, AgentStatus>>,
}

impl Life {
    /// Whether its process is stopped by a signal.
    pub(super) fn is_stopped(&self) -> bool {
        self.place().is_some_and(Place::is_stopped)
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.world.node.as_ref()
    }
}

impl Node {
    pub(super) fn new(id: NodeId) -> Self {
        Self {
            id,
            life: RefCell::default(),
            processes: RefCell::default(),
            lives: Cell::new(0),
            is_gone: Cell::new(false),
        }
    }

    /// Whether it never comes back.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// The server, while it runs.
    pub(super) fn life(&self) -> Option<Rc<Life>> {
        self.life.borrow().clone()
    }

    fn begin(&self, cluster: &Cluster) -> Rc<Life> {
        self.lives.set(self.lives.get() + 1);
        let dice = cluster.dice(&format!("node {} life {}", self.id, self.lives.get()));
        let place = Place::new(self.id, Arc::clone(&cluster.promises));
        let drawn = (cluster.seed, cluster.faults.clone(), cluster.record);
        let world = World::of_node(dice, drawn, cluster.disk.as_node(self.id), place, cluster.began);
        world.lock().processes = self.processes.take();
        if cluster.calm.is_cancelled() {
            world.calm.cancel();
        }
        let bus = Arc::new(cluster.bus.another());
        let outside = outside(&world, bus.clone());
        let limits = planted_outside::limits(cluster.faults.limits);
        let service = AgentService::new(outside, limits, Handle::current());
        let (ended, told) = (CancellationToken::new(), RefCell::default());
        let (is_serving, is_closing) = (Cell::default(), Cell::default());
        Rc::new(Life { world, service, bus, ended, is_serving, is_closing, told })
    }

    /// Ends the process of the server. Its tasks never go on.
    pub(super) fn kill(&self, cluster: &Cluster) {
        if let Some(life) = self.life.take() {
            self.end(cluster, &life);
        }
    }

    fn end(&self, cluster: &Cluster, life: &Life) {
        life.ended.cancel();
        life.bus.break_off();
        let processes = life.world.kill();
        cluster.keep_late_appends(self.id, life);
        if !cluster.faults.needs_no_home {
            *self.processes.borrow_mut() = processes;
        }
        let state = life.world.lock();
        cluster.note(state.trace.hash);
        cluster.reached.borrow_mut().extend(state.reached.iter());
        if cluster.record {
            let lines = format!("node {} life {}\n{}\n", self.id, self.lives.get(), state.trace.last_lines());
            cluster.lines.borrow_mut().push_str(&lines);
        }
    }

    /// Starts the server again and again.
    pub(super) async fn live(&self, cluster: &Cluster) {
        let mut dice = cluster.dice(&format!("fate of {}", self.id));
        sleep(Duration::from_millis(dice.below(5000))).await;
        loop {
            let life = self.begin(cluster);
            *self.life.borrow_mut() = Some(Rc::clone(&life));
            let down_ms = tokio::select! {
                biased;
                () = life.world.halt.notified() => {
                    let how = life.world.lock().violation.clone();
                    cluster.fail(format!("node {} at {}: {}", self.id, cluster.now_ms(), how.unwrap_or_default()));
                    0
                }
                down_ms = live_once(cluster, &life, &mut dice) => down_ms,
            };
            self.kill(cluster);
            if cluster.failed.is_cancelled() {
                return;
            }
            if cluster.never_back == Some(self.id) && !cluster.calm.is_cancelled() {
                cluster.reach("a node never came back");
                self.is_gone.set(true);
                return;
            }
            sleep(Duration::from_millis(down_ms)).await;
        }
    }
}

/// One life. Returns how long the server is down after it.
async fn live_once(cluster: &Cluster, life: &Life, dice: &mut Dice) -> u64 {
    let work = async {
        while life.service.recover().await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
        life.is_serving.set(true);
        watch(life).await;
    };
    tokio::select! {
        biased;
        _ = life.service.fenced() => {
            cluster.reach("a node learned that it was declared lost");
            10
        }
        down_ms = suffer(cluster, life, dice) => down_ms,
        () = work => 0,
    }
}

/// What goes wrong in one life, until it ends.
async fn suffer(cluster: &Cluster, life: &Life, dice: &mut Dice) -> u64 {
    loop {
        let quiet = Duration::from_millis(dice.between(500, 60_000));
        tokio::select! {
            biased;
            () = cluster.calm.cancelled() => return std::future::pending().await,
            () = sleep(quiet) => {}
        }
        let Some(place) = life.place() else { return 0 };
        if cluster.must_be_quiet() {
            continue;
        }
        let short_or_long = dice.pick(&[10, 5000, 20_000, 35_000, 45_000, 70_000]);
        match dice.below(10) {
            0..3 => {
                // After a failover it is dead at once: what it saved before is lost, and it saves nothing again.
                if !cluster.may_fail_over(place.node(), dice).await {
                    cluster.until_it_saves(life).await;
                }
                cluster.reach("a node was killed");
                return short_or_long;
            }
            3..6 => {
                cluster.reach("a node was stopped by a signal");
                place.stop(true, cluster.now_ms());
                sleep(Duration::from_millis(short_or_long)).await;
                place.stop(false, cluster.now_ms());
            }
            6 | 7 => {
                cluster.reach("the bus of a node was broken");
                life.bus.break_off();
                sleep(Duration::from_millis(dice.between(100, 20_000))).await;
                life.bus.repair();
            }
            8 => {
                cluster.reach("a node could not beat");
                place.cut_off(Some(cluster.now_ms()));
                sleep(Duration::from_millis(dice.between(1000, 50_000))).await;
                place.cut_off(None);
            }
            _ => {
                cluster.reach("a node was stopped in order");
                life.is_closing.set(true);
                life.service.shutdown(AtStop::Keep, Duration::from_mins(1)).await;
                return short_or_long;
            }
        }
    }
}

/// A client that watches all agents. It never ends.
async fn watch(life: &Life) {
    let mut news = life.service.lifecycle_events();
    list(life).await;
    while let Some(told) = news.next().await {
        let Ok(told) = told else {
            list(life).await;
            continue;
        };
        let mut known = life.told.borrow_mut();
        match &told.event {
            LifecycleEvent::Created { agent, .. } => {
                known.insert(agent.agent.id, agent.agent.status);
            }
            LifecycleEvent::Updated { agent, status, .. } => {
                known.insert(*agent, *status);
            }
            LifecycleEvent::Deleted { agent, .. } => {
                known.remove(agent);
            }
        }
    }
    std::future::pending::<()>().await;
}

async fn list(life: &Life) {
    loop {
        let filter = AgentFilter { limit: 50, ..AgentFilter::default() };
        if let Ok(page) = life.service.list(filter).await {
            let listed = page.items.iter().map(|listed| (listed.agent.id, listed.agent.status));
            *life.told.borrow_mut() = listed.collect();
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}
