//! A synchronous standby is away, and everybody goes on trying to save.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use tokenrail_domain::{Timestamp, TurnNumber};
use tokenrail_ports::testing::samples::{WHOLE_LIST, notice, queued_turn};
use tokenrail_ports::{AgentFilter, Idempotency, KeyLife};
use tokenrail_test_postgres::{Flush, Replication, Server};

use super::*;

const AGENTS: u8 = 32;

/// How often each task has to fail while the standby is away.
const FAILURES: u64 = 4;

/// What the tasks do.
#[derive(Default)]
struct Work {
    failures: [AtomicU64; AGENTS as usize],
    over: AtomicBool,
}

impl Work {
    /// Counts a failure of this task, which began at this time.
    fn count(&self, task: u8, started: Instant, error: &StoreError) {
        assert!(error.is_transient() && started.elapsed() < PATIENCE, "{error:?}");
        self.failures[usize::from(task)].fetch_add(1, Ordering::Relaxed);
    }

    fn fewest_failures(&self) -> u64 {
        self.failures.iter().map(|failures| failures.load(Ordering::Relaxed)).min().unwrap_or_default()
    }
}

/// A message that is sent again is queued once.
fn key(agent: u8, n: u64) -> Idempotency {
    Idempotency {
        scope: format!("agent {agent}"),
        key: format!("message {n}"),
        body: "go on".into(),
        used_at: Timestamp(1),
        forget_before: Timestamp(0),
        life: KeyLife::UntilForgotten,
    }
}

/// An agent that says something again and again, or that gets messages. Returns how much of it was saved.
async fn act(store: PostgresStore, work: Arc<Work>, task: u8) -> (Agent, u64) {
    let (agent, mut scribe) = running(&store, task).await;
    let mut done = 0;
    while !work.over.load(Ordering::Relaxed) {
        done += 1;
        let started = Instant::now();
        if task < AGENTS / 2 {
            let append = scribe.say(vec![notice("n")]);
            while let Err(error) = store.append(append.clone()).await {
                work.count(task, started, &error);
            }
        } else {
            let message = queued_turn(agent.id, TurnNumber(0), "go on");
            let send = || store.enqueue(message.clone().into(), u32::MAX, Some(key(task, done)));
            while let Err(error) = send().await {
                work.count(task, started, &error);
            }
        }
    }
    (agent, done)
}

/// The server keeps a process for each connection whose write waits for the standby, also after the node has closed it.
#[tokio::test(flavor = "multi_thread")]
async fn few_connections_hang_while_the_standby_is_away_and_everything_is_saved_once() {
    let primary = Server::start(Flush::Off);
    let (database, standby) = (primary.database(), primary.standby(Replication::Synchronous));
    let mut config = impatient(&database);
    (config.limits.connect_timeout_ms, config.limits.answer_timeout_ms) = (1000, 1000);
    let limits = config.limits.clone();
    let store = joined(config).await;
    let (work, mut tasks) = (Arc::new(Work::default()), JoinSet::new());
    for task in 0..AGENTS {
        tasks.spawn(act(store.clone(), Arc::clone(&work), task));
    }
    let said = || database.sql("SELECT count(*) FROM heads WHERE 2 < head").parse::<u8>().unwrap();
    until("all agents say something", || said() == AGENTS / 2);

    let list = || store.list(AgentFilter { limit: 99, ..AgentFilter::default() }, WHOLE_LIST);
    list().await.unwrap();
    standby.stop();
    let bound = limits.writers
        + limits.pool_connections
        + limits.lookout_connections
        + limits.takeover_connections
        + limits.beat_connections
        + limits.node_connections
        + limits.openings;
    let connections = "
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'tokenrail'";
    let (before, mut most) = (work.fewest_failures(), 0);
    until("everybody fails again and again", || {
        most = most.max(database.sql(connections).parse::<usize>().unwrap());
        before + FAILURES <= work.fewest_failures()
    });
    assert!(most <= bound, "{most} connections, and not {bound}");
    // What is saved can be read, also by more readers at once than there are connections that were open before. Some of
    // them first try to open another one.
    let lists = join_all((0..4).map(|_| list())).await;
    assert!(lists.iter().all(|list| list.as_ref().unwrap().items.len() == usize::from(AGENTS)), "{lists:?}");

    standby.start_again();
    work.over.store(true, Ordering::Relaxed);
    for (n, ended) in (0..).zip(tasks.join_all().await) {
        let (agent, done) = ended;
        let (events, turns) = (everything(&store, &agent).await.len() as u64, turns_of(&store, &agent).await);
        assert!(
            [(1 + done, 1), (1, 1 + done)].contains(&(events, turns)),
            "{n}: {events}, {turns} of {done}"
        );
    }
}

async fn turns_of(store: &PostgresStore, agent: &Agent) -> u64 {
    u64::from(store.last_turn(agent.id).await.unwrap().0)
}
