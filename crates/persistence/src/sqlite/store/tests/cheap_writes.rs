//! What SQLite does for each row that is written.

use rusqlite::Connection;

use super::*;
use crate::sqlite::statements::compaction::{MARK_IF_DONE, PACKED_BATCHES, REMOVE, STORED};
use crate::sqlite::writer::{NEXT_NUMBER, NUMBER};

/// The instructions of a statement: the column `opcode` of EXPLAIN.
fn opcodes(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(&format!("EXPLAIN {sql}")).unwrap();
    statement.query_map([], |row| row.get("opcode")).unwrap().collect::<Result<_, _>>().unwrap()
}

fn names(db: &Connection, sql: &str) -> Vec<String> {
    db.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A temporary table costs as much as several rows.
#[test]
fn no_row_needs_a_temporary_table_to_be_checked() {
    let (_store, folder) = fresh();
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    let tables =
        names(&db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    assert!(tables.contains(&"agent_messages".to_owned()), "{tables:?}");
    for table in tables {
        let columns = names(&db, &format!("SELECT name FROM pragma_table_info('{table}')"));
        let values = vec!["NULL"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {table} ({}) VALUES ({values})", columns.join(", "));
        let opcodes = opcodes(&db, &insert);
        assert!(opcodes.iter().any(|opcode| opcode == "MakeRecord"), "{opcodes:?}");
        assert!(!opcodes.iter().any(|opcode| opcode == "OpenEphemeral"), "{table}: {opcodes:?}");
    }
}

#[test]
fn a_transaction_needs_no_temporary_table_for_its_number() {
    let (_store, folder) = fresh();
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    for sql in [NEXT_NUMBER, NUMBER] {
        let opcodes = opcodes(&db, sql);
        assert!(!opcodes.iter().any(|opcode| opcode == "OpenEphemeral"), "{sql}: {opcodes:?}");
    }
}

/// All others wait for these statements. The journal of an agent may be longer than the part that is packed.
#[test]
fn a_compaction_looks_only_at_the_batches_of_its_range() {
    let (_store, folder) = fresh();
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    for sql in [PACKED_BATCHES, STORED, REMOVE, MARK_IF_DONE] {
        let parameters = [":agent", ":number", ":first", ":last"];
        let sql = parameters.iter().fold(sql.to_owned(), |sql, name| sql.replace(name, "1"));
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map([], |row| row.get("detail")).unwrap();
        let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
        let of_journal: Vec<_> = steps.iter().filter(|step| step.contains(" journal ")).collect();
        let is_bounded = |step: &String| step.contains("(agent=? AND first_seq>? AND first_seq<?)");
        assert!(!of_journal.is_empty() && of_journal.into_iter().all(is_bounded), "{sql}: {steps:?}");
    }
}

#[test]
fn the_schema_still_refuses_states_that_do_not_exist() {
    let (_store, folder) = fresh();
    let db = Connection::open(folder.path().join("tokenrail.db")).unwrap();
    let (agent, _) = launch(1);
    let add = |status: &str| {
        db.execute(
            "INSERT INTO agents (id, type, status, prompt, cwd, created_at, cancel_on_disconnect)
            VALUES (?1, 'some', ?2, '', '', 0, 0)",
            (agent.id.to_string(), status),
        )
    };
    let error = add("resting").unwrap_err().to_string();
    assert!(error.starts_with("CHECK constraint failed: status = 'initializing'"), "{error}");
    add("running").unwrap();
    let add = |column: &str, value: &str| {
        let sql = format!(
            "INSERT INTO turns (agent, number, run, prompt, state, outcome, stop, asked_at, spool_offset)
            VALUES (1, 1, 1, '', {}, {}, {}, 0, 0)",
            if column == "state" { value } else { "'ended'" },
            if column == "outcome" { value } else { "'completed'" },
            if column == "stop" { value } else { "NULL" },
        );
        db.execute(&sql, [])
    };
    for column in ["state", "outcome", "stop"] {
        let error = add(column, "'other'").unwrap_err().to_string();
        assert!(error.starts_with(&format!("CHECK constraint failed: {column} = ")), "{error}");
    }
    add("stop", "'cancelled'").unwrap();
}
