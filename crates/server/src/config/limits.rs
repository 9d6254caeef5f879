//! `[limits]`: all limits that can be configured.
//!
//! A key sets the field of the same name in the struct that its default names: without its unit if the field is a
//! `Duration`, or in another unit (`_s`: `_ms`). `compose.rs`, `compose/limits.rs` and `store.rs` pass the value on.
//!
//! | key | struct | where enforced |
//! | --- | --- | --- |
//! | `running_agents`, `queued_launches`, `launches_per_minute` | `AdmissionLimits` (application) | `core.rs`, `admission.rs`, `agent_task.rs` |
//! | `queued_turns`, `imports`, `child_…` | `AdmissionLimits` | `rules/append.rs` (ports), `use_cases/import.rs`, `use_cases/children.rs` |
//! | `…_timeout_s` of a turn, `result_grace_s`, `disconnect_grace_s`; `message_bytes`, `spool_bytes` | `RunLimits` | `timers.rs`, `agent_task/unfollowed.rs`; `pump.rs` |
//! | `answer_timeout_s`, `answer_text_bytes`, `command_timeout_s`; `idempotency_hours`; `shutdown_timeout_s` | `CommandLimits` | `use_cases/answer.rs`, `command_waits.rs`; `use_cases/idempotency.rs`; `use_cases/delete.rs`, `server.rs` |
//! | `pending_…`, `follower_wait_…`, `full_disk_wait_s` | `SavingLimits` | `pump.rs`, `pump/pace.rs`, `stretches.rs`, `pump/full_disk.rs` |
//! | `page_…`, `history_…`, `tail_bytes`, `tails_bytes`; `model_history_bytes` | `ReadingLimits` | `use_cases/read.rs`, `stretches.rs`, `tails.rs`; `agent_task/past_turns.rs` |
//! | `list_agents`, `list_bytes`, `list_field_bytes` | `ListingLimits` | `use_cases/read.rs`, `use_cases/turns.rs`, `use_cases/open_requests.rs` |
//! | `line_bytes`, `output_lines`; `cancel_grace_s`, `kill_grace_s` | `ProcessLimits` (runner) | `framer.rs`, `process/run.rs`; `process/run/tell.rs`, `supervisor/` |
//! | `agent_…`, `stderr_bytes`, `exit_patience_s`; `open_questions`, `unread_bytes`, `file_bytes`; `resting_agents` (`idle_agents`); `spawn_timeout_s` | `ProcessLimits` | `supervisor/`; `converse/`; `process/idle_processes.rs`; `process/runner.rs` |
//! | `changes_…`, `patch_bytes` | `RepositoryLimits` | `repository/` |
//! | `run_gather_us`, `run_poll_ms` | `WatchLimits` | `process/watch/task.rs`, `process/watch/thread.rs` |
//! | `connect_timeout_s` | `ModelLimits`, `ProxyLimits` | `model/ask.rs`, `proxy.rs` |
//! | `flood_…`; `wal_bytes`, `wipe_bytes`, `start_check_bytes` | `SqliteLimits` (persistence) | `sqlite/writer/queue.rs`, `sqlite/checkpoint/`, `sqlite/writer.rs`, `sqlite/store.rs` |
//! | `postgres_…` | `PostgresLimits`, under names without `postgres_` | `postgres/` |
//! | `postgres_start_wait_ms` | `NodeLimits` | `use_cases/recover.rs` |
//! | `connections`, `streams_per_peer`, `chats_bytes`, `failed_logins_per_minute`, `peers`, `session_s`, `ticket_resume_s` | `PresentationConfig` | `api.rs` |
//! | `request_bytes`, `chat_bytes`, `body_timeout_s` | `PresentationConfig` | `query.rs`, `websocket/messages.rs`, `vocabularies/prompts/large_body.rs` |
//! | `header_bytes`, `headers`; `import_…`; `…image…` | `PresentationConfig` | `guard/head.rs`; `vocabularies/native/import.rs`; `vocabularies/native/dto/requests/images.rs` |
//! | `subscriptions_per_connection`, `stream_turn_bytes`; `unauthenticated_clients…`; `handshake_timeout_s` | `PresentationConfig` | `vocabularies/native/ws/connection.rs`, `waits.rs`; `peer.rs`; `vocabularies/native/socket_io/` |
//! | `send_buffer_bytes`, `send_timeout_s` | `SocketLimits` | `socket.rs` |
//! | `worker_threads`, `blocking_threads`, `time_slice_us` | none | `cli.rs` |
//!
//! Some keys set several limits:
//!
//! * `connections`: TCP connections (`ListenLimits`), streams (`PresentationConfig`), TLS connections, the backlog;
//! * `imports`: imports (`AdmissionLimits`), and files that are being received (`PresentationConfig`);
//! * `result_grace_s`: also `ProcessLimits::exit_grace_ms`, for a program whose conversation has ended;
//! * `full_disk_wait_s`: how long the journal waits (`SavingLimits`), and how long a supervisor does (`ProcessLimits`);
//! * `kill_grace_s`: also for the runs that [`RunFolders`](tokenrail_runner::RunFolders) ends;
//! * `idle_timeout_s`, `line_bytes`: also `idle_timeout_ms` and `event_bytes` of `ModelLimits` and `ProxyLimits`;
//! * `send_timeout_s`: also `ListenLimits::flush_timeout`;
//! * `list_agents`, `list_bytes`: also of `PresentationConfig`.

mod range;

use std::time::Duration;

use serde::Deserialize;
use tokenrail_application::Limits;
use tokenrail_persistence::{PostgresLimits, SqliteLimits};
use tokenrail_presentation::{PresentationConfig, SocketLimits};
use tokenrail_runner::{ModelLimits, ProcessLimits, RepositoryLimits, WatchLimits};

/// The defaults. Each is defined in the crate that enforces the limit.
struct Defaults {
    application: Limits,
    process: ProcessLimits,
    watch: WatchLimits,
    model: ModelLimits,
    repository: RepositoryLimits,
    store: SqliteLimits,
    postgres: PostgresLimits,
    presentation: PresentationConfig,
    sockets: SocketLimits,
}

impl Defaults {
    fn new() -> Self {
        Self {
            application: Limits::default(),
            process: ProcessLimits::default(),
            watch: WatchLimits::default(),
            model: ModelLimits::default(),
            repository: RepositoryLimits::default(),
            store: SqliteLimits::default(),
            postgres: PostgresLimits::default(),
            // No limit depends on the port.
            presentation: PresentationConfig::new(0),
            sockets: SocketLimits::default(),
        }
    }
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn in_us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

macro_rules! limits {
    ($defaults:ident: $($(#[$doc:meta])* $name:ident: $type:ty = $default:expr,)*) => {
        /// The limits, with their defaults.
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct LimitsConfig {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for LimitsConfig {
            fn default() -> Self {
                let $defaults = Defaults::new();
                Self { $($name: $default,)* }
            }
        }

        impl LimitsConfig {
            /// The first limit with an invalid value, and what is wrong with it.
            #[expect(clippy::cast_lossless, reason = "limits are of several types, some of which need the cast")]
            pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
                $(if let Some(why) = range::wrong(stringify!($name), self.$name as u64) {
                    return Some((stringify!($name), why));
                })*
                None
            }

            /// The limits as lines of a configuration file.
            pub fn to_toml(&self) -> String {
                let mut lines = String::from("[limits]\n");
                $(lines.push_str(&format!("{} = {}\n", stringify!($name), self.$name));)*
                lines
            }
        }
    };
}

limits! { defaults:
    /// Agents that run at the same time. Further agents wait.
    running_agents: usize = defaults.application.admission.running_agents,
    /// Launches that may wait until an agent can run. Further launches get 503 `capacity_exhausted`.
    queued_launches: usize = defaults.application.admission.queued_launches,
    /// Launches per minute. Further launches get 429 `rate_limited`.
    launches_per_minute: u32 = defaults.application.admission.launches_per_minute,
    /// Agents that one agent has launched and that run or wait. Further launches by it get 503 `capacity_exhausted`.
    child_agents: usize = defaults.application.admission.child_agents,
    /// How deep agents may launch agents. 1: an agent that was launched by an agent launches none.
    child_depth: u32 = defaults.application.admission.child_depth,
    /// Waiting turns of one agent.
    queued_turns: u32 = defaults.application.admission.queued_turns,
    /// Bytes of one line of output. A longer line stays in the spool and is reported.
    line_bytes: usize = defaults.process.line_bytes,
    /// Bytes that one run may print. A run with more is terminated as `output_capped`.
    spool_bytes: u64 = defaults.application.run.spool_bytes,
    /// Bytes of text in the open messages of a turn. With more, the run is terminated as `output_capped`.
    message_bytes: usize = defaults.application.run.message_bytes,
    /// Processes of one run at once. A run with more is terminated as `processes_capped`. 0: no limit.
    agent_processes: u64 = defaults.process.agent_processes,
    /// Bytes of memory of all processes of a run, without mapped files. With more: `memory_capped`. 0: no limit.
    agent_memory_bytes: u64 = defaults.process.agent_memory_bytes,
    /// The CPU niceness of agent processes, as in nice(1): 0 to 19.
    agent_nice: u64 = defaults.process.agent_nice,
    /// Bytes of standard error that are stored.
    stderr_bytes: usize = defaults.process.stderr_bytes,
    /// Open permission requests of one agent. Further requests are settled at once, as if their time had run out.
    open_questions: usize = defaults.process.open_questions,
    /// Idle processes of each agent type that may wait for the next turns of their agents. 0: none.
    resting_agents: usize = defaults.process.idle_agents,
    /// Bytes of input that may wait for an interactive agent that does not read. With more, its turn fails.
    unread_bytes: usize = defaults.process.unread_bytes,
    /// Bytes of a file that an agent reads or writes through the server (Agent Client Protocol).
    file_bytes: usize = defaults.process.file_bytes,
    /// Inactivity in the middle of a message. Time in which a tool runs does not count.
    stream_timeout_s: u64 = defaults.application.run.stream_timeout.as_secs(),
    /// Inactivity of an agent. Time in which a tool runs does not count.
    idle_timeout_s: u64 = defaults.application.run.idle_timeout.as_secs(),
    /// The duration of a turn.
    turn_timeout_s: u64 = defaults.application.run.turn_timeout.as_secs(),
    /// How long an agent may run after its result.
    result_grace_s: u64 = defaults.application.run.result_grace.as_secs(),
    /// How long a cancelled agent may take to end by itself.
    cancel_grace_s: u64 = defaults.process.cancel_grace_ms / 1000,
    /// How long its processes may take to disappear after that.
    kill_grace_s: u64 = defaults.process.kill_grace_ms / 1000,
    /// How long the output of an agent may wait for space on a full disk. Then its turn fails with `storage_full`.
    full_disk_wait_s: u64 = defaults.application.saving.full_disk_wait.as_secs(),
    /// How long a supervisor waits for space on a full disk to record how its agent ended.
    exit_patience_s: u64 = defaults.process.exit_patience_ms / 1000,
    /// How long an agent's supervisor may take to start, and `tokenrail-supervisor` to report its build.
    spawn_timeout_s: u64 = defaults.process.spawn_timeout_ms / 1000,
    /// The pause of the run folders' watcher after it has notified a run, in microseconds. 0: no pause.
    run_gather_us: u64 = in_us(defaults.watch.run_gather),
    /// The poll interval of a run folder that inotify does not watch, in milliseconds.
    run_poll_ms: u64 = in_ms(defaults.watch.run_poll),
    /// How long the server waits for the agent to accept a permission answer, before it responds to the client.
    answer_timeout_s: u64 = defaults.application.commands.answer_timeout.as_secs(),
    /// Bytes of the text, or of the note, in the answer to a permission request. At most an eighth of `line_bytes`.
    answer_text_bytes: usize = defaults.application.commands.answer_text_bytes,
    /// How long a command waits while data of its agent is being saved or the database is busy. Then 503 `store_busy`.
    command_timeout_s: u64 = defaults.application.commands.command_timeout.as_secs(),
    /// How long an agent with `cancelOnDisconnect` continues without a follower.
    disconnect_grace_s: u64 = defaults.application.run.disconnect_grace.as_secs(),
    /// How long connecting to a proxied agent or a model API may take.
    connect_timeout_s: u64 = defaults.model.connect_timeout_ms / 1000,
    /// Bytes of the body of a request.
    request_bytes: usize = defaults.presentation.request_bytes,
    /// Bytes of a chat's request, which contains the whole conversation.
    chat_bytes: usize = defaults.presentation.chat_bytes,
    /// Bytes of all large requests together that are being received: of chats, and with images.
    chats_bytes: usize = defaults.presentation.chats_bytes,
    /// Images of one message.
    prompt_images: usize = defaults.presentation.prompt_images,
    /// Bytes of one of these images.
    image_bytes: usize = defaults.presentation.image_bytes,
    /// Bytes of all images of one message.
    prompt_image_bytes: usize = defaults.presentation.prompt_image_bytes,
    /// Events of one page.
    page_events: usize = defaults.application.reading.page_events,
    /// Bytes of one page, approximately.
    page_bytes: usize = defaults.application.reading.page_bytes,
    /// Events that a follower reads from the store at once. Followers near the same position share one read.
    history_events: usize = defaults.application.reading.history_events,
    /// Bytes of these events, approximately.
    history_bytes: usize = defaults.application.reading.history_bytes,
    /// Bytes of earlier turns that are sent to a model API with the next turn. The oldest turns are left out.
    model_history_bytes: usize = defaults.application.reading.model_history_bytes,
    /// Agents, turns or messages in one list.
    list_agents: usize = defaults.application.lists.list_agents,
    /// Bytes of one list, approximately.
    list_bytes: usize = defaults.application.lists.list_bytes,
    /// Bytes of one field of an agent or turn in a list. A longer field is cut.
    list_field_bytes: usize = defaults.application.lists.list_field_bytes,
    /// Lines of one agent that are parsed before other agents are served.
    output_lines: usize = defaults.process.output_lines,
    /// Events of one agent that may wait for their commit, in one transaction. Further output stays in the spool.
    pending_events: usize = defaults.application.saving.pending_events,
    /// Bytes of these events.
    pending_bytes: usize = defaults.application.saving.pending_bytes,
    /// How long a batch waits, at most, until its followers have taken the previous one, in milliseconds. 0: no wait.
    follower_wait_ms: u64 = in_ms(defaults.application.saving.follower_wait),
    /// How many followers must have kept up before a batch waits for them.
    follower_wait_from: usize = defaults.application.saving.follower_wait_from,
    /// An agent floods if this many bytes of its output are saved at once, twice within a second. Flooding agents take
    /// turns with the others.
    flood_bytes: usize = defaults.store.flood_bytes,
    /// While others save, a flooding agent pauses this many times as long as saving its last piece took. 0: none.
    flood_rest: u32 = defaults.store.flood_rest,
    /// How long a flooding agent waits while the write-ahead log is restarted, in milliseconds, approximately.
    flood_wait_ms: u32 = defaults.store.flood_wait_ms,
    /// Bytes of the newest events in memory, per agent that runs or is followed.
    tail_bytes: usize = defaults.application.reading.tail_bytes,
    /// The same for all agents together.
    tails_bytes: usize = defaults.application.reading.tails_bytes,
    /// The size at which the write-ahead log is restarted, in bytes.
    wal_bytes: u64 = defaults.store.wal_bytes,
    /// The largest database whose pages are checked at each start, in bytes.
    start_check_bytes: u64 = defaults.store.start_check_bytes,
    /// The largest database that is rewritten after a purge to remove every trace of the purged data, in bytes.
    wipe_bytes: u64 = defaults.store.wipe_bytes,
    /// Connections that save the output of agents.
    postgres_writers: usize = defaults.postgres.writers,
    /// Connections for everything else, at most: half for reads, half for commands, and at least one for each.
    postgres_connections: usize = defaults.postgres.pool_connections,
    /// How long a call waits while all of the connections that it may use are in use.
    postgres_connection_wait_ms: u64 = defaults.postgres.pool_wait_ms,
    /// Connections to one host that are being opened at the same time, at most.
    postgres_openings: usize = defaults.postgres.openings,
    /// Batches that may wait for one of the writers. Further output waits in the spool.
    postgres_queued_appends: usize = defaults.postgres.queued_appends,
    /// Agents whose output one statement saves.
    postgres_statement_agents: usize = defaults.postgres.statement_agents,
    /// Bytes of output that one statement saves.
    postgres_statement_bytes: usize = defaults.postgres.statement_bytes,
    /// How long connecting to a host may take.
    postgres_connect_timeout_ms: u64 = defaults.postgres.connect_timeout_ms,
    /// How long a write may take. Then it is sent again on another connection.
    postgres_answer_timeout_ms: u64 = defaults.postgres.answer_timeout_ms,
    /// How long it is tried to find out whether a command was saved. Until then, it is done again.
    postgres_repeat_timeout_ms: u64 = defaults.postgres.repeat_timeout_ms,
    /// How long a read may take.
    postgres_read_timeout_ms: u64 = defaults.postgres.read_timeout_ms,
    /// How long a command waits for a row that is locked.
    postgres_lock_timeout_ms: u64 = defaults.postgres.lock_timeout_ms,
    /// A connection whose other end confirms nothing for this long is broken.
    postgres_tcp_timeout_ms: u64 = defaults.postgres.tcp_user_timeout_ms,
    /// How long a start waits while another server migrates the database.
    postgres_migration_wait_ms: u64 = defaults.postgres.migration_wait_ms,
    /// How long a start waits while the database works on what the previous process has sent.
    postgres_start_wait_ms: u64 = in_ms(defaults.application.nodes.start_wait),
    /// Hints for or from other servers that may wait. With more, the servers look at everything.
    postgres_hints: usize = defaults.postgres.hints,
    /// The pause after hints were sent, at least.
    postgres_hint_pause_ms: u64 = defaults.postgres.hint_pause_ms,
    /// The same, for each server of the database.
    postgres_hint_pause_per_node_ms: u64 = defaults.postgres.hint_pause_per_node_ms,
    /// How often the server checks that hints arrive.
    postgres_hint_check_ms: u64 = defaults.postgres.hint_check_ms,
    /// How long it waits for its own hint. Then it connects again.
    postgres_hint_wait_ms: u64 = defaults.postgres.hint_wait_ms,
    /// Connections at the same time, and also streams (event streams and `WebSockets`).
    connections: usize = defaults.presentation.connections,
    /// Event streams and `WebSockets` of one client address. Loopback addresses have no limit.
    streams_per_peer: usize = defaults.presentation.streams_per_peer,
    /// Socket.IO clients that have not sent a token yet.
    unauthenticated_clients: usize = defaults.presentation.unauthenticated_clients,
    /// The same for one client address. Loopback addresses have no limit.
    unauthenticated_clients_per_peer: usize = defaults.presentation.unauthenticated_clients_per_peer,
    /// How long a Socket.IO client may take to connect, and to upgrade its connection.
    handshake_timeout_s: u64 = defaults.presentation.handshake_timeout.as_secs(),
    /// Failed logins of one client address per minute. Then 429 `rate_limited`.
    failed_logins_per_minute: u32 = defaults.presentation.failed_logins_per_minute,
    /// Client addresses whose failed logins are remembered.
    peers: usize = defaults.presentation.peers,
    /// How long the ticket of an event stream can be used to reconnect with `Last-Event-ID`.
    ticket_resume_s: u64 = defaults.presentation.ticket_resume.as_secs(),
    /// How long the session of a browser lasts.
    session_s: u64 = defaults.presentation.session.as_secs(),
    /// Bytes of the head of a request.
    header_bytes: usize = defaults.presentation.header_bytes,
    /// Headers of a request.
    headers: usize = defaults.presentation.headers,
    /// How long the body of a request may take.
    body_timeout_s: u64 = defaults.presentation.body_timeout.as_secs(),
    /// Agents that one WebSocket connection may follow.
    subscriptions_per_connection: usize = defaults.presentation.subscriptions_per_connection,
    /// Bytes that are sent on one stream before others are served.
    stream_turn_bytes: usize = defaults.presentation.stream_turn_bytes,
    /// Bytes in the kernel's send buffer of a connection.
    send_buffer_bytes: usize = defaults.sockets.send_buffer_bytes,
    /// A client that accepts no byte for this long is disconnected.
    send_timeout_s: u64 = defaults.sockets.send_timeout.as_secs(),
    /// Bytes of an imported file.
    import_bytes: u64 = defaults.presentation.import_bytes,
    /// Bytes of one event or turn of an imported file.
    import_event_bytes: usize = defaults.presentation.import_event_bytes,
    /// How long a client may take to send an imported file.
    import_timeout_s: u64 = defaults.presentation.import_timeout.as_secs(),
    /// Imports at the same time.
    imports: usize = defaults.application.admission.imports,
    /// Files in the list of what an agent has changed.
    changes_files: usize = defaults.repository.changes_files,
    /// Bytes of a patch of these files. Files that do not fit are left out.
    patch_bytes: usize = defaults.repository.patch_bytes,
    /// How long git may take to compare the files of a repository.
    changes_timeout_s: u64 = defaults.repository.changes_timeout_ms / 1000,
    /// Bytes of memory that git may use, without the files that it maps.
    changes_memory_bytes: u64 = defaults.repository.changes_memory_bytes,
    /// Repositories that git reads at the same time. Further requests wait, then get 503 `capacity_exhausted`.
    changes_at_once: usize = defaults.repository.changes_at_once,
    /// Threads for the server's tasks, at most one per processor.
    worker_threads: usize = 4,
    /// The time slice of the server's threads. A thread with a short slice soon gets a processor from busy agents.
    time_slice_us: u64 = 200,
    /// Threads that work with the files of agents.
    blocking_threads: usize = 16,
    /// How long an idempotency key is remembered.
    idempotency_hours: u64 = defaults.application.commands.idempotency.as_secs() / 3600,
    /// The duration of a graceful stop.
    shutdown_timeout_s: u64 = defaults.application.commands.shutdown_timeout.as_secs(),
}

#[cfg(test)]
mod tests;
