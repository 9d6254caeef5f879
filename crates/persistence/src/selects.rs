//! The columns of agents and turns that every database reads, in one order: a new column is added here, and in the code
//! that reads a row.

use tokenrail_domain::{LongField, TurnState};

/// The columns of an agent, and those that follow. `$text` is for columns whose beginning is useful, `$whole` for
/// columns that are useless if a part is missing. Both are macros of the database.
macro_rules! select_agent {
    ($text:ident, $whole:ident, $more:expr) => {
        concat!(
            "SELECT agents.id, agents.type, ",
            $text!("agents.name"),
            ", agents.status, ",
            $text!("agents.prompt"),
            ", ",
            $text!("agents.model"),
            ", ",
            $text!("agents.cwd"),
            ", ",
            $whole!("agents.session_id"),
            ", heads.turn, heads.head, agents.created_at, heads.updated_at, agents.ended_at,
            agents.deleted_at, agents.error_class, agents.error_code, ",
            $text!("agents.error_text"),
            ", agents.error_retry_after_ms, agents.error_recoverable, ",
            $whole!("agents.usage"),
            ", agents.cost_usd, ",
            $whole!("agents.metadata"),
            ", ",
            $whole!("agents.options"),
            ", agents.cancel_on_disconnect,
            (SELECT count(*) FROM turns
             WHERE turns.agent = agents.key AND turns.state <> 'ended' AND turns.state = 'queued'
                AND turns.stop IS NULL), ",
            $whole!("agents.chat"),
            ", agents.copy, agents.replay_of, agents.replay_until, agents.replay_speed, agents.pinned, agents.archived,
            agents.launched_by, agents.launch_depth",
            $more,
            " FROM agents JOIN heads ON heads.agent = agents.key "
        )
    };
}
pub(crate) use select_agent;

/// A column whole, for [`select_agent`].
macro_rules! as_it_is {
    ($column:literal) => {
        $column
    };
}
pub(crate) use as_it_is;

/// The lengths of [`LONG_FIELDS`] in bytes, which follow the columns of a listed agent.
macro_rules! lengths_of_agent {
    () => {
        ", octet_length(agents.name), octet_length(agents.prompt), octet_length(agents.model), octet_length(agents.cwd),
        octet_length(agents.error_text), octet_length(agents.chat), octet_length(agents.session_id),
        octet_length(agents.usage), octet_length(agents.metadata), octet_length(agents.options)"
    };
}
pub(crate) use lengths_of_agent;

pub(crate) const LONG_FIELDS: [LongField; 10] = [
    LongField::Name,
    LongField::Prompt,
    LongField::Model,
    LongField::Cwd,
    LongField::Error,
    LongField::Chat,
    LongField::Session,
    LongField::Usage,
    LongField::Metadata,
    LongField::Options,
];

/// The columns of a turn; those of a listed one follow. `$prompt` is the prompt or its beginning.
macro_rules! select_turn {
    ($prompt:literal) => {
        concat!(
            "SELECT turns.number, turns.run, ",
            $prompt,
            ", turns.state, turns.outcome, turns.asked_at, turns.first_sequence, turns.last_sequence,
            CASE turns.state WHEN 'running' THEN heads.spool_offset ELSE turns.spool_offset END, turns.stop,
            turns.base_commit, turns.images, agents.id, octet_length(turns.prompt), turns.ended_at, turns.stop_reason
            FROM turns
            JOIN agents ON agents.key = turns.agent
            JOIN heads ON heads.agent = turns.agent
            WHERE "
        )
    };
}
pub(crate) use select_turn;

/// The state of a turn that has no outcome.
pub(crate) fn open_state(name: &str) -> Option<TurnState> {
    match name {
        "queued" => Some(TurnState::Queued),
        "running" => Some(TurnState::Running),
        _ => None,
    }
}
