//! The bounds of the application that the configuration can set, and some that it cannot, with their defaults. Bounds
//! that nobody needs to change are constants beside the code that needs them. `config/limits.rs` in the server crate
//! lists which key sets which field.

use std::time::Duration;

use tokenrail_ports::{ListBounds, PageLimit};

/// The bounds of the application, by subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub admission: AdmissionLimits,
    pub run: RunLimits,
    pub commands: CommandLimits,
    pub saving: SavingLimits,
    pub reading: ReadingLimits,
    pub lists: ListingLimits,
    pub nodes: NodeLimits,
}

/// How much may run and wait at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Agents that run at the same time. Further agents wait.
    pub running_agents: usize,
    /// Launches per minute. All of them may come at once.
    pub launches_per_minute: u32,
    /// Launches that may wait for a slot.
    pub queued_launches: usize,
    /// Turns of one agent that may wait.
    pub queued_turns: u32,
    /// Imports that run at the same time.
    pub imports: usize,
    /// Agents launched by one agent that may run or wait at the same time.
    pub child_agents: usize,
    /// How deep agents may launch agents: 1 lets those launch that no agent has launched.
    pub child_depth: u32,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            running_agents: 64,
            launches_per_minute: 120,
            queued_launches: 256,
            queued_turns: 16,
            imports: 2,
            child_agents: 8,
            child_depth: 2,
        }
    }
}

/// How long a turn may take, and how much it may print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// How long an agent may be silent in the middle of a message before its turn is ended. Not applied while a tool
    /// runs.
    pub stream_timeout: Duration,
    /// How long an agent may be silent before its turn is ended. Not applied while a tool runs.
    pub idle_timeout: Duration,
    /// How long a turn may take in all.
    pub turn_timeout: Duration,
    /// How long an agent may live on after its result.
    pub result_grace: Duration,
    /// How long an agent with `cancelOnDisconnect` runs on without a follower.
    pub disconnect_grace: Duration,
    /// Bytes of text that the open messages of a turn may hold.
    pub message_bytes: usize,
    /// Bytes of output that one run may print.
    pub spool_bytes: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            stream_timeout: Duration::from_mins(1),
            idle_timeout: Duration::from_mins(10),
            turn_timeout: Duration::from_hours(1),
            result_grace: Duration::from_secs(10),
            disconnect_grace: Duration::from_secs(2),
            message_bytes: 64 << 20,
            spool_bytes: 4 << 30,
        }
    }
}

/// How long commands to an agent may take, and how often they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// How long a delete waits for the agent's processes to be gone (`limits.shutdown_timeout_s`).
    pub shutdown_timeout: Duration,
    /// How long a client that answers a permission request waits for the confirmation that the agent has taken the
    /// answer.
    pub answer_timeout: Duration,
    /// Bytes of the text, or of the note, in the answer to a permission request.
    pub answer_text_bytes: usize,
    /// How long a command waits while the agent's task is saving or the store is busy.
    pub command_timeout: Duration,
    /// How many times an agent is asked to stop if asking fails, with a pause of `retry_pause` between two tries. Not
    /// configurable.
    pub stop_tries: u32,
    /// How long an idempotency key is remembered.
    pub idempotency: Duration,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            shutdown_timeout: Duration::from_secs(25),
            answer_timeout: Duration::from_secs(10),
            answer_text_bytes: 10 << 10,
            command_timeout: Duration::from_secs(5),
            stop_tries: 10,
            idempotency: Duration::from_hours(24),
        }
    }
}

/// How output becomes durable: batches, retries and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavingLimits {
    /// Events per agent that may wait for their commit. Further output waits in the spool. So this is also about the
    /// most that one agent adds to one transaction, for which all others wait. While other agents save, it is a quarter
    /// of this.
    pub pending_events: usize,
    /// Bytes of those events, or a quarter of this while other agents save.
    pub pending_bytes: usize,
    /// How long a batch waits, at most, until the followers that have kept up take the batch before it. Events are
    /// collected meanwhile, so batches grow while followers are the bottleneck. If `pending_events` or `pending_bytes`
    /// is reached first, the events are saved, and their announcement waits instead. So an event may wait twice.
    pub follower_wait: Duration,
    /// The number of followers that must have kept up. If there are fewer, no batch waits.
    pub follower_wait_from: usize,
    /// The pause before the first retry of a failed write, read or stop command. It doubles up to `retry_pause_max`.
    pub retry_pause: Duration,
    pub retry_pause_max: Duration,
    /// How long an agent's output may wait for space on a full disk. Then the run is ended, and the output that was
    /// not read is removed.
    pub full_disk_wait: Duration,
    /// How often the server checks that every committed event was announced. Not configurable.
    pub look_again: Duration,
}

impl Default for SavingLimits {
    fn default() -> Self {
        Self {
            pending_events: 512,
            pending_bytes: 256 << 10,
            follower_wait: Duration::from_millis(50),
            follower_wait_from: 8,
            retry_pause: Duration::from_millis(100),
            retry_pause_max: Duration::from_secs(5),
            full_disk_wait: Duration::from_secs(30),
            look_again: Duration::from_secs(15),
        }
    }
}

impl SavingLimits {
    /// The longest pause between two tries while the disk is full: no longer than a full disk is waited for.
    pub(crate) fn full_disk_pause(&self) -> Duration {
        self.full_disk_wait.min(self.retry_pause_max).max(self.retry_pause)
    }
}

/// How much is read from the store at once, and kept in memory for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingLimits {
    /// Events of one page read from the store.
    pub page_events: usize,
    /// About how many bytes one page read from the store has.
    pub page_bytes: usize,
    /// Events that a follower fetches from the store at once. It shares them with other followers at about the same
    /// position.
    pub history_events: usize,
    /// About how many bytes those events have.
    pub history_bytes: usize,
    /// Bytes of newest events kept in memory, per agent.
    pub tail_bytes: usize,
    /// The same, of all agents together.
    pub tails_bytes: usize,
    /// Bytes of earlier turns that an agent receives with its next turn, if its runner wants the history.
    pub model_history_bytes: usize,
}

impl Default for ReadingLimits {
    fn default() -> Self {
        Self {
            page_events: 500,
            page_bytes: 1 << 20,
            history_events: 4096,
            history_bytes: 4 << 20,
            tail_bytes: 8 << 20,
            tails_bytes: 256 << 20,
            model_history_bytes: 256 << 10,
        }
    }
}

/// How several nodes on one store watch each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// How often a node says that it is alive.
    pub beat: Duration,
    /// How long a node that is alive may be silent before the others declare it lost.
    pub lost_after: Duration,
    /// The same, for a node that has stopped in order.
    pub away: Duration,
    /// How often a node looks at the store for what no hint has told it.
    pub poll: Duration,
    /// The same, while hints do not arrive.
    pub poll_without_hints: Duration,
    /// How long after a failover the store may be behind what was seen: until then, all nodes have repeated what was
    /// acknowledged to them.
    pub catch_up: Duration,
    /// How long a start waits while the store is busy. A database may still work on what the previous process has sent,
    /// and holds locks for it until it notices that the process is gone.
    pub start_wait: Duration,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(3),
            lost_after: Duration::from_secs(30),
            away: Duration::from_mins(5),
            poll: Duration::from_secs(1),
            poll_without_hints: Duration::from_millis(250),
            catch_up: Duration::from_secs(30),
            start_wait: Duration::from_secs(30),
        }
    }
}

impl NodeLimits {
    /// How long a beat waits for its answer. A slow database must not keep a node from trying again in time.
    pub(crate) fn beat_wait(&self) -> Duration {
        self.lost_after / 3
    }

    /// How long after its last beat a node may still start something: the others do not declare it lost before the time
    /// of two more beats.
    pub(crate) fn in_touch(&self) -> Duration {
        self.lost_after.saturating_sub(2 * self.beat)
    }
}

/// How much one page of a list may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingLimits {
    /// Agents, turns or permission requests in one page of a list (`limits.list_agents`, whose name is older than the
    /// other lists).
    pub list_agents: usize,
    /// About how many bytes one page of a list has.
    pub list_bytes: usize,
    /// Bytes of one field of an agent or turn in a list. Longer values are cut there.
    pub list_field_bytes: usize,
}

impl Default for ListingLimits {
    fn default() -> Self {
        Self { list_agents: 500, list_bytes: 4 << 20, list_field_bytes: 4 << 10 }
    }
}

impl ReadingLimits {
    /// How much is read from the store at once.
    pub fn page(&self) -> PageLimit {
        PageLimit { events: self.page_events, bytes: self.page_bytes }
    }

    /// How much a follower fetches at once.
    pub fn history(&self) -> PageLimit {
        PageLimit { events: self.history_events, bytes: self.history_bytes }
    }
}

impl ListingLimits {
    /// How much a list may hold.
    pub fn bounds(&self) -> ListBounds {
        ListBounds { bytes: self.list_bytes, field_bytes: self.list_field_bytes }
    }
}
