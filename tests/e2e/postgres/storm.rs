//! Two or three servers, one database with a synchronous standby, and everything that can go away does so, again and
//! again. Meanwhile, agents are launched, answered, cancelled, deleted and purged at any server.
//!
//! The seed decides what happens to whom; the machine decides when exactly. `TOKENRAIL_TEST_STORM_SEED` repeats the
//! choices of a run, and `TOKENRAIL_TEST_STORM_FAULTS` makes it longer:
//!
//! ```sh
//! TOKENRAIL_TEST_STORM_FAULTS=1000 cargo test -p tokenrail-tests --test e2e -- --nocapture several_servers
//! ```
//!
//! With `TOKENRAIL_TEST_STORM_ASYNCHRONOUS=1`, the standby is asynchronous, and lacks the last moments when it takes
//! over. All servers live then: what a server that dies had in memory, nobody could save again.
//!
//! Where network namespaces can be made, each server is in one of its own, and its link to the database breaks too, in
//! one direction or in both. Up to half of the faults do this. Only root can make namespaces; for others, a storm has
//! the other faults only, so a seed means the same choices only for those who both can or cannot.

mod absent;
mod by_library;
mod by_tail;
mod clients;
mod cluster;
mod guests;
mod judge;
mod proxy;
mod upgrade;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;
use std::time::{Duration, Instant};

use tokenrail_test_postgres::Replication;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use by_library::Libraries;
use clients::{Asked, Author, Program, Reader};
use cluster::Cluster;
use guests::{Guest, Visit};
use proxy::Address;

use super::WAYS;
use crate::follower::Place;
use crate::networks::Networks;

/// The seed decides whether there are so many servers, or one less.
const NODES_MOST: usize = 3;
/// How many faults a run has in the test command.
const FAULTS: u64 = 150;
const AGENTS: usize = 20;
/// How many clients launch agents for a short time.
const GUESTS: u64 = 5;
/// They launch at least one during so many faults.
const FAULTS_PER_VISIT: u64 = 5;
/// How long a test waits until everybody has come to the end. Nodes that were declared lost, and a database that has
/// just recovered, need their time.
const PATIENCE: Duration = Duration::from_mins(2);

/// Random numbers that follow from a seed (`SplitMix64`).
struct Dice(u64);

impl Dice {
    /// Others for each purpose, so that the draws of one do not depend on how often another has drawn.
    fn of(seed: u64, purpose: u64) -> Self {
        Self(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    /// From 0 to `n`, excluding `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % n
    }

    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap()
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }
}

/// The one that is asked for, or any.
fn seed() -> u64 {
    variable("TOKENRAIL_TEST_STORM_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32)
}

/// The number in this variable.
fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: {text} is no number")))
}

#[expect(clippy::print_stdout, reason = "the test prints it where it fails")]
fn say(started: Instant, what: &str) {
    println!("{:6.1} s  {what}", started.elapsed().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_survive_a_storm() {
    passes(FAULTS, Followers::Own).await;
}

/// Who follows the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followers {
    /// Clients of this test, and `tokenrail tail`: one for each agent, at one server after the other.
    Own,
    /// Two programs with our client library, through a proxy.
    Library,
}

/// A storm of so many faults, if `TOKENRAIL_TEST_STORM_FAULTS` does not say otherwise.
pub(crate) async fn passes(usual_faults: u64, followers: Followers) {
    let seed = seed();
    let faults = variable("TOKENRAIL_TEST_STORM_FAULTS").unwrap_or(usual_faults);
    let asynchronous: u8 = variable("TOKENRAIL_TEST_STORM_ASYNCHRONOUS").unwrap_or_default();
    let replication = if asynchronous == 0 { Replication::Synchronous } else { Replication::Asynchronous };
    let started = Instant::now();
    let nodes = NODES_MOST - usize::from(Dice::of(seed, 1000).below(2) == 0);
    // Behind the proxy are servers in the network of this test.
    let (proxy, networks) = match followers {
        Followers::Own => (None, Networks::make(nodes)),
        Followers::Library => (Some(Address::take().await), None),
    };
    let links = if networks.is_some() { "links break too" } else { "no link breaks" };
    say(
        started,
        &format!(
            "TOKENRAIL_TEST_STORM_SEED={seed} TOKENRAIL_TEST_STORM_FAULTS={faults} \
             TOKENRAIL_TEST_STORM_ASYNCHRONOUS={asynchronous}: {nodes} servers, and {links}"
        ),
    );
    let public_url = proxy.as_ref().map(Address::url);
    let mut cluster = Cluster::start(started, nodes, (replication, networks), public_url);
    let load = Load::begin(&cluster, seed, proxy).await;
    cluster.storm(faults, &mut Dice::of(seed, 0)).await;
    cluster.calm();
    say(started, "it is calm");
    let visits = load.ends_well(&cluster, started).await;
    assert!(faults <= FAULTS_PER_VISIT * visits as u64, "only {visits} agents were launched");
}

/// Everybody who uses the servers.
struct Load {
    residents: Residents,
    guests: Vec<JoinHandle<Vec<Visit>>>,
    end: watch::Sender<bool>,
}

impl Load {
    async fn begin(cluster: &Cluster, seed: u64, proxy: Option<Address>) -> Self {
        let (end, over) = watch::channel(false);
        let residents = Residents::launch(cluster, seed, proxy, &over).await;
        let guests = (0..GUESTS)
            .map(|number| Guest::new(cluster, Dice::of(seed, 2000 + number)))
            .map(|guest| Handle::current().spawn(guest.visit_until(over.clone())))
            .collect();
        Self { residents, guests, end }
    }

    /// All of it is as it was asked for. Returns how many agents were launched by guests.
    async fn ends_well(self, cluster: &Cluster, started: Instant) -> usize {
        self.end.send(true).unwrap();
        self.residents.are_as_they_were_asked(cluster, started).await;
        let mut visits = Vec::new();
        for guest in self.guests {
            visits.extend(tokio::time::timeout(PATIENCE, guest).await.expect("each visit ends").unwrap());
        }
        say(started, &guests::each_went_as_it_was_asked(cluster, &visits).await);
        for server in cluster.servers() {
            assert!(judge::nothing_is_violated(server, PATIENCE).await, "it counts violations");
        }
        say(started, "all of it is as it should be");
        visits.len()
    }
}

/// The agents that stay from the first fault to the last, with who writes to them and who follows them.
struct Residents {
    ids: Vec<String>,
    authors: Vec<JoinHandle<Vec<Asked>>>,
    readers: Vec<Reader>,
    libraries: Option<Libraries>,
}

impl Residents {
    async fn launch(
        cluster: &Cluster,
        seed: u64,
        proxy: Option<Address>,
        over: &watch::Receiver<bool>,
    ) -> Self {
        let places = cluster.places();
        let mut residents =
            Self { ids: Vec::new(), authors: Vec::new(), readers: Vec::new(), libraries: None };
        for number in 0..AGENTS {
            let dice = Dice::of(seed, 1 + number as u64);
            let author = Author::launch(cluster.server(number), places.clone(), cluster.folder(), dice).await;
            residents.ids.push(author.id().to_owned());
            residents.authors.push(Handle::current().spawn(author.write_until(over.clone())));
        }
        match proxy {
            None => residents.are_followed(&places),
            Some(proxy) => residents.libraries = Some(Libraries::start(proxy, &residents.ids, &places)),
        }
        residents
    }

    /// All agents together have a reader of each kind at each node.
    fn are_followed(&mut self, places: &[Place]) {
        let programs: Vec<_> = WAYS.map(Program::OwnClient).into_iter().chain([Program::Tail]).collect();
        for (number, id) in self.ids.iter().enumerate() {
            let (kind, at) = (number % programs.len(), number / programs.len());
            let places = places.iter().cloned().cycle().skip(at).take(places.len()).collect();
            self.readers.push(Reader::start(id, programs[kind], places));
        }
    }

    /// Each turn ended once, and everybody has seen it.
    async fn are_as_they_were_asked(self, cluster: &Cluster, started: Instant) {
        let mut asked = Vec::new();
        for author in self.authors {
            let asked_for =
                tokio::time::timeout(PATIENCE, author).await.expect("each prompt is accepted in the end");
            asked.push(asked_for.unwrap());
        }
        let (mut journals, mut outcomes) = (BTreeMap::new(), Vec::new());
        for (id, asked) in self.ids.iter().zip(&asked) {
            let journal = judge::journal(cluster, id).await;
            let of_agent = judge::each_turn_is_as_it_was_asked(cluster, &journal, asked);
            say(started, &format!("{} events: {}", journal.len(), of_agent.join(", ")));
            journals.insert(id.clone(), journal);
            outcomes.extend(of_agent);
        }
        // Of a single agent, chance may stop each turn.
        assert!(outcomes.iter().any(|outcome| outcome == "completed"), "{outcomes:?}");
        for (id, reader) in self.ids.iter().zip(self.readers) {
            reader.has_seen(&journals[id]).await;
        }
        if let Some(libraries) = self.libraries {
            libraries.have_seen(&journals).await;
        }
    }
}
