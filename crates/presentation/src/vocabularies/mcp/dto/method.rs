//! The methods of the protocol.

use super::caller::CacheHint;

/// The methods that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    Ping,
    Discover,
    Listen,
    ListTools,
    CallTool,
    ListResources,
    ListTemplates,
    ReadResource,
    ListPrompts,
    GetPrompt,
    Complete,
}

impl Method {
    /// The newest version has some methods in place of others.
    pub(crate) fn from_name(name: &str, is_newest: bool) -> Option<Self> {
        Some(match name {
            "initialize" if !is_newest => Self::Initialize,
            "ping" if !is_newest => Self::Ping,
            "server/discover" if is_newest => Self::Discover,
            "subscriptions/listen" if is_newest => Self::Listen,
            "tools/list" => Self::ListTools,
            "tools/call" => Self::CallTool,
            "resources/list" => Self::ListResources,
            "resources/templates/list" => Self::ListTemplates,
            "resources/read" => Self::ReadResource,
            "prompts/list" => Self::ListPrompts,
            "prompts/get" => Self::GetPrompt,
            "completion/complete" => Self::Complete,
            _ => return None,
        })
    }

    /// How long a client may keep the result. `None` if it must not keep it at all.
    pub(crate) fn cache(self) -> Option<CacheHint> {
        match self {
            Self::Discover | Self::ListTools | Self::ListTemplates | Self::ListPrompts => {
                Some(CacheHint::FIXED)
            }
            Self::ListResources | Self::ReadResource => Some(CacheHint::STALE),
            Self::Initialize
            | Self::Ping
            | Self::Listen
            | Self::CallTool
            | Self::GetPrompt
            | Self::Complete => None,
        }
    }
}
