//! Whether a process is still its node, or fenced: it was declared lost, has left, or another process has joined.

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;

/// The first half of the number of each lock of a node. The second half is the node.
const NODE_LOCKS: i32 = 0x746f_6b6e;

/// Not a lock on the node's row: the commit may wait for a standby that is away, and beats must not wait for it.
const SHARE: &str = "SELECT pg_advisory_xact_lock_shared($1, $2)";

const EXCLUDE: &str = "SELECT pg_advisory_xact_lock($1, $2)";

const STILL: &str = "SELECT FROM nodes WHERE id = $1 AND incarnation = $2 AND state = 'alive'";

/// Whether this process is the node, and not fenced. Until the transaction ends, no other process joins as this node.
pub(crate) async fn is_still(db: &Link, node: JoinedNode) -> Result<bool, QueryFailure> {
    db.rows(SHARE, &[&NODE_LOCKS, &lock_of(node.id)]).await?;
    Ok(db.row(STILL, &[&node.id, &node.incarnation]).await?.is_some())
}

/// Waits until no other process is about to own anything as this node. What comes later finds that it is fenced.
pub(crate) async fn exclude_former(db: &Link, node: i64) -> Result<(), QueryFailure> {
    db.rows(EXCLUDE, &[&NODE_LOCKS, &lock_of(node)]).await?;
    Ok(())
}

/// Two nodes with the same one would only wait for each other.
fn lock_of(node: i64) -> i32 {
    node as i32
}
