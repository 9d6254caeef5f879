//! The servers, and what happens to them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tokenrail_test_postgres::{Database, Flush, Replication, Server};

use super::super::config;
use super::super::nodes::{LOST_AFTER_S, TOKEN, named, pid_of};
use super::absent::Absent;
use super::{Dice, PATIENCE, judge, say};
use crate::follower::Place;
use crate::harness::TestServer;
use crate::networks::{ADDRESSES, CUTS, Cut, Networks, database_address};
use crate::questions;

/// How often the connections are ended between the last that an asynchronous standby receives and the failover.
const LOST_MOMENTS: usize = 3;

/// How long a server may take to say what it has counted, before it is killed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many kinds of faults there are, and how many of them need no networks.
const KINDS: (u64, u64) = (20, 10);

/// Until when a node is away, and how it comes back.
#[derive(Clone, Copy)]
enum Away {
    Killed(Instant),
    Stopped(Instant),
    /// It runs, but does not reach the database, or its answers do not arrive.
    CutOff(Instant, Cut),
}

impl Away {
    fn until(self) -> Instant {
        match self {
            Self::Killed(until) | Self::Stopped(until) | Self::CutOff(until, _) => until,
        }
    }
}

fn name_of(number: usize) -> String {
    format!("node-{number}")
}

/// Of a node with this name.
pub(super) fn number_of(name: &str) -> usize {
    name.strip_prefix("node-").expect("a name").parse().expect("a number")
}

/// Starts a node where it is, and waits until it serves.
fn start(server: &mut TestServer, number: usize, networks: Option<&Networks>) {
    let Some(networks) = networks else { return server.start_again() };
    let command = server.command(&["serve", "--log", "warn"]);
    server.start_by(networks.command_at(number, &command)).expect("it serves");
}

pub(super) struct Cluster {
    // They end before their database does.
    nodes: Vec<(TestServer, Option<Away>)>,
    database: Database,
    primary: Server,
    /// It becomes the primary now and then.
    standby: Option<Server>,
    replication: Replication,
    /// It grows by 1 whenever a standby becomes the primary.
    timeline: u32,
    absent: Absent,
    /// Whether a server was killed.
    has_killed: bool,
    /// How many agents guests have launched and done with.
    visited: Arc<AtomicUsize>,
    /// Its links break if there is one.
    networks: Option<Networks>,
    started: Instant,
}

impl Cluster {
    pub(super) fn start(
        started: Instant,
        nodes: usize,
        (replication, networks): (Replication, Option<Networks>),
        public_url: Option<&str>,
    ) -> Self {
        let primary = match &networks {
            Some(networks) => Server::start_in_network(networks.database(), ADDRESSES),
            None => Server::start(Flush::Off),
        };
        let database = primary.database();
        // The standby inherits it. All commits wait for it after each restart of the primary.
        primary.sql("ALTER SYSTEM SET wal_retrieve_retry_interval = '200ms'");
        primary.sql("SELECT pg_reload_conf()");
        let standby = primary.standby(replication);
        let addresses = [primary.address(), standby.address()];
        let node = |number| {
            let both = match &networks {
                Some(_) => addresses.each_ref().map(|it| it.replace("127.0.0.1", &database_address(number))),
                None => addresses.clone(),
            };
            let name = format!("/{}", database.name());
            let config = config(&database)
                .replace(&primary.address(), &both.join(","))
                .replace(&name, &format!("{name}?target_session_attrs=read-write"));
            let public =
                public_url.map(|url| format!("[server]\npublic_url = \"{url}\"\n")).unwrap_or_default();
            let config = public + &config + &questions::block();
            let mut server = TestServer::prepare(&named(config, &name_of(number)));
            server.put_token(TOKEN);
            if let Some(networks) = &networks {
                networks.open_door(number, &server.authority());
            }
            start(&mut server, number, networks.as_ref());
            (server, None)
        };
        let nodes = (0..nodes).map(node).collect();
        let (standby, timeline) = (Some(standby), 1);
        let (absent, visited) = (Absent::default(), Arc::default());
        Self {
            nodes,
            database,
            primary,
            standby,
            replication,
            timeline,
            absent,
            has_killed: false,
            visited,
            networks,
            started,
        }
    }

    /// Whether this is the end of a turn whose server went away while it was starting the agent. It is none of a server
    /// that was stopped in order: that starts what it has begun to start.
    pub(super) fn may_be_unstarted(&self, outcome: &str, code: &str, has_printed: bool) -> bool {
        self.has_killed && (outcome, code) == ("interrupted", "interrupted") && !has_printed
    }

    pub(super) fn visited(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.visited)
    }

    /// Waits until guests have launched so many agents more, and have done with them.
    pub(super) async fn until_visited(&self, times: usize) {
        let visited = || self.visited.load(Ordering::Relaxed);
        let (before, started) = (visited(), Instant::now());
        while visited() < before + times {
            assert!(started.elapsed() < PATIENCE, "only {} visits", visited() - before);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// Stops a node in order, and starts this program in its place. At least one guest waits for it to be away, and
    /// asks another node then.
    pub(super) async fn replace(&mut self, number: usize, with: impl FnOnce(&TestServer) -> Command) {
        let seen = self.absent.until_awaited(&name_of(number)).await;
        say(self.started, &format!("node {number} gets another program"));
        let server = &mut self.nodes[number].0;
        assert!(server.stop().success());
        self.absent.set(name_of(number), true);
        self.absent.until_seen(seen).await;
        let program = with(server);
        server.start_by(program).expect("it serves");
        self.absent.set(name_of(number), false);
        say(self.started, &format!("node {number} is back"));
    }

    pub(super) fn absent(&self) -> Absent {
        self.absent.clone()
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.servers().map(Place::of).collect()
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &TestServer> {
        self.nodes.iter().map(|(server, _)| server)
    }

    /// One of them, by any number.
    pub(super) fn server(&self, number: usize) -> &TestServer {
        &self.nodes[number % self.nodes.len()].0
    }

    /// A folder for the files of a test.
    pub(super) fn folder(&self) -> &Path {
        self.database.folder()
    }

    pub(super) async fn storm(&mut self, faults: u64, dice: &mut Dice) {
        // The last one leaves time for what comes after it.
        let failovers = [1, 2, 3].map(|quarter| faults * quarter / 4);
        for fault in 0..faults {
            let next = Instant::now() + dice.millis(100, 1200);
            while Instant::now() < next {
                self.bring_back(Instant::now());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if failovers.contains(&fault) {
                match self.replication {
                    Replication::Synchronous => self.fail_over(),
                    Replication::Asynchronous => self.fail_over_and_lose(dice).await,
                }
                continue;
            }
            let kinds = if self.networks.is_some() { KINDS.0 } else { KINDS.1 };
            let (kind, at) = (dice.below(kinds), dice.index(self.nodes.len()));
            let (shortly, long) = (dice.millis(0, 1500), dice.millis(500, 3000));
            let long = long + Duration::from_secs(LOST_AFTER_S + 1);
            match kind {
                0..=1 => self.kill(at, shortly).await,
                2 => self.kill(at, long).await,
                3 => self.stop(at, shortly),
                4 => self.stop(at, long),
                5..=7 => self.restart_postgres(at, shortly).await,
                8..=9 => self.end_connections(),
                10..=14 => self.cut_off(at, CUTS[dice.index(CUTS.len())], shortly),
                _ => self.cut_off(at, CUTS[dice.index(CUTS.len())], long),
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
        let networks = self.networks.as_ref();
        for (number, (server, away)) in self.nodes.iter_mut().enumerate() {
            let Some(due) = away.take_if(|away| away.until() <= then) else { continue };
            match due {
                Away::Killed(_) => start(server, number, networks),
                Away::Stopped(_) => kill_process(pid_of(server), Signal::CONT).unwrap(),
                Away::CutOff(_, cut) => networks.expect("it was cut off").mend(number, cut),
            }
            self.absent.set(name_of(number), false);
            say(self.started, &format!("node {number} is back"));
        }
    }

    /// This node, or the next one that is there. At least one must stay.
    fn one_that_is_there(&self, at: usize) -> Option<usize> {
        let there = |number: &usize| self.nodes[*number].1.is_none();
        let nodes = self.nodes.len();
        let more_than_one = 1 < (0..nodes).filter(there).count();
        (at..at + nodes).map(|number| number % nodes).find(there).filter(|_| more_than_one)
    }

    async fn kill(&mut self, at: usize, away: Duration) {
        let Some(at) = self.one_that_is_there(at) else { return self.end_connections() };
        // It takes its count with it.
        judge::nothing_is_violated(&self.nodes[at].0, LAST_WORDS).await;
        say(self.started, &format!("node {at} is killed, for {away:?}"));
        self.has_killed = true;
        self.nodes[at].0.kill_9();
        self.leaves(at, Away::Killed(Instant::now() + away));
    }

    fn stop(&mut self, at: usize, away: Duration) {
        let Some(at) = self.one_that_is_there(at) else { return self.end_connections() };
        say(self.started, &format!("node {at} is stopped, for {away:?}"));
        kill_process(pid_of(&self.nodes[at].0), Signal::STOP).unwrap();
        self.leaves(at, Away::Stopped(Instant::now() + away));
    }

    fn cut_off(&mut self, at: usize, cut: Cut, away: Duration) {
        let Some(at) = self.one_that_is_there(at) else { return self.end_connections() };
        say(self.started, &format!("node {at} is cut off ({cut:?}), for {away:?}"));
        self.networks.as_ref().expect("it has a link").cut(at, cut);
        self.leaves(at, Away::CutOff(Instant::now() + away, cut));
    }

    fn leaves(&mut self, at: usize, away: Away) {
        self.nodes[at].1 = Some(away);
        self.absent.set(name_of(at), true);
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
        let standby = self.standby.as_ref().expect("there is one again");
        standby.fall_behind(&self.primary);
        say(self.started, "the standby receives nothing more");
        for _ in 0..LOST_MOMENTS {
            tokio::time::sleep(dice.millis(100, 1200)).await;
            self.end_connections();
        }
        self.fail_over();
        let timeline = self.timeline;
        let healed =
            format!("SELECT count(*) FROM nodes WHERE state = 'alive' AND least(healed, told) = {timeline}");
        let started = Instant::now();
        while self.primary.sql_in(&self.database, &healed) != self.nodes.len().to_string() {
            assert!(started.elapsed() < PATIENCE, "not all nodes repeat what they kept");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        say(self.started, "all nodes have repeated what they kept");
    }

    /// A new standby has the place of the old primary.
    fn fail_over(&mut self) {
        say(self.started, "PostgreSQL is killed, and its standby takes over");
        self.primary.kill_9();
        let standby = self.standby.take().expect("there is one again");
        standby.promote();
        self.timeline += 1;
        let gone = std::mem::replace(&mut self.primary, standby);
        self.standby = Some(self.primary.standby_in_place_of(&gone, self.replication));
        say(self.started, "there is a standby again");
    }
}
