//! Hints between the nodes of a database: LISTEN and NOTIFY.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`outgoing`] | hints on their way out |
//! | [`sender`] | the connection that sends them |
//! | [`payload`] | the text of a NOTIFY |
//! | [`listener`] | the connection that hears, and how a node finds out that it no longer does |
//! | [`incoming`] | hints that have come |
//! | [`board`] | what the two connections and the callers share: both kinds of hints, and how the bus is |
//!
//! NOTIFY never stands in a transaction that writes: it would make all commits of the database wait for each other. On
//! a connection of its own it costs the writers nothing.

mod board;
mod incoming;
mod listener;
mod outgoing;
mod payload;
mod sender;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokenrail_ports::{BusFigures, Heard, Hint, IBus};
use tokio::task::JoinSet;

use self::board::Board;
use crate::postgres::database::link::Connector;

/// The channel of all nodes. NOTIFY reaches only listeners of the same database.
const CHANNEL: &str = "tokenrail_bell";

/// The bus between the nodes of a database. [`PostgresStore::bus`](crate::PostgresStore::bus) starts it.
///
/// It has two connections, one to send and one to hear, which are opened again when they are lost. It ends when it is
/// dropped; hints that were not sent by then are lost.
///
/// The first thing that it hears is [`Heard::Missed`], and so is the first thing after each loss of a connection. It
/// works as soon as it has heard itself.
#[derive(Debug)]
pub struct PostgresBus {
    board: Arc<Board>,
    _tasks: JoinSet<()>,
}

impl PostgresBus {
    pub(crate) fn start(connector: &Arc<Connector>) -> Self {
        let board = Arc::new(Board::new(&connector.limits));
        let mut tasks = JoinSet::new();
        tasks.spawn_on(sender::run(Arc::clone(connector), Arc::clone(&board)), &connector.runtime);
        tasks.spawn_on(listener::run(Arc::clone(connector), Arc::clone(&board)), &connector.runtime);
        Self { board, _tasks: tasks }
    }
}

#[async_trait]
impl IBus for PostgresBus {
    fn send_hint(&self, hint: Hint) {
        self.board.outgoing.send_hint(hint);
    }

    /// It assumes 10 until this is called.
    fn set_nodes(&self, nodes: usize) {
        self.board.outgoing.set_nodes(nodes);
    }

    async fn heard(&self) -> Heard {
        self.board.incoming.heard().await
    }

    fn is_working(&self) -> bool {
        self.board.works()
    }

    fn figures(&self) -> BusFigures {
        self.board.figures()
    }
}

/// Logs a failure of one of the two connections. [`Board::set_works`] warns the operator.
fn tell(what: &'static str, failure: &(dyn std::error::Error + 'static)) {
    tracing::debug!(error = failure, "{what}");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
