//! Moves the data of a data folder from SQLite into an empty database of PostgreSQL: all rows with their keys, numbers,
//! ids and checksums.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`source`] | the data folder: claimed, read, and at the end handed over |
//! | [`tables`], [`copy_rows`] | the rows of SQLite, in the form in which PostgreSQL takes them |
//! | [`target`] | the database: whether it may be filled, and the transaction that fills it |
//! | [`copying`] | from one to the other |
//! | [`reading`], [`comparing`] | reads everything again from both, and compares |
//! | [`counts`], [`error`] | how much was moved; why a move failed |
//!
//! A move that dies at any moment can be run again:
//!
//! | step | what a crash after it leaves | what the next run does |
//! | --- | --- | --- |
//! | copy, in one transaction, with the mark [`unfinished_move`] | a database that servers refuse | begins anew |
//! | compare, and note that in the mark | a complete database | compares again |
//! | hand the folder over | a mark that nobody needs | removes it |
//! | remove the mark | | |
//!
//! Nothing of the SQLite database is changed.
//!
//! [`unfinished_move`]: crate::postgres::unfinished_move

mod comparing;
mod copy_rows;
mod copying;
mod counts;
mod error;
mod reading;
mod source;
mod tables;
mod target;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use self::source::Source;
use self::target::{MoveTarget, TargetState};
use crate::postgres::PostgresConfig;

pub use self::counts::MoveCounts;
pub use self::error::MoveError;

/// What a move is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveStep {
    Copying,
    /// What an interrupted move has copied is replaced.
    CopyingAgain,
    Comparing,
}

/// How far a step of a move is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveProgress {
    pub step: MoveStep,
    /// Of `total`, at most. Each event counts twice, because most are stored twice.
    pub done: u64,
    pub total: u64,
}

/// Receives the progress of a move.
pub type MoveObserver<'a> = &'a mut (dyn FnMut(MoveProgress) + Send);

/// Moves the data in `folder` into the database, and compares it. From then on the folder belongs to the database: the
/// token and the output of running agents are still there. The old database stays in it as it was.
///
/// No server runs in the folder or on the database meanwhile. If this fails or the process dies, the folder still has
/// the data, and the same call can be made again.
///
/// # Errors
/// [`MoveError`] has one variant for each action that an operator can take.
pub async fn move_to_postgres(
    folder: &Path,
    to: PostgresConfig,
    tell: MoveObserver<'_>,
) -> Result<MoveCounts, MoveError> {
    let mover = Mover::begin(folder, to).await?;
    let counts = mover.source.counts().await?;
    if !mover.source.is_handed_over {
        match mover.target.state(mover.source.noted).await? {
            TargetState::Empty => mover.copy(&counts, MoveStep::Copying, tell).await?,
            TargetState::Copied => mover.copy(&counts, MoveStep::CopyingAgain, tell).await?,
            TargetState::Compared => {}
        }
        mover.compare(&counts, tell).await?;
        mover.hand_over().await?;
    }
    mover.finish().await?;
    Ok(counts)
}

/// A move, and the right to both sides of it.
struct Mover {
    source: Arc<Source>,
    target: MoveTarget,
}

impl Mover {
    async fn begin(folder: &Path, to: PostgresConfig) -> Result<Self, MoveError> {
        let folder = folder.to_owned();
        let source = tokio::task::spawn_blocking(move || Source::claim(&folder)).await??;
        let target = MoveTarget::open(to).await?;
        Ok(Self { source: Arc::new(source), target })
    }

    /// Copies everything, or nothing.
    async fn copy(
        &self,
        counts: &MoveCounts,
        step: MoveStep,
        tell: MoveObserver<'_>,
    ) -> Result<(), MoveError> {
        let total = 2 * counts.events;
        copying::copy(&self.source, &self.target, &mut |done| tell(MoveProgress { step, done, total })).await
    }

    /// Compares everything, as a server reads it.
    async fn compare(&self, counts: &MoveCounts, tell: MoveObserver<'_>) -> Result<(), MoveError> {
        comparing::compare(&self.source, &self.target, counts, tell).await?;
        self.target.note_compared().await
    }

    async fn hand_over(&self) -> Result<(), MoveError> {
        let source = Arc::clone(&self.source);
        Ok(tokio::task::spawn_blocking(move || source.folder.hand_over()).await??)
    }

    /// Removes the marks on both sides. The folder belongs to the database.
    ///
    /// # Errors
    /// [`MoveError::Folder`] if an earlier call has handed the folder over, but to another database.
    async fn finish(&self) -> Result<(), MoveError> {
        let source = Arc::clone(&self.source);
        let is_marked = match source.noted_now().await? {
            Some(id) => self.target.remove_mark(id).await?,
            None => false,
        };
        tokio::task::spawn_blocking(move || {
            source.folder.forget_move();
            if is_marked { Ok(()) } else { Ok(source.folder.database().map(drop)?) }
        })
        .await?
    }
}
