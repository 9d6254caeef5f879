//! Hears hints on a connection that only listens.
//!
//! A connection can be dead without anybody noticing: the other end is gone, the server has failed over, a process of
//! it hangs. So the node sends a hint to itself now and then. If it does not hear that, one of the two
//! connections is useless, and both are replaced.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::board::Board;
use super::{CHANNEL, tell};
use crate::postgres::database::driver::Ear;
use crate::postgres::database::failures::ConnectFailure;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::settings::Purpose;

/// Hears until it is aborted.
pub(super) async fn run(connector: Arc<Connector>, board: Arc<Board>) {
    loop {
        match listen(&connector, &board).await {
            Ok(link) => {
                // Whatever was sent before it listened.
                board.incoming.miss();
                watch(&connector, &board, &link).await;
            }
            Err(failure) => {
                tell("cannot open the connection that receives hints from other nodes", &failure);
                sleep(Duration::from_millis(connector.limits.hint_retry_ms)).await;
            }
        }
        board.set_works(false);
    }
}

async fn listen(connector: &Connector, board: &Arc<Board>) -> Result<Link, ConnectFailure> {
    let hears = Arc::clone(board);
    // `Driver::run` in `database/driver.rs` calls it for each notification.
    let ear: Ear = Arc::new(move |notification| hears.incoming.take(notification.payload()));
    let link = connector.connect_to_hear(Purpose::WithoutStandby, ear).await?;
    let wait = Duration::from_millis(connector.limits.connect_timeout_ms);
    let listens = timeout(wait, link.batch(&format!("LISTEN {CHANNEL}"))).await;
    listens.map_err(|_| ConnectFailure::TimedOut(wait))??;
    Ok(link)
}

/// Checks the connection until it is useless.
async fn watch(connector: &Connector, board: &Board, link: &Link) {
    let limits = &connector.limits;
    let check_every = Duration::from_millis(limits.hint_check_ms);
    let check_wait = Duration::from_millis(limits.hint_wait_ms);
    let mut timelines = connector.known.timelines();
    loop {
        // A former primary may keep the connection.
        if link.is_superseded() {
            return board.outgoing.renew_sender();
        }
        tokio::select! {
            () = link.ended() => return,
            _ = timelines.changed() => continue,
            checked = timeout(check_wait, board.check()) => {
                if checked.is_err() {
                    tracing::debug!("the node did not hear its own hint within {check_wait:?}");
                    return board.outgoing.renew_sender();
                }
            }
        }
        board.set_works(true);
        tokio::select! {
            () = link.ended() => return,
            _ = timelines.changed() => {}
            () = sleep(check_every) => {}
        }
    }
}
