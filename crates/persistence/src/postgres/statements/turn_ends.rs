//! What lists of turns show of their ends. Saved when a turn ends, and again when its history is rewritten.

use tokenrail_ports::STOP_REASON_EVENTS;

use crate::format::rows;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, text_of};

/// What may say why the last message of an ended turn stopped: the latest first. `$2` is the number of the turn; NULL
/// for all turns of the agent.
const SAID: &str = "
    SELECT turns.number, agent_messages.metadata
    FROM turns
    JOIN agent_messages ON agent_messages.agent = turns.agent
        AND agent_messages.sequence_number
            BETWEEN greatest(turns.first_sequence, turns.last_sequence - $3) AND turns.last_sequence
    WHERE turns.agent = $1 AND ($2::int IS NULL OR turns.number = $2) AND turns.state = 'ended'
        AND agent_messages.type = 'system'
        AND position('\"message_delta\"'::bytea IN agent_messages.metadata) > 0
    ORDER BY turns.number, agent_messages.sequence_number DESC";

/// `$3` and `$4` are the turns that have a reason, and the reasons.
const NOTE: &str = "
    UPDATE turns
    SET ended_at = (
            SELECT created_at
            FROM agent_messages
            WHERE agent = turns.agent AND sequence_number = turns.last_sequence
        ),
        stop_reason = (
            SELECT reason
            FROM unnest($3::int[], $4::bytea[]) AS said (number, reason)
            WHERE said.number = turns.number
        )
    WHERE agent = $1 AND ($2::int IS NULL OR number = $2) AND state = 'ended'";

/// The statements of [`note`].
pub(crate) const OF_A_NOTE: [&str; 2] = [SAID, NOTE];

/// Saves how a turn ended, or all ended turns of the agent. Their events and rows are saved already.
pub(crate) async fn note(db: &Link, agent: i64, turn: Option<i32>) -> Result<(), QueryFailure> {
    let before = (STOP_REASON_EVENTS - 1) as i64;
    let (mut numbers, mut reasons) = (Vec::new(), Vec::new());
    for row in db.rows(SAID, &[&agent, &turn, &before]).await? {
        let number: i32 = column(&row, 0)?;
        if numbers.last() == Some(&number) {
            continue;
        }
        if let Some(reason) = rows::stop_reason(&text_of(&row, 1)?) {
            numbers.push(number);
            reasons.push(reason.into_bytes());
        }
    }
    db.run(NOTE, &[&agent, &turn, &numbers, &reasons]).await?;
    Ok(())
}
