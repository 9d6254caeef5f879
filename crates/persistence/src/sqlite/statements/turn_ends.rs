//! What lists of turns show of their ends. Saved when a turn ends, and again when its history is rewritten.

use rusqlite::{Connection, named_params};
use tokenrail_ports::STOP_REASON_EVENTS;

/// As in the migration that added these columns. JSON that SQLite cannot read, because it is nested too deeply,
/// counts as nothing.
const NOTE: &str = "
    UPDATE turns
    SET ended_at = (
            SELECT CAST(round(unixepoch(result.created_at, 'subsec') * 1000) AS INTEGER)
            FROM agent_messages AS result
            WHERE result.agent_id = (SELECT id FROM agents WHERE key = :agent)
                AND result.sequence_number = turns.last_sequence
        ),
        stop_reason = (
            SELECT substr(json_extract(said.metadata, '$.stopReason'), 1, 64)
            FROM agent_messages AS said
            WHERE said.agent_id = (SELECT id FROM agents WHERE key = :agent)
                AND said.sequence_number
                    BETWEEN max(turns.first_sequence, turns.last_sequence - :before) AND turns.last_sequence
                AND said.type = 'system'
                AND CASE WHEN json_valid(said.metadata)
                    THEN json_extract(said.metadata, '$.eventType') = 'message_delta'
                        AND json_extract(said.metadata, '$.stopReason') IS NOT NULL
                    ELSE 0 END
            ORDER BY said.sequence_number DESC
            LIMIT 1
        )
    WHERE agent = :agent AND (:number IS NULL OR number = :number) AND state = 'ended'";

/// Saves how a turn ended, or all ended turns of the agent. Their events and rows are saved already.
pub(crate) fn note(db: &Connection, agent: i64, turn: Option<u32>) -> rusqlite::Result<()> {
    let before = (STOP_REASON_EVENTS - 1) as i64;
    db.prepare_cached(NOTE)?
        .execute(named_params! { ":agent": agent, ":number": turn, ":before": before })?;
    Ok(())
}
