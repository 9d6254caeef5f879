//! Writes the columns of an agent that its latest result fills.

use tokenrail_domain::JsonText;
use tokio_postgres::types::ToSql;

use crate::format::latest_result::LatestResult;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::bytes_of;

/// Runs a statement whose `$1` to `$7` are these columns: usage, cost, and of the error its class, code, text, pause
/// and whether it can be recovered from. Its own values follow.
pub(crate) async fn save_result(
    db: &Link,
    sql: &str,
    result: &LatestResult<'_>,
    own: &[&(dyn ToSql + Sync)],
) -> Result<(), QueryFailure> {
    let LatestResult { usage, cost_usd, error } = result;
    let usage = bytes_of(usage.map(JsonText::as_str));
    let class = error.map(|error| error.class.as_str());
    let code = bytes_of(error.and_then(|error| error.code.as_deref()));
    let text = bytes_of(error.map(|error| &*error.text));
    let pause = error.and_then(|error| error.retry_after_ms).map(|ms| ms as i64);
    let recoverable = error.map(|error| error.recoverable);
    let columns: [&(dyn ToSql + Sync); 7] = [&usage, cost_usd, &class, &code, &text, &pause, &recoverable];
    db.run(sql, &[&columns[..], own].concat()).await?;
    Ok(())
}
