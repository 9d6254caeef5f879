//! Ways to log in.

use super::messages::AuthMethod;
use crate::converse::rpc::text;

/// What the agent offers, and what was tried of it.
#[derive(Debug, Default)]
pub(super) struct Login {
    /// The first that needs nobody; none when it was tried.
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

    /// What whoever runs the agent is told.
    pub(super) fn advice(&self, reason: &str) -> String {
        let offered =
            if self.names.is_empty() { "no login method".to_owned() } else { self.names.join(", ") };
        format!(
            "the agent requires a login ({reason}). Its login methods: {offered}. Log in once with the agent's own \
             program, as the server's user and with the same HOME, or pass an API key to it with pass_env"
        )
    }
}

/// Only a key that is in the environment already needs nobody; anything else may open a browser and wait for ever.
fn needs_nobody(method: &AuthMethod<'_>) -> bool {
    let id = text(method.id).unwrap_or_default().to_lowercase().replace(['-', '_'], "");
    text(method.kind).as_deref() == Some("env_var") || id.contains("apikey")
}
