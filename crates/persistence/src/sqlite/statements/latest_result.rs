//! The columns of an agent that its latest result fills.

use rusqlite::{Connection, ToSql, named_params};
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

impl LatestResult<'_> {
    /// Runs a statement with its own parameters and those of these columns.
    pub(crate) fn save(
        &self,
        db: &Connection,
        sql: &str,
        own: &[(&str, &dyn ToSql)],
    ) -> rusqlite::Result<()> {
        let Self { usage, cost_usd, error } = self;
        let columns = named_params! {
            ":usage": usage.map(JsonText::as_str),
            ":cost_usd": cost_usd,
            ":error_class": error.map(|error| error.class.as_str()),
            ":error_code": error.and_then(|error| error.code.as_deref()),
            ":error_text": error.map(|error| &*error.text),
            ":error_retry_after_ms": error.and_then(|error| error.retry_after_ms).map(|ms| ms as i64),
            ":error_recoverable": error.map(|error| error.recoverable),
        };
        db.prepare_cached(sql)?.execute(&*[own, columns].concat())?;
        Ok(())
    }
}
