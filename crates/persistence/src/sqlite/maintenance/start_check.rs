//! The check at each start: a damaged database is refused before anything is read or added.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::sqlite::error::OpenError;

/// If a journal does not end at its head, the next number would be used twice, or one number never. The last batch of
/// an agent is found by index, so this takes about a second for a million agents.
const WRONG_HEAD: &str = "
    SELECT agents.id
    FROM agents
    LEFT JOIN heads ON heads.agent = agents.key
    WHERE heads.head IS NOT coalesce(
        (SELECT last_seq FROM journal WHERE agent = agents.key ORDER BY first_seq DESC LIMIT 1), 0)
    LIMIT 1";

/// # Errors
/// [`OpenError::Corrupt`] says what is wrong.
pub(crate) fn check(db: &Connection, path: &Path, pages_up_to_bytes: u64) -> Result<(), OpenError> {
    let failed = |error| OpenError::sqlite(path, error);
    let corrupt = |problem| Err(OpenError::Corrupt { path: path.to_owned(), problem });
    let bytes = std::fs::metadata(path).map_err(|error| OpenError::io(path, error))?.len();
    if bytes <= pages_up_to_bytes {
        let found: String = db.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            return corrupt(format!("{found}; nothing was changed; restore a backup"));
        }
    }
    match db.query_row(WRONG_HEAD, [], |row| row.get::<_, String>(0)).optional().map_err(failed)? {
        None => Ok(()),
        Some(agent) => corrupt(format!(
            "the journal of agent {agent} does not end at its latest sequence number; nothing was changed; \
             restore a backup"
        )),
    }
}
