//! A permission request: the agent asks whether it may do something, and waits.

use crate::{JsonText, Timestamp};

/// A permission request of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    /// Unique among all requests of the agent.
    pub id: String,
    /// The id of the tool call that the request is about.
    pub call: Option<String>,
    pub tool: String,
    /// The input of the tool call, unchanged from the agent: any JSON.
    pub input: JsonText,
    /// The answers that the request accepts.
    pub options: Vec<PermissionOption>,
    /// When the agent asked. `None` if it did not say so.
    pub asked_at: Option<Timestamp>,
    /// When the request is settled without an answer. `None` if never, or unknown.
    pub expires_at: Option<Timestamp>,
    /// The option that is chosen then. `None` if none is.
    pub default_option: Option<String>,
}

/// One of the answers to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    /// The label that a user reads.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: &'static str,
}
