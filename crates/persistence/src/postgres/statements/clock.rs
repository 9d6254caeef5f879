//! The clock of the PostgreSQL server, which all nodes share.

use tokenrail_domain::Timestamp;
use tokenrail_ports::StoreError;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::column;

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) async fn now(db: &Link) -> Result<Timestamp, QueryFailure> {
    let row = db.row(NOW, &[]).await?;
    let row = row.ok_or_else(|| StoreError::Corrupt("the time has no row".to_owned()))?;
    Ok(Timestamp(column::<i64>(&row, 0)?))
}
