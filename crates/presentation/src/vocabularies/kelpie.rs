//! Kelpie's vocabulary: named events in an event stream. It has no routes of its own: the streams of other routes
//! carry it.

mod dto;
mod fold;

use tokenrail_domain::AgentId;

use crate::blocks::BlockFold;

/// Creates the fold that writes the blocks of one turn.
pub(super) fn blocks(agent: AgentId) -> Box<dyn BlockFold> {
    Box::new(fold::KelpieFold::new(agent))
}
