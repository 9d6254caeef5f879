//! The columns of an agent that its latest result fills.

use tokenrail_domain::{AgentError, JsonText, TurnResult};
use tokio_postgres::types::ToSql;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::bytes_of;

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

impl LatestResult<'_> {
    /// Runs a statement whose `$1` to `$7` are these columns: usage, cost, and of the error its class, code, text,
    /// pause and whether it can be recovered from. Its own values follow.
    pub(crate) async fn save(
        &self,
        db: &Link,
        sql: &str,
        own: &[&(dyn ToSql + Sync)],
    ) -> Result<(), QueryFailure> {
        let Self { usage, cost_usd, error } = self;
        let usage = bytes_of(usage.map(JsonText::as_str));
        let class = error.map(|error| error.class.as_str());
        let code = bytes_of(error.and_then(|error| error.code.as_deref()));
        let text = bytes_of(error.map(|error| &*error.text));
        let pause = error.and_then(|error| error.retry_after_ms).map(|ms| ms as i64);
        let recoverable = error.map(|error| error.recoverable);
        let columns: [&(dyn ToSql + Sync); 7] =
            [&usage, cost_usd, &class, &code, &text, &pause, &recoverable];
        db.run(sql, &[&columns[..], own].concat()).await?;
        Ok(())
    }
}
