//! Commands: everything that changes the database, except what agents say.

use std::future::Future;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

/// One change of the database. It may run more than once, each time in a transaction that contains nothing of the runs
/// before.
///
/// A command about one agent locks the agent's row in `heads` first, and then changes only rows of this agent. Appends
/// do the same, so the two never wait for each other in a circle.
pub(crate) trait ChangeCommand: Send + Sync + 'static {
    type Answer: Send + 'static;

    fn run(&self, db: &Link) -> impl Future<Output = Result<Self::Answer, QueryFailure>> + Send;
}
