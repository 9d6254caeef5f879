//! Login methods.

use super::messages::AuthMethod;
use crate::converse::rpc::text;

/// The login methods of the agent, and which of them was tried.
#[derive(Debug, Default)]
pub(super) struct Login {
    /// The first method that needs no user; `None` if there is none, or it was tried.
    untried: Option<String>,
    names: Vec<String>,
}

impl Login {
    pub(super) fn of(methods: &[AuthMethod<'_>]) -> Self {
        Self {
            untried: methods.iter().filter(|method| needs_nobody(method)).find_map(|method| text(method.id)),
            names: methods
                .iter()
                .filter_map(|method| text(method.name).or_else(|| text(method.id)))
                .collect(),
        }
    }

    pub(super) fn take_untried(&mut self) -> Option<String> {
        self.untried.take()
    }

    /// The advice for the operator of the server.
    pub(super) fn advice(&self, reason: &str) -> String {
        let offered = if self.names.is_empty() { "none".to_owned() } else { self.names.join(", ") };
        format!(
            "the agent requires a login ({reason}). Its login methods: {offered}. Log in once with the agent's own \
             program, as the server's user and with the same HOME, or pass an API key to it with pass_env"
        )
    }
}

/// Only an API key in the environment needs no user. Any other method may open a browser and wait forever.
fn needs_nobody(method: &AuthMethod<'_>) -> bool {
    let id = text(method.id).unwrap_or_default().to_lowercase().replace(['-', '_'], "");
    text(method.kind).as_deref() == Some("env_var") || id.contains("apikey")
}
