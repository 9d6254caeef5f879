//! What the latest result of an agent leaves in its row.

use tokenrail_domain::{AgentError, JsonText, TurnResult};

/// What the latest turn used, and why it failed.
pub(crate) struct LatestResult<'a> {
    pub(crate) usage: Option<&'a JsonText>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) error: Option<&'a AgentError>,
}

impl<'a> From<&'a TurnResult> for LatestResult<'a> {
    fn from(result: &'a TurnResult) -> Self {
        Self { usage: result.usage.as_ref(), cost_usd: result.cost_usd, error: result.error.as_ref() }
    }
}
