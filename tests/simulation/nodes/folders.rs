//! The folders of agents, on the disks of the nodes.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::AgentId;
use tokenrail_ports::testing::PretendWorkspace;
use tokenrail_ports::{FolderError, IWorkspace};

use super::Place;
use crate::world::World;

/// Makes and removes folders. If there is one node only, nobody looks at them.
pub(crate) struct SimWorkspace(pub(crate) Arc<World>);

impl SimWorkspace {
    /// The node, while its process runs.
    async fn place(&self) -> Option<&Place> {
        let place = self.0.node.as_ref()?;
        place.while_stopped().await;
        if self.0.lock().crashed {
            std::future::pending::<()>().await;
        }
        Some(place)
    }
}

#[async_trait]
impl IWorkspace for SimWorkspace {
    async fn folder(&self, agent: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError> {
        if let (Some(place), None) = (self.place().await, &asked) {
            place.makes_folder(agent);
        }
        PretendWorkspace.folder(agent, asked).await
    }

    async fn remove(&self, agent: AgentId) -> std::io::Result<()> {
        if let Some(place) = self.place().await
            && place.removes_folder(agent)
            && self.0.disk.saved_agent(agent).is_none()
        {
            self.0.reach("a node that was lost removed a folder when it was back");
        }
        Ok(())
    }
}
