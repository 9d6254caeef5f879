//! The servers that share the database, and whether those that should be alive beat.

use std::time::Duration;

use tokenrail_ports::{Node, NodeState};
use tokio::time::{Instant, sleep};

use super::only;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::nodes;

const EXISTS: &str = "SELECT to_regclass('nodes') IS NOT NULL";

/// Between two looks at the beats.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A server of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenNode {
    pub node: Node,
    /// It is alive, and has beaten while the doctor looked.
    pub beats: bool,
}

/// All nodes, once those that are alive have beaten, or after two beats.
pub(super) async fn seen(link: &Link, beat: Duration) -> Result<Vec<SeenNode>, QueryFailure> {
    if !only(link, EXISTS).await?.try_get::<_, bool>(0)? {
        return Ok(Vec::new());
    }
    let (first, last_look) = (nodes::all(link).await?, Instant::now() + 2 * beat);
    loop {
        let now = nodes::all(link).await?;
        let silent = |node: &&Node| node.state == NodeState::Alive && first.contains(node);
        let is_silent = now.iter().any(|node| silent(&node));
        if !is_silent || last_look < Instant::now() {
            let seen = now.iter().map(|node| {
                let beats = node.state == NodeState::Alive && !silent(&node);
                SeenNode { node: node.clone(), beats }
            });
            return Ok(seen.collect());
        }
        sleep(LOOK_EVERY).await;
    }
}
