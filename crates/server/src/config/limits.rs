//! `[limits]`: every bound of the system.

use serde::Deserialize;

/// Ten years: longer than anything is waited for, and still a time that every clock can tell.
const LONGEST_S: u64 = 10 * 365 * 24 * 3600;
const LONGEST_HOURS: u64 = LONGEST_S / 3600;
/// For the short pauses.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// A pebibyte, or as many of what is counted: more than any machine has, and small enough to be calculated with.
const MOST: u64 = 1 << 50;
/// See setpriority(2).
const NICEST: u64 = 19;

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr,)*) => {
        /// Every bound of the system, with its default.
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct LimitsConfig {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for LimitsConfig {
            fn default() -> Self {
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

limits! {
    /// Agents that run at the same time; more wait.
    running_agents: usize = 64,
    /// Launches that may wait; then 503 `capacity_exhausted`.
    queued_launches: usize = 256,
    /// Launches per minute; then 429 `rate_limited`.
    launches_per_minute: u32 = 120,
    /// Turns of one agent that may wait.
    queued_turns: u32 = 16,
    /// Bytes of one line of output; a longer one stays in the spool and is reported.
    line_bytes: usize = 16 << 20,
    /// Bytes that one run may print; then it is ended as `output_capped`.
    spool_bytes: u64 = 4 << 30,
    /// Bytes of text that the open messages of a turn may hold; then it is ended as `output_capped`.
    message_bytes: usize = 64 << 20,
    /// Processes that one run may have at once; with more it is ended as `processes_capped`. 0 is no limit.
    agent_processes: u64 = 1000,
    /// Bytes of memory that the processes of one run may have together, without the files that they have mapped; with
    /// more it is ended as `memory_capped`. 0 is no limit.
    agent_memory_bytes: u64 = 0,
    /// How much the processes of agents give way to others where the processor is short, as in nice(1): 0 to 19.
    agent_nice: u64 = 5,
    /// Bytes of standard error that are kept.
    stderr_bytes: usize = 64 << 10,
    /// Questions of one agent that may be open; one more is settled as if nobody had answered.
    open_questions: usize = 64,
    /// Processes of each agent type that may wait for the next turns of their agents; 0 is none.
    resting_agents: usize = 4,
    /// Bytes that may wait for an agent that is spoken with and does not read; more, and its turn fails.
    unread_bytes: usize = 64 << 20,
    /// Bytes of a file that an agent of the Agent Client Protocol may ask for, or have written.
    file_bytes: usize = 16 << 20,
    /// Silence in the middle of a message; not while a tool runs.
    stream_timeout_s: u64 = 60,
    /// Silence of an agent; not while a tool runs.
    idle_timeout_s: u64 = 600,
    /// How long a turn may take.
    turn_timeout_s: u64 = 3600,
    /// How long an agent may live on after its result.
    result_grace_s: u64 = 10,
    /// How long a cancelled agent has to end by itself.
    cancel_grace_s: u64 = 5,
    /// How long its processes have to be gone after that.
    kill_grace_s: u64 = 2,
    /// How long the output of an agent may wait for room on a full disk; then its turn ends as `storage_full`.
    full_disk_wait_s: u64 = 30,
    /// How long a supervisor waits for room on a full disk, to write down how its agent ended.
    exit_patience_s: u64 = 3600,
    /// How long the supervisor of an agent has to start.
    spawn_timeout_s: u64 = 10,
    /// How long the watcher of the run folders rests when it has woken a run, in microseconds: what agents print
    /// meanwhile is read at once. 0 is no rest.
    run_gather_us: u64 = 250,
    /// How often the folder of a run is looked at where inotify does not watch it, in milliseconds.
    run_poll_ms: u64 = 20,
    /// How long a client that answers a question waits to be told that the agent has taken the answer.
    answer_timeout_s: u64 = 10,
    /// How long a command to an agent waits while something of that agent is being saved; then 503 `store_busy`.
    command_timeout_s: u64 = 5,
    /// How long an agent with `cancelOnDisconnect` runs on without a follower.
    disconnect_grace_s: u64 = 2,
    /// How long the start of an answer of an upstream may take.
    connect_timeout_s: u64 = 10,
    /// Bytes of a request's body.
    request_bytes: usize = 1 << 20,
    /// Bytes of a request of a chat, which brings the whole conversation.
    chat_bytes: usize = 32 << 20,
    /// Bytes of large requests of chats, all together, that are being received.
    chats_bytes: usize = 256 << 20,
    /// Events of one page.
    page_events: usize = 500,
    /// Bytes of one page, about.
    page_bytes: usize = 1 << 20,
    /// Events that a follower fetches at once from the store; others that are about there share them.
    history_events: usize = 4096,
    /// Bytes of them, about.
    history_bytes: usize = 4 << 20,
    /// Bytes of what was said in earlier turns that a model's API is told with the next; the oldest are left out.
    model_history_bytes: usize = 256 << 10,
    /// Agents, turns or messages of one list.
    list_agents: usize = 500,
    /// Bytes of one list, about.
    list_bytes: usize = 4 << 20,
    /// Bytes of one field of an agent or turn in a list; what is longer is cut there.
    list_field_bytes: usize = 4 << 10,
    /// Lines of one agent that are read before others have their turn.
    output_lines: usize = 256,
    /// Events of one agent that may wait for their commit, and go into one transaction; what is beyond waits in the spool.
    pending_events: usize = 512,
    /// Bytes of them.
    pending_bytes: usize = 256 << 10,
    /// Bytes of newest events in memory, per running agent.
    tail_bytes: usize = 8 << 20,
    /// The same, of all agents together.
    tails_bytes: usize = 256 << 20,
    /// Bytes of the write-ahead log, before it is started anew.
    wal_bytes: u64 = 64 << 20,
    /// A database up to this size has its pages checked at each start.
    start_check_bytes: u64 = 256 << 20,
    /// A database up to this size is written anew after a purge, so that nothing is left of what was purged.
    wipe_bytes: u64 = 256 << 20,
    /// Connections at the same time.
    connections: usize = 4096,
    /// Event streams and `WebSockets` of one peer; the loopback address has no limit of its own.
    streams_per_peer: usize = 256,
    /// Logins of one peer per minute that may fail; then 429 `rate_limited`.
    failed_logins_per_minute: u32 = 10,
    /// Peers whose failed logins are remembered.
    peers: usize = 1024,
    /// How long the ticket of an event stream is good for coming back to it with `Last-Event-ID`.
    ticket_resume_s: u64 = 3600,
    /// Bytes of a request's head.
    header_bytes: usize = 32 << 10,
    /// Headers of a request.
    headers: usize = 64,
    /// How long the body of a request may take.
    body_timeout_s: u64 = 10,
    /// Agents that one WebSocket connection may follow.
    subscriptions_per_connection: usize = 128,
    /// Bytes that one stream takes before others have their turn.
    stream_turn_bytes: usize = 256 << 10,
    /// Bytes in the kernel's send buffer of a connection.
    send_buffer_bytes: usize = 128 << 10,
    /// A client that accepts no byte for this long is cut.
    send_timeout_s: u64 = 20,
    /// Bytes of a file that is imported.
    import_bytes: u64 = 1 << 30,
    /// Bytes of one event or turn of it.
    import_event_bytes: usize = 128 << 20,
    /// How long a client may take to send it.
    import_timeout_s: u64 = 600,
    /// Files that are imported at the same time.
    imports: usize = 2,
    /// Threads that run the server's tasks; never more than there are processors.
    worker_threads: usize = 4,
    /// Threads that work with files for the agents.
    blocking_threads: usize = 16,
    /// How long an idempotency key is remembered.
    idempotency_hours: u64 = 24,
    /// How long a graceful stop may take.
    shutdown_timeout_s: u64 = 25,
}

/// Those that are none where they are 0.
const OPTIONAL: [&str; 5] =
    ["agent_processes", "agent_memory_bytes", "agent_nice", "resting_agents", "run_gather_us"];

/// What is wrong with the value of a limit. A grace may be 0; with most other limits of 0 nothing would ever go on.
fn wrong(name: &str, value: u64) -> Option<String> {
    if value == 0 && !name.ends_with("_grace_s") && !OPTIONAL.contains(&name) {
        return Some(format!("limits.{name} is 0; it must be at least 1"));
    }
    let (most, why) = match name {
        "agent_nice" => (NICEST, ", with which a process gets what nobody else wants"),
        _ if name.ends_with("_s") => (LONGEST_S, ", which is ten years"),
        _ if name.ends_with("_ms") => (LONGEST_PAUSE_MS, ", which is a minute"),
        _ if name.ends_with("_us") => (LONGEST_PAUSE_MS * 1000, ", which is a minute"),
        _ if name.ends_with("_hours") => (LONGEST_HOURS, ", which is ten years"),
        _ => (MOST, ""),
    };
    (most < value).then(|| format!("limits.{name} is {value}; it must be at most {most}{why}"))
}
