//! One page of a list, in which long fields are cut.

use std::pin::pin;

use futures_util::TryStreamExt as _;
use tokenrail_ports::{ListBounds, ListPage, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

/// Reads a page of at most `limit` items. `$1` of the statement is the length of a field, in bytes, beyond which it is
/// cut; `row` receives it too. Rows are taken one by one, and no further one when the page is full.
pub(crate) async fn list_page<T>(
    db: &Link,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
    (limit, bounds): (usize, ListBounds),
    row: impl Fn(&Row, i32) -> Result<T, StoreError>,
    size: impl Fn(&T) -> usize,
) -> Result<ListPage<T>, QueryFailure> {
    let field_bytes = i32::try_from(bounds.field_bytes).unwrap_or(i32::MAX);
    let all: Vec<&(dyn ToSql + Sync)> =
        std::iter::once(&field_bytes as &(dyn ToSql + Sync)).chain(values.iter().copied()).collect();
    let mut rows = pin!(db.stream(sql, &all).await?);
    let (mut items, mut bytes) = (Vec::new(), 0);
    // One item more than the page can take shows that there are more.
    while items.len() <= limit
        && bytes <= bounds.bytes
        && let Some(found) = rows.try_next().await?
    {
        let item = row(&found, field_bytes)?;
        bytes = bytes.saturating_add(size(&item));
        items.push(item);
    }
    let page = ListPage::of(items.into_iter().map(Ok::<T, StoreError>), (limit, bounds.bytes), size)?;
    Ok(page)
}

/// One row more than requested shows whether there are more.
pub(crate) fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}
