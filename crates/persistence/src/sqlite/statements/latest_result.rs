//! Writes the columns of an agent that its latest result fills.

use rusqlite::{Connection, ToSql, named_params};
use tokenrail_domain::JsonText;

use crate::format::latest_result::LatestResult;

/// Runs a statement with its own parameters and those of these columns.
pub(crate) fn save_result(
    db: &Connection,
    sql: &str,
    result: &LatestResult<'_>,
    own: &[(&str, &dyn ToSql)],
) -> rusqlite::Result<()> {
    let LatestResult { usage, cost_usd, error } = result;
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
