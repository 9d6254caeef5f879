//! `[limits]`: every bound of the system that can be configured.

use std::time::Duration;

use serde::Deserialize;
use tokenrail_application::Limits;
use tokenrail_persistence::StoreLimits;
use tokenrail_presentation::{PresentationConfig, SocketLimits};
use tokenrail_runner::{ModelLimits, ProcessLimits, WatchLimits};

/// Ten years: longer than any useful wait, and small enough for every clock.
const LONGEST_S: u64 = 10 * 365 * 24 * 3600;
const LONGEST_HOURS: u64 = LONGEST_S / 3600;
/// For the short pauses.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// A pebibyte, or that many items: more than any machine has, and small enough to calculate with.
const MOST: u64 = 1 << 50;
/// See setpriority(2).
const NICEST: u64 = 19;
const MOST_RESTS: u64 = 1000;

/// The defaults: each is written in the crate that keeps the limit.
struct Defaults {
    application: Limits,
    process: ProcessLimits,
    watch: WatchLimits,
    model: ModelLimits,
    store: StoreLimits,
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
            store: StoreLimits::default(),
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
        /// Every bound of the system, with its default.
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
            /// The first limit that cannot be kept, and why not.
            #[expect(clippy::cast_lossless, reason = "limits are of several types, some of which need the cast")]
            pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
                $(if let Some(why) = wrong(stringify!($name), self.$name as u64) {
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
    /// Agents that run at the same time; more wait.
    running_agents: usize = defaults.application.running_agents,
    /// Launches that may wait; then 503 `capacity_exhausted`.
    queued_launches: usize = defaults.application.queued_launches,
    /// Launches per minute; then 429 `rate_limited`.
    launches_per_minute: u32 = defaults.application.launches_per_minute,
    /// Turns of one agent that may wait.
    queued_turns: u32 = defaults.application.queued_turns,
    /// Bytes of one line of output; a longer one stays in the spool and is reported.
    line_bytes: usize = defaults.process.line_bytes,
    /// Bytes that one run may print; then it is ended as `output_capped`.
    spool_bytes: u64 = defaults.application.spool_bytes,
    /// Bytes of text that the open messages of a turn may hold; then it is ended as `output_capped`.
    message_bytes: usize = defaults.application.message_bytes,
    /// Processes that one run may have at once; with more it is ended as `processes_capped`. 0 is no limit.
    agent_processes: u64 = defaults.process.agent_processes,
    /// Bytes of memory that the processes of one run may have together, without the files that they have mapped; with
    /// more it is ended as `memory_capped`. 0 is no limit.
    agent_memory_bytes: u64 = defaults.process.agent_memory_bytes,
    /// How much the processes of agents give way to others where the processor is short, as in nice(1): 0 to 19.
    agent_nice: u64 = defaults.process.agent_nice,
    /// Bytes of standard error that are kept.
    stderr_bytes: usize = defaults.process.stderr_bytes,
    /// Questions of one agent that may be open; one more is settled as if nobody had answered.
    open_questions: usize = defaults.process.open_questions,
    /// Processes of each agent type that may wait for the next turns of their agents; 0 is none.
    resting_agents: usize = defaults.process.resting_agents,
    /// Bytes that may wait for an agent that is spoken with and does not read; more, and its turn fails.
    unread_bytes: usize = defaults.process.unread_bytes,
    /// Bytes of a file that an agent of the Agent Client Protocol may ask for, or have written.
    file_bytes: usize = defaults.process.file_bytes,
    /// Silence in the middle of a message; not while a tool runs.
    stream_timeout_s: u64 = defaults.application.stream_timeout.as_secs(),
    /// Silence of an agent; not while a tool runs.
    idle_timeout_s: u64 = defaults.application.idle_timeout.as_secs(),
    /// How long a turn may take.
    turn_timeout_s: u64 = defaults.application.turn_timeout.as_secs(),
    /// How long an agent may live on after its result.
    result_grace_s: u64 = defaults.application.result_grace.as_secs(),
    /// How long a cancelled agent has to end by itself.
    cancel_grace_s: u64 = defaults.process.cancel_grace_ms / 1000,
    /// How long its processes have to be gone after that.
    kill_grace_s: u64 = defaults.process.kill_grace_ms / 1000,
    /// How long the output of an agent may wait for room on a full disk; then its turn ends as `storage_full`.
    full_disk_wait_s: u64 = defaults.application.full_disk_wait.as_secs(),
    /// How long a supervisor waits for room on a full disk, to write down how its agent ended.
    exit_patience_s: u64 = defaults.process.exit_patience_ms / 1000,
    /// How long the supervisor of an agent has to start, and `tokenrail-supervisor` to say of which build it is.
    spawn_timeout_s: u64 = defaults.process.spawn_timeout_ms / 1000,
    /// How long the watcher of the run folders rests when it has woken a run, in microseconds: what agents print
    /// meanwhile is read at once. 0 is no rest.
    run_gather_us: u64 = in_us(defaults.watch.rest),
    /// How often the folder of a run is looked at where inotify does not watch it, in milliseconds.
    run_poll_ms: u64 = in_ms(defaults.watch.poll),
    /// How long a client that answers a question waits to be told that the agent has taken the answer.
    answer_timeout_s: u64 = defaults.application.answer_timeout.as_secs(),
    /// How long a command to an agent waits while something of that agent is being saved; then 503 `store_busy`.
    command_timeout_s: u64 = defaults.application.command_timeout.as_secs(),
    /// How long an agent with `cancelOnDisconnect` runs on without a follower.
    disconnect_grace_s: u64 = defaults.application.disconnect_grace.as_secs(),
    /// How long the start of an answer of an upstream may take.
    connect_timeout_s: u64 = defaults.model.connect_timeout_ms / 1000,
    /// Bytes of a request's body.
    request_bytes: usize = defaults.presentation.request_bytes,
    /// Bytes of a request of a chat, which brings the whole conversation.
    chat_bytes: usize = defaults.presentation.chat_bytes,
    /// Bytes of large requests of chats, all together, that are being received.
    chats_bytes: usize = defaults.presentation.chats_bytes,
    /// Events of one page.
    page_events: usize = defaults.application.page_events,
    /// Bytes of one page, about.
    page_bytes: usize = defaults.application.page_bytes,
    /// Events that a follower fetches at once from the store; others that are about there share them.
    history_events: usize = defaults.application.history_events,
    /// Bytes of them, about.
    history_bytes: usize = defaults.application.history_bytes,
    /// Bytes of what was said in earlier turns that a model's API is told with the next; the oldest are left out.
    model_history_bytes: usize = defaults.application.model_history_bytes,
    /// Agents, turns or messages of one list.
    list_agents: usize = defaults.application.list_agents,
    /// Bytes of one list, about.
    list_bytes: usize = defaults.application.list_bytes,
    /// Bytes of one field of an agent or turn in a list; what is longer is cut there.
    list_field_bytes: usize = defaults.application.list_field_bytes,
    /// Lines of one agent that are read before others have their turn.
    output_lines: usize = defaults.process.output_lines,
    /// Events of one agent that may wait for their commit, and go into one transaction; what is beyond waits in the spool.
    pending_events: usize = defaults.application.pending_events,
    /// Bytes of them.
    pending_bytes: usize = defaults.application.pending_bytes,
    /// How long a batch waits, at most, for its followers to take the one before it, in milliseconds.
    follower_wait_ms: u64 = in_ms(defaults.application.follower_wait),
    /// So many followers must have kept up so far; for fewer nothing waits.
    follower_wait_from: usize = defaults.application.follower_wait_from,
    /// An agent floods if so many bytes of its output are saved at once, and again within a second: it takes turns with others.
    flood_bytes: usize = defaults.store.large_bytes,
    /// While others save, a flood rests so many times as long as saving its last piece took. 0 is no rest.
    flood_rest: u32 = defaults.store.large_rest,
    /// How long a flood waits, about, while the write-ahead log is begun anew.
    flood_wait_ms: u32 = defaults.store.large_wait_ms,
    /// Bytes of newest events in memory, per running agent.
    tail_bytes: usize = defaults.application.tail_bytes,
    /// The same, of all agents together.
    tails_bytes: usize = defaults.application.tails_bytes,
    /// Bytes of the write-ahead log, before it is started anew.
    wal_bytes: u64 = defaults.store.wal_max_bytes,
    /// A database up to this size has its pages checked at each start.
    start_check_bytes: u64 = defaults.store.start_check_bytes,
    /// A database up to this size is written anew after a purge, so that nothing is left of what was purged.
    wipe_bytes: u64 = defaults.store.wipe_max_bytes,
    /// Connections at the same time.
    connections: usize = defaults.presentation.connections,
    /// Event streams and `WebSockets` of one peer; the loopback address has no limit of its own.
    streams_per_peer: usize = defaults.presentation.streams_per_peer,
    /// Logins of one peer per minute that may fail; then 429 `rate_limited`.
    failed_logins_per_minute: u32 = defaults.presentation.failed_logins_per_minute,
    /// Peers whose failed logins are remembered.
    peers: usize = defaults.presentation.peers,
    /// How long the ticket of an event stream is good for coming back to it with `Last-Event-ID`.
    ticket_resume_s: u64 = defaults.presentation.ticket_resume.as_secs(),
    /// Bytes of a request's head.
    header_bytes: usize = defaults.presentation.header_bytes,
    /// Headers of a request.
    headers: usize = defaults.presentation.headers,
    /// How long the body of a request may take.
    body_timeout_s: u64 = defaults.presentation.body_timeout.as_secs(),
    /// Agents that one WebSocket connection may follow.
    subscriptions_per_connection: usize = defaults.presentation.subscriptions_per_connection,
    /// Bytes that one stream takes before others have their turn.
    stream_turn_bytes: usize = defaults.presentation.stream_turn_bytes,
    /// Bytes in the kernel's send buffer of a connection.
    send_buffer_bytes: usize = defaults.sockets.send_buffer_bytes,
    /// A client that accepts no byte for this long is cut.
    send_timeout_s: u64 = defaults.sockets.no_progress.as_secs(),
    /// Bytes of a file that is imported.
    import_bytes: u64 = defaults.presentation.import_bytes,
    /// Bytes of one event or turn of it.
    import_event_bytes: usize = defaults.presentation.import_event_bytes,
    /// How long a client may take to send it.
    import_timeout_s: u64 = defaults.presentation.import_timeout.as_secs(),
    /// Files that are imported at the same time.
    imports: usize = defaults.application.imports,
    /// Threads that run the server's tasks; never more than there are processors.
    worker_threads: usize = 4,
    /// Threads that work with files for the agents.
    blocking_threads: usize = 16,
    /// How long an idempotency key is remembered.
    idempotency_hours: u64 = defaults.application.idempotency_age.as_secs() / 3600,
    /// How long a graceful stop may take.
    shutdown_timeout_s: u64 = defaults.application.stop_timeout.as_secs(),
}

/// Those that are none where they are 0.
const OPTIONAL: [&str; 7] = [
    "agent_processes",
    "agent_memory_bytes",
    "agent_nice",
    "resting_agents",
    "run_gather_us",
    "follower_wait_ms",
    "flood_rest",
];

/// What is wrong with the value of a limit. A grace may be 0; with most other limits of 0 nothing would ever go on.
fn wrong(name: &str, value: u64) -> Option<String> {
    if value == 0 && !name.ends_with("_grace_s") && !OPTIONAL.contains(&name) {
        return Some(format!("limits.{name}: 0 is too small; it must be at least 1"));
    }
    let (most, why) = match name {
        "agent_nice" => (NICEST, " (the lowest priority)"),
        "flood_rest" => (MOST_RESTS, " (at that value, a flooding agent almost stops)"),
        _ if name.ends_with("_s") => (LONGEST_S, " (ten years)"),
        _ if name.ends_with("_ms") => (LONGEST_PAUSE_MS, " (one minute)"),
        _ if name.ends_with("_us") => (LONGEST_PAUSE_MS * 1000, " (one minute)"),
        _ if name.ends_with("_hours") => (LONGEST_HOURS, " (ten years)"),
        _ => (MOST, ""),
    };
    (most < value).then(|| format!("limits.{name}: {value} is too large; it must be at most {most}{why}"))
}

#[cfg(test)]
mod tests;
