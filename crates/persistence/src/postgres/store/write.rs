//! Runs commands.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_ports::StoreError;

use super::PostgresStore;
use super::repeat::{Repeat, keep};
use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::attempt::Attempt;
use crate::postgres::pool::Pool;

/// How often a command is run if another one was faster, or the server chose it to break a deadlock.
const COMMAND_TRIES: u32 = 3;

impl PostgresStore {
    /// Runs the command in a transaction. See [`Repeat`] for one whose outcome is unknown. If the caller stops waiting,
    /// it may still be done.
    pub(super) async fn write<C: ChangeCommand>(&self, command: C) -> Result<C::Answer, StoreError> {
        self.write_on(&self.inner.commands, command).await
    }

    pub(super) async fn write_on<C: ChangeCommand>(
        &self,
        pool: &Arc<Pool>,
        command: C,
    ) -> Result<C::Answer, StoreError> {
        let pool = Arc::clone(pool);
        let healer = Arc::clone(&self.inner.healer);
        let limits = &self.inner.connector.limits;
        let (wait, agent) = (command.patience(limits), command.agent());
        let patience = Duration::from_millis(limits.repeat_timeout_ms);
        let work = Box::pin(async move {
            let mut tries = 1;
            loop {
                let lease = pool.lease().await?;
                let link = lease.link();
                if let Some(agent) = agent {
                    healer.refuse_incomplete(agent)?;
                }
                match link.attempt(wait, command.run(link)).await {
                    Attempt::NotSaved(failure) if failure.is_worth_another_try() && tries < COMMAND_TRIES => {
                        tries += 1;
                    }
                    Attempt::Saved(answer) => return keep(&healer, link.timeline(), command, answer),
                    Attempt::Unknown(answer, cause) if C::IS_REPEATED => {
                        drop(lease);
                        let repeat = Repeat { pool, healer, wait, patience };
                        return Box::pin(repeat.run(command, answer, cause)).await;
                    }
                    Attempt::Unknown(_, cause) => return Err(StoreError::OutcomeUnknown(Box::new(cause))),
                    Attempt::NotSaved(failure) => return Err(failure.before_commit()),
                }
            }
        });
        self.on_runtime(work).await
    }
}
