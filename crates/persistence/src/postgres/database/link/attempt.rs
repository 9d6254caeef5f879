//! A change, with what it has answered even if its outcome is unknown.

use std::future::Future;
use std::time::Duration;

use crate::postgres::database::failures::{ChangeFailure, UnknownCause};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

/// What became of a change.
pub(crate) enum Attempt<T> {
    Saved(T),
    NotSaved(QueryFailure),
    /// It may have been saved. If it was, this is what it answered.
    Unknown(T, UnknownCause),
}

impl Link {
    /// Like [`Link::change`].
    pub(crate) async fn attempt<T>(
        &self,
        wait: Duration,
        work: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Attempt<T> {
        let mut answer = None;
        let done = self
            .change(wait, async {
                answer = Some(work.await?);
                Ok(())
            })
            .await;
        match (done, answer) {
            (Ok(()), Some(answer)) => Attempt::Saved(answer),
            (Err(ChangeFailure::Unknown(cause)), Some(answer)) => Attempt::Unknown(answer, cause),
            (Err(ChangeFailure::NotSaved(failure)), _) => Attempt::NotSaved(failure),
            // Nothing is committed before there is an answer.
            (Ok(()) | Err(ChangeFailure::Unknown(_)), None) => Attempt::NotSaved(QueryFailure::Again),
        }
    }
}
