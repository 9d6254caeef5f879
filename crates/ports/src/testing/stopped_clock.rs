//! A clock, random numbers and workspaces that a test controls.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokenrail_domain::{AgentId, Timestamp};

use crate::{CwdNotAllowed, FolderError, IClock, IRandom, IWorkspace};

/// A clock that stands still until a test advances it.
#[derive(Debug)]
pub struct StoppedClock(AtomicI64);

impl StoppedClock {
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.0))
    }

    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl IClock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// Counts instead of drawing random numbers, so that the same test always gets the same ids.
#[derive(Debug, Default)]
pub struct CountingRandom(AtomicU64);

impl CountingRandom {
    /// Two of them that begin far apart make different ids.
    pub fn starting_at(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }
}

impl IRandom for CountingRandom {
    fn bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        bytes
    }
}

/// Allows `/allowed` and everything below it, and creates nothing.
#[derive(Debug)]
pub struct PretendWorkspace;

#[async_trait]
impl IWorkspace for PretendWorkspace {
    async fn folder(&self, agent: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError> {
        match asked {
            None => Ok(PathBuf::from("/own").join(agent.to_string())),
            Some(path) if path.starts_with("/allowed") => Ok(PathBuf::from(path)),
            Some(_) => Err(CwdNotAllowed.into()),
        }
    }

    async fn remove(&self, _agent: AgentId) -> std::io::Result<()> {
        Ok(())
    }
}

/// Allows what [`PretendWorkspace`] allows, and records which agents have folders of their own.
#[derive(Debug, Default)]
pub struct NotedWorkspace {
    own: Mutex<BTreeSet<AgentId>>,
    removals_refused: AtomicU32,
}

impl NotedWorkspace {
    /// The agents that have a folder of their own.
    pub fn own_folders(&self) -> Vec<AgentId> {
        self.lock().iter().copied().collect()
    }

    /// Makes the next `times` removals of folders fail.
    pub fn refuse_removals(&self, times: u32) {
        self.removals_refused.store(times, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AgentId>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl IWorkspace for NotedWorkspace {
    async fn folder(&self, agent: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError> {
        if asked.is_none() {
            self.lock().insert(agent);
        }
        PretendWorkspace.folder(agent, asked).await
    }

    async fn remove(&self, agent: AgentId) -> std::io::Result<()> {
        let refused = self.removals_refused.load(Ordering::Relaxed);
        if 0 < refused {
            self.removals_refused.store(refused - 1, Ordering::Relaxed);
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        self.lock().remove(&agent);
        Ok(())
    }
}
