//! A standby becomes the primary: which server may be used afterwards, and whether acknowledged changes survive.

use tokenrail_ports::testing::samples::notice;
use tokenrail_ports::{Heard, IBus};
use tokenrail_test_postgres::{Direction, Flush, Proxy, Replication, Server};

use super::*;
use crate::WrongServer;
use crate::postgres::database::failures::ConnectFailure;
use crate::postgres::database::known_server::ServerIdentity;
use crate::postgres::database::link::Connector;
use crate::postgres::database::settings::Purpose;

/// A primary, and a standby of it. A client knows both addresses.
pub(super) struct Pair {
    pub(super) primary: Server,
    pub(super) standby: Server,
    pub(super) database: Database,
}

impl Pair {
    pub(super) fn new(replication: Replication) -> Self {
        let primary = Server::start(Flush::Off);
        let database = primary.database();
        let standby = primary.standby(replication);
        Self { primary, standby, database }
    }

    /// The node whose data folder has this identity. Its waits are short.
    pub(super) fn config(&self, folder: u8) -> PostgresConfig {
        let both = format!("{},{}", self.primary.address(), self.standby.address());
        let url = self.database.url().replace(&self.primary.address(), &both);
        PostgresConfig { url, limits: impatient(&self.database).limits, ..config_of(&self.database, folder) }
    }

    /// Waits until the standby has all that was committed.
    pub(super) fn standby_has_everything(&self) {
        let caught_up = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
        self.primary.wait_for(caught_up, "1");
    }

    /// The primary dies, and the standby takes over.
    pub(super) fn fail_over(&self) {
        self.primary.kill_9();
        self.standby.promote();
    }
}

fn refused_as_former(answer: Result<(), StoreError>) -> bool {
    let Err(StoreError::WrongServer(wrong)) = answer else { return false };
    matches!(wrong.downcast_ref(), Some(WrongServer::Former { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_primary_is_not_used_any_more() {
    let pair = Pair::new(Replication::Asynchronous);
    let folder = tempfile::tempdir().unwrap();
    let server_file = Some(folder.path().join("server"));
    let config = PostgresConfig { server_file, ..pair.config(1) };
    let store = joined(config.clone()).await;
    let (agent, mut scribe) = running(&store, 1).await;
    pair.standby_has_everything();
    pair.fail_over();
    let append = scribe.say(vec![notice("n")]);
    save_at_last(&store, &append).await;
    assert_eq!(pair.standby.sql_in(&pair.database, "SELECT head FROM heads"), "2");

    // It is the first one of the addresses.
    pair.primary.start_again();
    pair.standby.end_connections(&pair.database);
    let append = scribe.say(vec![notice("n")]);
    save_at_last(&store, &append).await;
    assert_eq!(pair.standby.sql_in(&pair.database, "SELECT head FROM heads"), "3");
    assert_eq!(everything(&store, &agent).await.len(), 3);
    pair.standby.stop();
    assert!(refused_as_former(store.check().await), "nothing else is there");
    assert!(refused_as_former(store.append(scribe.say(vec![notice("n")])).await));
    store.close().await;

    let refused = PostgresStore::open(config.clone()).await.err();
    assert!(matches!(&refused, Some(PostgresOpenError::WrongServer(_))), "{refused:?}");
    let refused = crate::postgres_doctor(config.clone(), Duration::from_secs(1)).await.unwrap_err();
    assert!(refused.to_string().contains(&folder.path().join("server").display().to_string()), "{refused}");
    std::fs::remove_file(folder.path().join("server")).unwrap();
    PostgresStore::open(config).await.unwrap();
}

/// Its connections still work. They are left all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_lives_on_is_left_when_the_failover_is_noticed() {
    let pair = Pair::new(Replication::Asynchronous);
    let store = joined(pair.config(1)).await;
    let (agent, mut scribe) = running(&store, 1).await;
    let bus = store.bus();
    assert_eq!(bus.heard().await, Heard::Missed, "before it has listened");
    until("the bus works", || bus.is_working());
    pair.standby.fall_behind(&pair.primary);
    pair.standby.promote();
    store.append(scribe.say(vec![notice("before it is noticed")])).await.unwrap();
    store.inner.connector.known.admit(identity_of(&pair.standby)).unwrap();

    assert_eq!(bus.heard().await, Heard::Missed, "everything is looked at anew");
    store.append(scribe.say(vec![notice("afterwards")])).await.unwrap();
    let head = |server: &Server| server.sql_in(&pair.database, "SELECT head FROM heads");
    assert_eq!((&*head(&pair.primary), &*head(&pair.standby)), ("2", "3"));
    assert_eq!(everything(&store, &agent).await.len(), 3);
}

/// It was behind for longer than they were kept. A beat that it has shows that it has all that came before.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_a_standby_lacks_and_nobody_keeps_any_more_count_as_lost() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = pair.config(1);
    config.limits.kept_bytes = 0;
    let store = joined(config).await;
    let create = async |n| store.create_idle(launch(n).0).await.unwrap();
    for n in 1..=3 {
        create(n).await;
    }
    store.beat().await.unwrap();
    // A beat waits for no disk, and the standby gets it with what does.
    store.check().await.unwrap();
    pair.standby.fall_behind(&pair.primary);
    for n in 4..=5 {
        create(n).await;
    }
    store.beat().await.unwrap();
    pair.fail_over();
    while store.beat().await.is_err() {}
    while store.check().await.is_err() {}
    assert_eq!(pair.standby.sql_in(&pair.database, "SELECT count(*) FROM agents"), "3");
    assert_eq!(store.failovers().lost, 2);
}

/// Nobody knows which timeline it would write on.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_a_standby_that_is_being_promoted_is_not_used() {
    let pair = Pair::new(Replication::Asynchronous);
    pair.standby_has_everything();
    let proxy = Proxy::start(&pair.standby);
    let url = pair.database.url().replace(&pair.primary.address(), &proxy.address());
    let mut config = PostgresConfig { url, ..config(&pair.database) };
    config.limits.connect_timeout_ms = PATIENCE.as_millis() as u64;
    let connector = Connector::of(config).unwrap();
    // It is promoted between the question and the first write.
    proxy.only(&["pg_control_system"]);
    proxy.hold(Direction::ToClient);
    let mut work = JoinSet::new();
    work.spawn(async move { connector.connect(Purpose::Writer, &[]).await.map(|link| link.timeline()) });
    // Not the connection that has counted before.
    let asked = "
        SELECT count(*)
        FROM pg_stat_activity
        WHERE state = 'idle' AND query LIKE '%pg_control_system%' AND query NOT LIKE '%pg_stat_activity%'";
    pair.standby.wait_for(asked, "1");
    pair.standby.promote();
    proxy.release();
    let opened = work.join_next().await.unwrap().unwrap();
    assert!(matches!(opened, Err(ConnectFailure::Standby)), "{opened:?}");
}

/// Clients come to both servers through one address, so its places are those of the new primary too.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_hang_at_a_former_primary_give_their_places_back() {
    let pair = Pair::new(Replication::Asynchronous);
    let mut config = impatient(&pair.database);
    (config.limits.connect_timeout_ms, config.limits.answer_timeout_ms) = (500, 500);
    let store = joined(config).await;
    pair.standby_has_everything();
    pair.primary.set_synchronous("nobody");
    let (connector, started) = (&store.inner.connector, std::time::Instant::now());
    while !connector.places[0].are_blocked() {
        assert!(started.elapsed() < PATIENCE, "there are places");
        let _hangs = store.check().await;
    }
    pair.standby.promote();
    connector.known.admit(identity_of(&pair.standby)).unwrap();
    let started = std::time::Instant::now();
    while !refused_as_former(store.check().await) {
        assert!(started.elapsed() < PATIENCE, "no connection is opened");
    }
}

fn identity_of(server: &Server) -> ServerIdentity {
    let system = server.sql("SELECT system_identifier FROM pg_control_system()").parse().unwrap();
    let timeline = server.sql("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)::int");
    ServerIdentity { system, timeline: timeline.parse().unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_database_is_refused_until_a_restart() {
    let (one, other) = (Server::start(Flush::Off), Server::start_with_new_identity(Flush::Off));
    let database = one.database();
    let _same_name = other.database();
    let both = format!("{},{}", one.address(), other.address());
    let url = database.url().replace(&one.address(), &both);
    let config = PostgresConfig { url, limits: impatient(&database).limits, ..config_of(&database, 1) };
    let store = joined(config.clone()).await;
    one.stop();
    let refused = store.check().await;
    let Err(StoreError::WrongServer(wrong)) = refused else { panic!("{refused:?}") };
    assert!(wrong.to_string().contains("restart Tokenrail if the database was moved"), "{wrong}");
    store.close().await;
    PostgresStore::open(config).await.unwrap().check().await.unwrap();
}
