//! Agents that are launched by agents. A child has no more than its parent: it works inside the parent's folder, and
//! the number and the depth of children are bounded.

use std::path::Path;

use tokenrail_domain::{Agent, AgentId, AgentStatus, LaunchedBy};
use tokenrail_ports::{AgentFilter, ListBounds, StoreError};
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use super::launch::Launch;
use crate::core::Core;
use crate::error::Refusal;
use crate::service::AgentService;

/// Bytes of a field of the agents that are looked through. The metadata that name a parent are shorter.
const FIELD_BYTES: usize = 256;

/// The place of a child that is being launched. While there is one, no other child is launched at this node, so that
/// children launched at the same moment are counted.
pub(super) struct ChildPlace<'a> {
    parent: Agent,
    _only: MutexGuard<'a, ()>,
}

impl AgentService {
    /// Checks that the agent that launches may have one more child, and notes it in the metadata of the launch. `None`
    /// if no agent launches, or one of another server.
    pub(super) async fn admit_child(&self, launch: &mut Launch) -> Result<Option<ChildPlace<'_>>, Refusal> {
        let Some(parent) = launch.parent else { return Ok(None) };
        let core = &self.core;
        let locked = timeout(core.limits.commands.command_timeout, core.children.lock()).await;
        let only = locked.map_err(|_| StoreError::Busy)?;
        let Some(parent) = core.outside.agents.get(parent).await? else { return Ok(None) };
        if parent.deleted_at.is_some() {
            return Err(Refusal::Deleted);
        }
        let child = LaunchedBy::child_of(&parent);
        let limits = &core.limits.admission;
        if limits.child_depth < child.depth {
            return Err(Refusal::TooDeep { limit: limits.child_depth });
        }
        if limits.child_agents <= self.active_children(parent.id).await? {
            return Err(Refusal::TooManyChildren { limit: limits.child_agents });
        }
        launch.metadata = Some(child.to_metadata());
        Ok(Some(ChildPlace { parent, _only: only }))
    }

    /// How many agents that this one has launched run or wait. There is no list of them: all active agents are looked
    /// through, whose number is limited.
    async fn active_children(&self, parent: AgentId) -> Result<usize, StoreError> {
        let limits = &self.core.limits.lists;
        let mut filter = AgentFilter {
            statuses: vec![AgentStatus::Initializing, AgentStatus::Running],
            limit: limits.list_agents,
            ..AgentFilter::default()
        };
        let bounds = ListBounds { field_bytes: FIELD_BYTES, ..limits.bounds() };
        let mut children = 0;
        loop {
            let page = self.core.outside.agents.list(filter.clone(), bounds).await?;
            let by = page.items.iter().filter_map(|listed| LaunchedBy::of(&listed.agent));
            children += by.filter(|by| by.agent == parent).count();
            filter.before = page.items.last().map(|listed| listed.agent.id);
            if !page.more || filter.before.is_none() {
                return Ok(children);
            }
        }
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
