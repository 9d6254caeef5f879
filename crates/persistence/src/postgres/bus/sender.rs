//! Sends hints on a connection that does nothing else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::Error;

use super::board::Board;
use super::outgoing::HintBatch;
use super::{CHANNEL, tell};
use crate::postgres::database::link::{Connector, Link, Values};
use crate::postgres::database::settings::Purpose;

/// One transaction for all payloads: its commit takes a lock that all NOTIFYs of the server share.
const SEND: &str = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payloads (payload)";

/// Why something may not have been sent.
#[derive(Debug, thiserror::Error)]
enum SendFailure {
    #[error("the PostgreSQL server did not accept hints for other nodes")]
    Failed(#[from] Error),
    #[error("the PostgreSQL server did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the server is replacing the connection")]
    Renewed,
}

struct Sender {
    connector: Arc<Connector>,
    board: Arc<Board>,
    link: Option<Link>,
    renewals: watch::Receiver<u64>,
}

/// Sends what was added: at once after a pause, else with everything that is added during the pause.
pub(super) async fn run(connector: Arc<Connector>, board: Arc<Board>) {
    let renewals = board.outgoing.renewals();
    let mut sender = Sender { connector, board, link: None, renewals };
    // Before the first hint, so that it does not wait.
    sender.link().await;
    loop {
        sender.board.outgoing.added().await;
        // While there is no connection, hints wait and become fewer.
        let link = sender.link().await;
        let Some(batch) = sender.board.outgoing.take_batch() else { continue };
        match sender.send(&link, &batch).await {
            Ok(()) => {
                sender.board.outgoing.note_sent(&batch);
                sleep(sender.board.outgoing.pause()).await;
            }
            Err(failure) => sender.failed(batch, &failure).await,
        }
    }
}

impl Sender {
    /// The connection, opened if there is none. Tries until it succeeds.
    async fn link(&mut self) -> Link {
        if self.renewals.has_changed().unwrap_or(false) {
            self.link = None;
        }
        loop {
            if let Some(link) = self.link.as_ref().filter(|link| link.is_usable()) {
                return link.clone();
            }
            self.renewals.mark_unchanged();
            match self.connector.connect(Purpose::WithoutStandby, &[SEND]).await {
                Ok(link) => self.link = Some(link),
                Err(failure) => {
                    tell("cannot open the connection that sends hints to other nodes", &failure);
                    sleep(self.retry_pause()).await;
                }
            }
        }
    }

    /// Sends a NOTIFY for each payload. At the other nodes, `Driver::run` (`database/driver.rs`) receives them, and
    /// passes them to `Incoming::take` (`incoming.rs`).
    async fn send(&mut self, link: &Link, batch: &HintBatch) -> Result<(), SendFailure> {
        let payloads = self.board.outgoing.payloads(batch);
        let values: Values<'_> = &[&CHANNEL, &payloads];
        let wait = Duration::from_millis(self.connector.limits.answer_timeout_ms);
        tokio::select! {
            sent = timeout(wait, link.run(SEND, values)) => {
                sent.map_err(|_| SendFailure::TimedOut(wait))??;
                Ok(())
            }
            _ = self.renewals.changed() => Err(SendFailure::Renewed),
        }
    }

    /// Sends it again on another connection. Hints may come twice.
    async fn failed(&mut self, batch: HintBatch, failure: &SendFailure) {
        tell("cannot send hints to other nodes; sending them again", failure);
        self.link = None;
        self.board.outgoing.send_again(batch);
        sleep(self.retry_pause()).await;
    }

    fn retry_pause(&self) -> Duration {
        Duration::from_millis(self.connector.limits.hint_retry_ms)
    }
}
