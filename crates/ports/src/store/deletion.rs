//! What a deletion removes.

/// What a deletion of an agent removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The agent leaves the lists. Its history stays.
    KeepHistory,
    /// Everything that belongs to the agent is removed, its history too.
    Purge,
}
