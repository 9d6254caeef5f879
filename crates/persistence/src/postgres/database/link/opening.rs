//! Opens connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Socket};

use super::{Connector, Inner, Link};
use crate::postgres::database::driver::{Driver, Ear};
use crate::postgres::database::failures::{ChangeFailure, ConnectFailure};
use crate::postgres::database::known_server::{IdentityAnswer, ServerIdentity, UNKNOWN_TIMELINE};
use crate::postgres::database::opening_places::OpeningPlaces;
use crate::postgres::database::settings::{Purpose, settings};

/// What is set up on a new connection.
struct SetUp<'a> {
    purpose: Purpose,
    /// Prepared.
    statements: &'a [&'a str],
    ear: Option<Ear>,
}

impl SetUp<'_> {
    /// Whether its first write may wait for a standby.
    fn waits_for_standby(&self) -> bool {
        self.purpose != Purpose::WithoutStandby
    }
}

impl Connector {
    /// Opens a connection, sets it up, passes its barrier, and prepares these statements.
    pub(crate) async fn connect(
        &self,
        purpose: Purpose,
        statements: &[&str],
    ) -> Result<Link, ConnectFailure> {
        self.any_host(Some(SetUp { purpose, statements, ear: None })).await
    }

    /// Like [`Connector::connect`]. The ear receives all notifications.
    pub(crate) async fn connect_to_hear(&self, purpose: Purpose, ear: Ear) -> Result<Link, ConnectFailure> {
        self.any_host(Some(SetUp { purpose, statements: &[], ear: Some(ear) })).await
    }

    /// Opens a connection without setting it up.
    pub(crate) async fn connect_only(&self) -> Result<Link, ConnectFailure> {
        self.any_host(None).await
    }

    /// Tries the hosts in their order, each for `connect_timeout_ms`. If all fail, the last answer of a server says
    /// more than that another one did not answer. A host whose places are blocked comes last: its server may have been
    /// replaced by another one.
    async fn any_host(&self, set_up: Option<SetUp<'_>>) -> Result<Link, ConnectFailure> {
        let mut failure = ConnectFailure::TimedOut(self.connect_timeout());
        let waits = set_up.as_ref().is_some_and(SetUp::waits_for_standby);
        let hosts = || self.address.drivers.iter().zip(&self.places);
        let (blocked, others): (Vec<_>, Vec<_>) =
            hosts().partition(|(_, places)| waits && places.are_blocked());
        for host in others.into_iter().chain(blocked) {
            match self.host(host, set_up.as_ref()).await {
                Ok(link) => return Ok(link),
                Err(new) if new.is_answer() || !failure.is_answer() => failure = new,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    async fn host(
        &self,
        (driver, places): (&Config, &OpeningPlaces),
        set_up: Option<&SetUp<'_>>,
    ) -> Result<Link, ConnectFailure> {
        let wait = self.connect_timeout();
        let place = match set_up {
            Some(set_up) if set_up.waits_for_standby() => {
                Some(places.take(wait).await.ok_or(ConnectFailure::NoPlace(wait))?)
            }
            _ => None,
        };
        let late = |_| ConnectFailure::TimedOut(wait);
        let link = timeout(wait, self.open(driver, set_up)).await.map_err(late)??;
        let Some(set_up) = set_up else { return Ok(link) };
        let barrier = {
            let link = link.clone();
            async move {
                tokio::select! {
                    biased;
                    answer = link.committed(link.barrier()) => answer,
                    // A former primary may never answer, and the new one may have the same address.
                    () = link.superseded() => Err(ChangeFailure::superseded()),
                }
            }
        };
        match place {
            Some(place) => {
                let answer_timeout = Duration::from_millis(self.limits.answer_timeout_ms);
                places.pass(place, barrier, answer_timeout, &self.runtime).await?;
            }
            None => link.save(link.barrier()).await?,
        }
        let preparing = async {
            for sql in set_up.statements {
                link.prepared(sql).await?;
            }
            Ok(())
        };
        timeout(wait, preparing).await.map_err(late)?.map_err(ConnectFailure::Failed)?;
        Ok(link)
    }

    fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.connect_timeout_ms)
    }

    async fn open(&self, driver: &Config, set_up: Option<&SetUp<'_>>) -> Result<Link, ConnectFailure> {
        let (client, connection) = driver.connect(self.tls.clone()).await?;
        let link = self.link(client, connection, set_up.and_then(|set_up| set_up.ear.clone()));
        // Before anything else: it may be the wrong server.
        match ServerIdentity::of(&link.0.client).await? {
            IdentityAnswer::Primary(server) => {
                self.known.admit(server)?;
                link.0.timeline.store(server.timeline, Ordering::Release);
            }
            IdentityAnswer::Standby if set_up.is_some() => return Err(ConnectFailure::Standby),
            IdentityAnswer::Standby | IdentityAnswer::Withheld => {}
        }
        if let Some(SetUp { purpose, .. }) = set_up {
            let settings = settings(*purpose, self.durability, &self.limits);
            link.batch(&format!("{settings};\n{}", self.steps.setting)).await?;
        }
        Ok(link)
    }

    fn link<S>(
        &self,
        client: Client,
        connection: tokio_postgres::Connection<Socket, S>,
        ear: Option<Ear>,
    ) -> Link
    where
        S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
    {
        let warnings = Arc::new(AtomicU64::new(0));
        let (ends, end) = watch::channel(());
        let reports = Driver { warnings: Arc::clone(&warnings), ear, _end: ends };
        let mut driver = JoinSet::new();
        driver.spawn_on(reports.run(connection), &self.runtime);
        Link(Arc::new(Inner {
            client,
            statements: Mutex::new(HashMap::new()),
            warnings,
            clean: AtomicBool::new(true),
            known: Arc::clone(&self.known),
            timeline: AtomicU32::new(UNKNOWN_TIMELINE),
            answer_timeout: Duration::from_millis(self.limits.answer_timeout_ms),
            end,
            _driver: driver,
        }))
    }
}
