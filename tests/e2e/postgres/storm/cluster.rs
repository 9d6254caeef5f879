//! The servers, and what happens to them.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tokenrail_test_postgres::{Database, Flush, Replication, Server};

use super::super::config;
use super::super::nodes::{LOST_AFTER_S, node_with, pid_of};
use super::{Dice, PATIENCE, say};
use crate::follower::Place;
use crate::harness::TestServer;

const NODES: usize = 3;
/// How often the connections are ended between the last that an asynchronous standby receives and the failover.
const LOST_MOMENTS: usize = 3;

/// Until when a node is away, and how it comes back.
#[derive(Clone, Copy)]
enum Away {
    Killed(Instant),
    Stopped(Instant),
}

impl Away {
    fn until(self) -> Instant {
        match self {
            Self::Killed(until) | Self::Stopped(until) => until,
        }
    }
}

pub(super) struct Cluster {
    // They end before their database does.
    nodes: Vec<(TestServer, Option<Away>)>,
    database: Database,
    primary: Server,
    /// It becomes the primary once.
    standby: Option<Server>,
    replication: Replication,
    started: Instant,
}

impl Cluster {
    pub(super) fn start(started: Instant, replication: Replication) -> Self {
        let primary = Server::start(Flush::Off);
        let database = primary.database();
        // The standby inherits it. All commits wait for it after each restart of the primary.
        primary.sql("ALTER SYSTEM SET wal_retrieve_retry_interval = '200ms'");
        primary.sql("SELECT pg_reload_conf()");
        let standby = primary.standby(replication);
        let both = format!("{},{}", primary.address(), standby.address());
        let name = format!("/{}", database.name());
        let config = config(&database)
            .replace(&primary.address(), &both)
            .replace(&name, &format!("{name}?target_session_attrs=read-write"));
        let nodes = (0..NODES).map(|number| (node_with(config.clone(), &format!("node-{number}")), None));
        Self { nodes: nodes.collect(), database, primary, standby: Some(standby), replication, started }
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.servers().map(Place::of).collect()
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &TestServer> {
        self.nodes.iter().map(|(server, _)| server)
    }

    /// One of them, by any number.
    pub(super) fn server(&self, number: usize) -> &TestServer {
        &self.nodes[number % NODES].0
    }

    /// A folder for the files of a test.
    pub(super) fn folder(&self) -> &Path {
        self.database.folder()
    }

    pub(super) async fn storm(&mut self, faults: u64, dice: &mut Dice) {
        let failover = faults * 2 / 3;
        for fault in 0..faults {
            let next = Instant::now() + dice.millis(100, 1200);
            while Instant::now() < next {
                self.bring_back(Instant::now());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if fault == failover {
                match self.replication {
                    Replication::Synchronous => self.fail_over(),
                    Replication::Asynchronous => self.fail_over_and_lose(dice).await,
                }
                continue;
            }
            let (kind, at) = (dice.below(10), dice.index(NODES));
            let (shortly, long) = (dice.millis(0, 1500), dice.millis(500, 3000));
            let long = long + Duration::from_secs(LOST_AFTER_S + 1);
            match kind {
                0..=1 => self.kill(at, shortly),
                2 => self.kill(at, long),
                3 => self.stop(at, shortly),
                4 => self.stop(at, long),
                5..=7 => self.restart_postgres(at, shortly).await,
                _ => self.end_connections(),
            }
        }
    }

    /// Everything is up again.
    pub(super) fn calm(&mut self) {
        let last = self.nodes.iter().filter_map(|(_, away)| Some(away.as_ref()?.until())).max();
        self.bring_back(last.unwrap_or(self.started));
    }

    /// The nodes that were away until then, or before, are there again.
    fn bring_back(&mut self, then: Instant) {
        for (number, (server, away)) in self.nodes.iter_mut().enumerate() {
            let Some(due) = away.take_if(|away| away.until() <= then) else { continue };
            match due {
                Away::Killed(_) => server.start_again(),
                Away::Stopped(_) => kill_process(pid_of(server), Signal::CONT).unwrap(),
            }
            say(self.started, &format!("node {number} is back"));
        }
    }

    /// This node, or the next one that is there. At least one must stay.
    fn one_that_is_there(&self, at: usize) -> Option<usize> {
        let there = |number: &usize| self.nodes[*number].1.is_none();
        let more_than_one = 1 < (0..NODES).filter(there).count();
        (at..at + NODES).map(|number| number % NODES).find(there).filter(|_| more_than_one)
    }

    fn kill(&mut self, at: usize, away: Duration) {
        let Some(at) = self.one_that_is_there(at) else { return self.end_connections() };
        say(self.started, &format!("node {at} is killed, for {away:?}"));
        self.nodes[at].0.kill_9();
        self.nodes[at].1 = Some(Away::Killed(Instant::now() + away));
    }

    fn stop(&mut self, at: usize, away: Duration) {
        let Some(at) = self.one_that_is_there(at) else { return self.end_connections() };
        say(self.started, &format!("node {at} is stopped, for {away:?}"));
        kill_process(pid_of(&self.nodes[at].0), Signal::STOP).unwrap();
        self.nodes[at].1 = Some(Away::Stopped(Instant::now() + away));
    }

    fn end_connections(&self) {
        say(self.started, "the connections of PostgreSQL are ended");
        self.primary.end_connections(&self.database);
    }

    async fn restart_postgres(&self, way: usize, away: Duration) {
        let (name, end): (&str, fn(&Server)) = match way {
            0 => ("is killed", Server::kill_9),
            1 => ("stops immediately", Server::stop_immediately),
            _ => ("stops", Server::stop),
        };
        say(self.started, &format!("PostgreSQL {name}, for {away:?}"));
        end(&self.primary);
        tokio::time::sleep(away).await;
        self.primary.start_again();
    }

    /// The new primary lacks the last moments. All nodes live, so they have all of it in memory.
    async fn fail_over_and_lose(&mut self, dice: &mut Dice) {
        self.calm();
        let standby = self.standby.as_ref().expect("it happens once");
        standby.fall_behind(&self.primary);
        say(self.started, "the standby receives nothing more");
        for _ in 0..LOST_MOMENTS {
            tokio::time::sleep(dice.millis(100, 1200)).await;
            self.end_connections();
        }
        self.fail_over();
        let healed = "SELECT count(*) FROM nodes WHERE state = 'alive' AND healed = 2 AND told = 2";
        let started = Instant::now();
        while self.primary.sql_in(&self.database, healed) != NODES.to_string() {
            assert!(started.elapsed() < PATIENCE, "not all nodes repeat what they kept");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        say(self.started, "all nodes have repeated what they kept");
    }

    fn fail_over(&mut self) {
        say(self.started, "PostgreSQL is killed, and its standby takes over");
        self.primary.kill_9();
        let standby = self.standby.take().expect("it happens once");
        standby.promote();
        self.primary = standby;
    }
}
