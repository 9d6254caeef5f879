//! Commands of which it is not known whether they were saved: the connection broke, or nothing answered in time. They
//! are done again until there is an answer, for a while. Each has something that was made once, such as the id of an
//! agent or of a message, so that what was saved is found, and not done twice.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_ports::StoreError;
use tokio::time::{Instant, sleep, timeout_at};

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::failures::UnknownCause;
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;
use crate::postgres::database::link::attempt::Attempt;
use crate::postgres::failover::Healer;
use crate::postgres::pool::Pool;

/// The pause after a try that has changed nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// How a command is done again.
pub(super) struct Repeat {
    pub(super) pool: Arc<Pool>,
    pub(super) healer: Arc<Healer>,
    /// How long one try may take, without its commit.
    pub(super) wait: Duration,
    /// How long all tries together may take.
    pub(super) patience: Duration,
}

impl Repeat {
    /// Finds out whether the command was saved, and does it if it was not. `first` is what it answered. If that fails
    /// or takes too long, its outcome stays unknown.
    pub(super) async fn run<C: ChangeCommand>(
        &self,
        command: C,
        first: C::Answer,
        cause: UnknownCause,
    ) -> Result<C::Answer, StoreError> {
        tracing::warn!(
            error = &cause as &dyn std::error::Error,
            "it is unknown whether a command was saved; checking the database"
        );
        let until = Instant::now() + self.patience;
        let mut newest = first;
        while let Ok((attempt, timeline)) = timeout_at(until, self.try_once(&command, &newest)).await {
            match attempt {
                Attempt::Saved(answer) => return keep(&self.healer, timeline, command, answer),
                // The run before it has ended without being saved, or this is its answer too.
                Attempt::Unknown(answer, _) => newest = answer,
                Attempt::NotSaved(failure) => match failure.before_commit() {
                    // Whether it was saved or not, nothing of it is there.
                    error @ StoreError::UnknownAgent(_) => return Err(error),
                    error if error.is_transient() => {}
                    // This try has saved nothing, but the first run may have.
                    error => {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "cannot find out whether a command was saved"
                        );
                        break;
                    }
                },
            }
            if self.pool.is_closed() {
                break;
            }
            sleep(PAUSE).await;
        }
        Err(StoreError::OutcomeUnknown(Box::new(cause)))
    }

    /// Also returns the timeline on which it was done.
    async fn try_once<C: ChangeCommand>(&self, command: &C, newest: &C::Answer) -> (Attempt<C::Answer>, u32) {
        let lease = match self.pool.lease().await {
            Ok(lease) => lease,
            Err(error) => return (Attempt::NotSaved(error.into()), UNKNOWN_TIMELINE),
        };
        let link = lease.link();
        let attempt = link.attempt(self.wait, async {
            // Even if it only reads, what it reads is as durable as a commit when it is answered.
            link.barrier().await?;
            // After a failover, something that the command builds on may still be missing.
            if let Some(agent) = command.agent() {
                self.healer.refuse_incomplete(agent)?;
            }
            command.run_again(link, newest).await
        });
        (attempt.await, link.timeline())
    }
}

/// Keeps what the command has changed for a failover, and returns its answer.
pub(super) fn keep<C: ChangeCommand>(
    healer: &Healer,
    timeline: u32,
    command: C,
    answer: C::Answer,
) -> Result<C::Answer, StoreError> {
    let beat = command.beat(&answer);
    match command.kept(&answer, timeline) {
        Some(change) => {
            let kept = healer.keep_change(timeline, change);
            kept.map_err(|superseded| StoreError::OutcomeUnknown(Box::new(superseded)))?;
        }
        None => healer.age(timeline, beat),
    }
    Ok(answer)
}
