//! The copy: a thread reads SQLite, and this task sends what it has read. Both are at work at the same time, and only a
//! few pieces are in memory.

use std::sync::Arc;

use futures_util::SinkExt as _;
use tokio::pin;
use tokio::sync::mpsc::{Receiver, channel};

use super::error::MoveError;
use super::source::Source;
use super::tables::{Piece, ReadFailure, Table, read_all};
use super::target::MoveTarget;
use crate::postgres::error::QueryFailure;

/// Pieces that were read and are not sent yet.
const PIECES: usize = 4;

/// How the sending ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    All,
    /// The reading ended early.
    NotAll,
}

pub(super) async fn copy(
    source: &Arc<Source>,
    target: &MoveTarget,
    tell_done: &mut (dyn FnMut(u64) + Send),
) -> Result<(), MoveError> {
    let id = match source.noted {
        Some(id) => id,
        None => target.new_id().await?,
    };
    // Before the mark in the database can be seen.
    source.note(id).await?;
    target.begin(id, &source.name()).await?;
    let (to, mut pieces) = channel(PIECES);
    let from = Arc::clone(source);
    let reading = tokio::task::spawn_blocking(move || read_all(&from.open()?, &to));
    let sent = send(target, &mut pieces, tell_done).await;
    // If the sending has failed, the reading ends.
    drop(pieces);
    let read = reading.await?;
    match (sent.map_err(|failure| target.failed(failure))?, read) {
        (Sent::All, Ok(())) => target.commit().await,
        (_, Err(ReadFailure::Failed(error))) => Err(error),
        (Sent::NotAll, Ok(()) | Err(ReadFailure::NotWanted)) | (Sent::All, Err(ReadFailure::NotWanted)) => {
            Err(MoveError::Differs { what: "all tables".to_owned() })
        }
    }
}

async fn send(
    target: &MoveTarget,
    pieces: &mut Receiver<Piece>,
    tell_done: &mut (dyn FnMut(u64) + Send),
) -> Result<Sent, QueryFailure> {
    for table in Table::ALL {
        let sink = target.link.copy(&table.copy()).await?;
        pin!(sink);
        loop {
            match pieces.recv().await {
                Some(Piece::Rows { rows, done }) => {
                    sink.send(rows).await?;
                    tell_done(done);
                }
                Some(Piece::EndOfTable) => break,
                None => return Ok(Sent::NotAll),
            }
        }
        sink.finish().await?;
    }
    Ok(Sent::All)
}
