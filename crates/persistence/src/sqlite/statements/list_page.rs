//! One page of a list, in which long fields are cut.

use rusqlite::{Connection, Row, ToSql, params_from_iter};
use tokenrail_ports::{ListBounds, ListPage, StoreError};

use crate::sqlite::error::store_error;

/// Reads a page of at most `limit` items. The first parameter of the statement is the length of a field, in bytes,
/// beyond which it is cut; `row` receives it too. SQLite cuts the long fields row by row, so that only one of them at a
/// time is completely in memory.
pub(crate) fn list_page<T>(
    db: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    (limit, bounds): (usize, ListBounds),
    row: impl Fn(&Row<'_>, i64) -> rusqlite::Result<T>,
    size: impl Fn(&T) -> usize,
) -> Result<ListPage<T>, StoreError> {
    let field_bytes = i64::try_from(bounds.field_bytes).unwrap_or(i64::MAX);
    let values = std::iter::once(&field_bytes as &dyn ToSql).chain(values.iter().copied());
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let items = statement
        .query_map(params_from_iter(values), |found| row(found, field_bytes))
        .map_err(store_error)?;
    ListPage::of(items, (limit, bounds.bytes), size).map_err(store_error)
}
