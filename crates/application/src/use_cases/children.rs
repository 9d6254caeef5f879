//! Agents that are launched by agents. A child has no more than its parent: it works inside the parent's folder, and
//! the number and the depth of children are bounded.

use std::path::Path;

use tokenrail_domain::{Agent, AgentId, AgentStatus, LaunchedBy};
use tokenrail_ports::{AgentFilter, ListBounds, StoreError};
use tokio::sync::MutexGuard;
use tokio::time::timeout_at;

use super::launch::Launch;
use crate::core::Core;
use crate::error::Refusal;
use crate::service::AgentService;

/// The place of a child that is being launched. While there is one, no other child is launched at this node, so that
/// children launched at the same moment are counted.
pub(super) struct ChildPlace<'a> {
    parent: Agent,
    pub(super) launched_by: LaunchedBy,
    _only: MutexGuard<'a, ()>,
}

impl AgentService {
    /// Checks that the agent that launches may have one more child. `None` if no agent launches, or one of another
    /// server.
    pub(super) async fn admit_child(&self, launch: &Launch) -> Result<Option<ChildPlace<'_>>, Refusal> {
        let Some(parent) = launch.parent else { return Ok(None) };
        let core = &self.core;
        let locked = timeout_at(core.command_deadline(), core.children.lock()).await;
        let only = locked.map_err(|_| StoreError::Busy)?;
        let Some(parent) = core.outside.agents.get(parent).await? else { return Ok(None) };
        if parent.deleted_at.is_some() {
            return Err(Refusal::ParentDeleted);
        }
        let launched_by = LaunchedBy::parent(&parent);
        let limits = &core.limits.admission;
        if limits.child_depth < launched_by.depth {
            return Err(Refusal::TooDeep { limit: limits.child_depth });
        }
        if self.has_all_children(parent.id).await? {
            return Err(Refusal::TooManyChildren { limit: limits.child_agents });
        }
        Ok(Some(ChildPlace { parent, launched_by, _only: only }))
    }

    /// Whether as many children of the agent as it may have run or wait.
    async fn has_all_children(&self, parent: AgentId) -> Result<bool, StoreError> {
        let limit = self.core.limits.admission.child_agents;
        let active = AgentFilter {
            statuses: vec![AgentStatus::Initializing, AgentStatus::Running],
            launched_by: Some(parent),
            limit,
            ..AgentFilter::default()
        };
        let bounds = ListBounds { bytes: usize::MAX, field_bytes: 0 };
        let children = self.core.outside.agents.list(active, bounds).await?;
        Ok(limit <= children.items.len())
    }
}

impl ChildPlace<'_> {
    /// Checks the folder that the child asked for. The workspace has resolved its links, and those of the parent's
    /// folder. A folder of another node is not comparable.
    pub(super) fn check_folder(&self, core: &Core, folder: &str) -> Result<(), Refusal> {
        let Agent { cwd, .. } = &self.parent;
        let is_inside = core.is_here(&self.parent) && !cwd.is_empty() && Path::new(folder).starts_with(cwd);
        if is_inside { Ok(()) } else { Err(Refusal::OutsideParent) }
    }
}
