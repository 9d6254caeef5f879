//! The network between the store and the server loses connections, is slow, or delivers in one direction only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokenrail_domain::TurnOutcome;
use tokenrail_ports::testing::samples::notice;
use tokenrail_test_postgres::{Direction, Flush, Proxy, Server};

use super::*;

/// A server, and the network in front of it.
pub(super) struct Behind {
    pub(super) database: Database,
    pub(super) proxy: Proxy,
    server: Server,
}

impl Behind {
    pub(super) fn new() -> Self {
        let server = Server::start(Flush::Off);
        let (database, proxy) = (server.database(), Proxy::start(&server));
        Self { database, proxy, server }
    }

    /// A node that reaches the server only through the network. Its waits are short.
    async fn store(&self) -> PostgresStore {
        joined(self.config()).await
    }

    pub(super) fn config(&self) -> PostgresConfig {
        let url = self.database.url().replace(&self.server.address(), &self.proxy.address());
        PostgresConfig { url, ..impatient(&self.database) }
    }

    fn holes_and_doubles(&self) -> String {
        self.database.sql(
            "SELECT count(*) FROM heads
            WHERE head <> (SELECT sum(last_seq - first_seq + 1) FROM journal WHERE journal.agent = heads.agent)",
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_answer_is_lost_is_saved_once() {
    let behind = Behind::new();
    let store = behind.store().await;
    let (agent, mut scribe) = running(&store, 1).await;
    // From here on, an append is one statement.
    store.append(scribe.say(vec![notice("first")])).await.unwrap();
    let append = scribe.say(vec![notice("n")]);
    behind.proxy.hold(Direction::ToClient);
    let unknown = store.append(append.clone()).await;
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown(_))), "{unknown:?}");
    until("it is saved", || behind.database.sql("SELECT head FROM heads") == "3");
    behind.proxy.cut();
    behind.proxy.release();
    save_at_last(&store, &append).await;
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    assert_eq!(everything(&store, &agent).await.len(), 4);
    assert_eq!(behind.holes_and_doubles(), "0");
}

/// It may arrive much later, after others.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_arrives_late_changes_nothing() {
    let behind = Behind::new();
    let store = behind.store().await;
    let (agent, mut scribe) = running(&store, 1).await;
    // From here on, an append is one statement.
    store.append(scribe.say(vec![notice("first")])).await.unwrap();
    let append = scribe.say(vec![notice("n")]);
    behind.proxy.hold(Direction::ToServer);
    let unknown = store.append(append.clone()).await;
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown(_))), "{unknown:?}");
    // The same node goes on over another way, and then the old statements arrive.
    let direct = joined(impatient(&behind.database)).await;
    let epoch = direct.claim(agent.id).await.unwrap().unwrap();
    let mut scribe = scribe.at_epoch(epoch);
    direct.append(Append { epoch, ..append.clone() }).await.unwrap();
    direct.append(scribe.say(vec![notice("next")])).await.unwrap();
    behind.proxy.release();
    let started = Instant::now();
    let late = loop {
        match store.append(append.clone()).await {
            Err(error) if error.is_transient() && started.elapsed() < PATIENCE => {}
            answer => break answer,
        }
    };
    late.unwrap();
    assert_eq!(everything(&direct, &agent).await.len(), 4);
    assert_eq!(behind.holes_and_doubles(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_on_a_network_that_fails_in_every_way() {
    let behind = Behind::new();
    let store = behind.store().await;
    let (mut agents, over) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
    for n in 0..4 {
        let (agent, mut scribe) = running(&store, n).await;
        let (store, over) = (store.clone(), Arc::clone(&over));
        agents.spawn(async move {
            let mut said = 1;
            while !over.load(Ordering::Relaxed) {
                save_at_last(&store, &scribe.say(vec![notice("n")])).await;
                said += 1;
            }
            (agent, said)
        });
    }
    let faults: [fn(&Proxy); 5] = [
        |proxy| {
            proxy.cut();
        },
        |proxy| proxy.hold(Direction::ToClient),
        |proxy| proxy.hold(Direction::ToServer),
        |proxy| proxy.delay(Duration::from_millis(30)),
        Proxy::refuse,
    ];
    let sum = || behind.database.sql("SELECT sum(head) FROM heads").parse::<u64>().unwrap();
    for fault in faults.into_iter().cycle().take(10) {
        let before = sum();
        until("they say something", || before + 8 < sum());
        fault(&behind.proxy);
        // Longer than a statement waits.
        tokio::time::sleep(Duration::from_millis(600)).await;
        behind.proxy.release();
        behind.proxy.cut();
    }
    over.store(true, Ordering::Relaxed);
    while let Some(done) = agents.join_next().await {
        let (agent, said) = done.unwrap();
        assert_eq!(everything(&store, &agent).await.len(), said);
    }
    assert_eq!(behind.holes_and_doubles(), "0");
}
