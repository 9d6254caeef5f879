//! The servers that share the database.

use serde::Serialize;
#[cfg(test)]
use tokenrail_application::NodeState;
use tokenrail_application::{Node, NodeView};
use utoipa::ToSchema;

#[cfg(test)]
use super::declarations::Declarations;

/// A server that uses the database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServerNode)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ServerNode"))]
pub(crate) struct NodeDto<'a> {
    id: u64,
    /// A label for people. Several nodes can have the same one.
    name: &'a str,
    /// `alive`; `away`: stopped, and expected back; `lost`: silent for too long; or `gone`: removed.
    #[cfg_attr(test, ts(type = "NodeState"))]
    state: &'static str,
    /// The version of its program.
    version: &'a str,
    /// Whether this is the server that sent the response.
    #[serde(rename = "self")]
    is_this: bool,
}

impl<'a> From<&'a NodeView> for NodeDto<'a> {
    fn from(view: &'a NodeView) -> Self {
        let NodeView { node: Node { id, name, version, state, types: _, pulse: _ }, is_this } = view;
        Self { id: id.0, name, state: state.as_str(), version, is_this: *is_this }
    }
}

/// The types that the client library knows.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.words("NodeState", "Whether a node answers.", NodeState::ALL.map(NodeState::as_str));
    out.of::<NodeDto<'_>>();
}
