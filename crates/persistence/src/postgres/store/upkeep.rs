//! What a node does for the database after its beats: removes what no program needs any more, and reads how old the
//! snapshots are.

use std::sync::Arc;
use std::time::Instant;

use super::PostgresStore;
use crate::postgres::database::steps::Steps;
use crate::postgres::statements::age;
use crate::postgres::statements::outdated::{self, RemoveCommand};

impl PostgresStore {
    /// Begins the upkeep, unless it is still underway. In the background and not on the connection of the beats: if it
    /// is slow, this node must not seem lost.
    pub(super) fn begin_upkeep(&self) {
        let Ok(underway) = Arc::clone(&self.inner.upkeep).try_lock_owned() else { return };
        let store = self.clone();
        self.inner.connector.runtime.spawn(async move {
            store.remove_what_nobody_needs().await;
            store.look_at_age().await;
            drop(underway);
        });
    }

    /// After the last upgrade. Another beat follows if it fails.
    async fn remove_what_nobody_needs(&self) {
        let steps: &'static Steps = self.inner.connector.steps;
        for removal in steps.removals {
            let removing =
                async {
                    let is_due = self.read_on(&self.inner.nodes, move |db| async move {
                        outdated::is_due(&db, removal).await
                    });
                    if is_due.await? { self.write(RemoveCommand(removal)).await } else { Ok(false) }
                };
            match removing.await {
                Ok(false) => {}
                Ok(true) => {
                    let schema = removal.schema;
                    tracing::info!(schema, "older versions of this program can no longer use the database");
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "cannot remove obsolete rows from the database");
                }
            }
        }
    }

    /// For metrics. What cannot be read now is read later.
    async fn look_at_age(&self) {
        let figures = &self.inner.connector.figures;
        if figures.is_age_due(Instant::now()) {
            match self.read_on(&self.inner.nodes, |db| async move { age::read(&db).await }).await {
                Ok(age) => figures.note_age(age),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "cannot read the age of the oldest database snapshot");
                }
            }
        }
    }
}
