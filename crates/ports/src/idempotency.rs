//! Idempotency keys: a command that a client repeats with the same key happens once.

use tokenrail_domain::{AgentId, Timestamp, TurnNumber};

/// A client's key that makes a command happen once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The namespace of the key. Keys of different scopes are independent.
    pub scope: String,
    pub key: String,
    /// The body of the command. The same key with another body is an error of the client.
    pub body: String,
    /// When the key was used, in the time of keys. That time advances while the server runs and ignores changes of the
    /// system clock.
    pub used_at: Timestamp,
    /// Keys that were used before this point in the time of keys are forgotten.
    pub forget_before: Timestamp,
    pub life: KeyLife,
}

/// How long a key is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLife {
    /// Until it is older than [`Idempotency::forget_before`].
    UntilForgotten,
    /// Until the agent receives a newer message or is deleted. Then the key can be used again.
    WhileNewest,
}

/// The command for which a key was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recalled {
    /// Whether that command had the same body.
    pub same_body: bool,
    pub agent: AgentId,
    pub turn: TurnNumber,
    pub queued: u32,
}
