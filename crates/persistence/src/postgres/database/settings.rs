//! The settings of a connection, whatever the defaults of the server and the role are.

use crate::postgres::config::{Durability, PostgresLimits};

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To save what agents say.
    Writer,
    /// Everything else: reads and commands.
    Pool,
    /// What waits for no standby: hints between nodes, the beats of this node, and the list of nodes.
    WithoutStandby,
}

/// A warning with a commit must arrive, because it says that the wait for the standby was cancelled.
const ALWAYS: &str = "
    SET client_min_messages = warning;
    SET default_transaction_isolation = 'read committed';
    SET jit = off";

/// Appends wait for their turn as long as it takes: what they save would only be sent again. Their statements look up
/// single rows of tables of any size; the planner must not choose another plan while the tables are small.
const WRITER: &str = "
    SET statement_timeout = 0;
    SET lock_timeout = 0;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off";

/// The statements that set up a connection.
pub(crate) fn settings(purpose: Purpose, durability: Durability, limits: &PostgresLimits) -> String {
    // `on` waits for the disk, and for the standby if there is a synchronous one. A hint must wait for neither: the
    // server writes a few bytes to the log for each NOTIFY.
    let commit = match (purpose, durability) {
        (Purpose::WithoutStandby, _) => "off",
        (Purpose::Writer | Purpose::Pool, Durability::Auto | Durability::Replicated) => "on",
        (Purpose::Writer | Purpose::Pool, Durability::Primary) => "local",
    };
    let PostgresLimits { client_check_ms, idle_transaction_ms, lock_timeout_ms, read_timeout_ms, .. } =
        limits;
    let own = match purpose {
        Purpose::Writer => WRITER.to_owned(),
        Purpose::Pool => {
            format!("SET statement_timeout = {read_timeout_ms}; SET lock_timeout = {lock_timeout_ms}")
        }
        // A listener does nothing most of the time, and a lock of NOTIFY is waited for as a part of the statement.
        Purpose::WithoutStandby => format!(
            "SET statement_timeout = {}; SET lock_timeout = 0; SET idle_session_timeout = 0",
            limits.answer_timeout_ms
        ),
    };
    format!(
        "SET synchronous_commit = {commit};
        {ALWAYS};
        SET client_connection_check_interval = {client_check_ms};
        SET idle_in_transaction_session_timeout = {idle_transaction_ms};
        {own}"
    )
}

/// Waits until everything that was visible before it is as durable as the commits of this connection: after a crash of
/// the server, or a cancelled wait for the standby, rows are visible that no standby has. It writes to the log, and to
/// no table.
pub(crate) const BARRIER: &str = "SELECT pg_logical_emit_message(true, 'tokenrail', '')";

/// Whether commits wait for a synchronous standby, if they wait for one at all.
pub(crate) const STANDBY_EXPECTED: &str = "SELECT current_setting('synchronous_standby_names') <> ''";
