//! Why a use case was refused.

use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId, ReplyFault, Sequence, TurnNumber};
use tokenrail_ports::{CwdNotAllowed, FolderError, StoreError, is_disk_full};

/// Why a use case was refused: one variant for each case that a client handles differently.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("no such agent: {0}")]
    NotFound(AgentId),
    /// `known` lists the configured types.
    #[error("unknown agent type {name:?}; configured types: {known}")]
    UnknownType { name: String, known: String },
    #[error(
        "no agent type was given, and no default type is configured; pass a type, or set server.default_agent"
    )]
    TypeMissing,
    /// The agent of a conversation has another type than the launch names.
    #[error(
        "this conversation has an agent of the type {kind}; use this type, or start another conversation"
    )]
    OtherType { kind: String },
    #[error(transparent)]
    CwdNotAllowed(#[from] CwdNotAllowed),
    #[error("the cursor is ahead of the latest event ({head}); start again from 0")]
    CursorAhead { head: Sequence },
    #[error("the agent has been deleted; launch a new agent")]
    Deleted,
    /// The one that launches.
    #[error("the launching agent has been deleted, so it cannot launch other agents")]
    ParentDeleted,
    #[error("the agent is a read-only copy, so it accepts no messages; launch a new agent")]
    ReadOnly,
    #[error("no turn of the agent has ended yet; try again after its first turn has ended")]
    Active,
    #[error("the agent's turn queue is full; wait until a turn ends, or raise limits.queued_turns")]
    QueueFull,
    #[error("too many launches in a minute; wait, or raise limits.launches_per_minute")]
    TooManyLaunches { wait: Duration },
    #[error("too many launches are queued; try again later, or raise limits.queued_launches")]
    TooManyQueuedLaunches,
    #[error(
        "too many agents that this agent launched are still running; wait until one has ended, or raise \
         limits.child_agents ({limit})"
    )]
    TooManyChildren { limit: usize },
    #[error(
        "this agent was launched by an agent, and may not launch others itself; do the work without them, or raise \
         limits.child_depth ({limit})"
    )]
    TooDeep { limit: u32 },
    #[error(
        "the working directory is outside the folder of the launching agent; name a folder inside it, or leave \
         `cwd` out"
    )]
    OutsideParent,
    /// The disk of the files of runs. With SQLite, the database is on it too.
    #[error("the disk that holds the server's data folder is full; free up space on it, then try again")]
    DataDiskFull,
    #[error("too many imports are running; try again later, or raise limits.imports")]
    TooManyImports,
    /// Whether the permission request is still open is unknown.
    #[error("the answer cannot be delivered to the agent yet; try again later")]
    AnswerNotDelivered,
    #[error("the idempotency key was already used with a different request; use a new key")]
    KeyReused,
    #[error("the agent has no permission request {0}")]
    RequestUnknown(String),
    #[error("the permission request {0} is no longer open")]
    RequestSettled(String),
    #[error("not an option of this permission request; its options: {known}")]
    OptionUnknown { known: String },
    /// `accepting` lists the types that accept images.
    #[error("agents of this type accept no images; {}", types_with_images(accepting))]
    ImagesNotAccepted { accepting: Vec<String> },
    #[error("the turn has no such image")]
    ImageUnknown,
    #[error("the agent has no turn {0}")]
    TurnUnknown(TurnNumber),
    #[error("turn {0} is no longer queued; if it is running, cancel the agent to stop it")]
    TurnStarted(TurnNumber),
    #[error(
        "another message came first and became turn {0} of the agent; read that turn, then send the next message"
    )]
    TurnTaken(TurnNumber),
    #[error(transparent)]
    ReplyNotAccepted(ReplyFault),
    #[error("must be at most {limit} bytes long (limits.answer_text_bytes)")]
    ReplyTooLong { part: ReplyText, limit: usize },
    #[error(transparent)]
    ChangesUnknown(NoChanges),
    #[error("too many requests for changes are running; try again later, or raise limits.changes_at_once")]
    TooManyChanges,
    /// The node that runs the agent is lost, or was taken out.
    #[error(
        "the agent's node {node} is lost or was removed; if it is lost, start its server again; otherwise launch a new \
         agent"
    )]
    NodeUnavailable { node: String },
    /// The same, and this node does not know whether any other one can run the agent, because it lacks the type.
    #[error(
        "the agent's node {node} is not available, and this node cannot tell whether another node can run the agent, \
         because this node lacks the agent type {kind:?}; {}",
        where_the_type_is(nodes)
    )]
    TypeNotHere { node: String, kind: String, nodes: Vec<String> },
    #[error("there is no node {0}; GET /api/nodes lists the nodes")]
    NodeUnknown(NodeId),
    #[error("there is no node {0:?}; use a name or an id that `tokenrail nodes` or GET /api/nodes lists")]
    NoNodeNamed(String),
    #[error("several nodes have the name {name:?}; use the id of one of them: {ids}")]
    SeveralNodesNamed { name: String, ids: String },
    /// A launch names a node that does not run.
    #[error("the node {node} is not alive; name another node, or leave `node` out")]
    NodeNotAlive { node: String },
    #[error(
        "a launch with `cwd` or `sessionId` is not forwarded to another node; send it to that node itself, or omit \
         `node` to launch the agent here"
    )]
    FolderElsewhere,
    #[error("the node {0} is alive; stop its server first")]
    NodeAlive(NodeId),
    #[error(
        "this node has been unable to report to the other nodes for too long, so it starts no agents; check \
         its connection to the database"
    )]
    OutOfTouch,
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refusal {
    /// Whether there is no room for one more launch.
    pub(crate) fn is_for_want_of_room(&self) -> bool {
        matches!(
            self,
            Self::TooManyLaunches { .. } | Self::TooManyQueuedLaunches | Self::TooManyChildren { .. }
        )
    }

    /// The error for a client whose command was saved, if the store fails before the rest of the command is done. The
    /// client must not believe that nothing has happened.
    pub(crate) fn after_save(self) -> Self {
        match self {
            // That the disk is full says what to do.
            Self::Store(error) if error.is_transient() && !matches!(error, StoreError::Full) => {
                Self::Store(StoreError::OutcomeUnknown(Box::new(error)))
            }
            refusal => refusal,
        }
    }
}

fn where_the_type_is(nodes: &[String]) -> String {
    match nodes {
        [] => "add the type to the configuration of a node and restart that node, or wait until the agent's node is \
               back".to_owned(),
        some => format!("send the request to a node that has the type: {}", some.join(", ")),
    }
}

fn types_with_images(accepting: &[String]) -> String {
    match accepting {
        [] => "no configured type accepts images".to_owned(),
        some => format!("these types do: {}", some.join(", ")),
    }
}

/// Why git does not know what an agent has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoChanges {
    #[error(
        "the agent is a copy (imported or a replay), so git cannot tell what it has changed; see the list \"Agent's edits\" on the page"
    )]
    Copy,
    #[error(
        "the commit at the start of the turn is unknown: the turn has not started, or the agent's folder was not in \
         a git repository that git could read"
    )]
    NoCommit,
    #[error("the agent's folder is no longer in a git repository")]
    NoRepository,
    #[error("the repository no longer has the commit from the start of the turn")]
    CommitGone,
    #[error("the agent's folder is on another node; send this request to the server of that node")]
    OtherNode,
    #[error("git is not installed on the server; install it")]
    NoGit,
    #[error("git took too long; raise limits.changes_timeout_s")]
    TimedOut,
    #[error("git failed; the server log has the cause")]
    GitFailed,
}

impl From<FolderError> for Refusal {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::NotAllowed(error) => Self::CwdNotAllowed(error),
            FolderError::NotMade(error) if is_disk_full(&error) => Self::DataDiskFull,
            FolderError::NotMade(error) => Self::Store(StoreError::Unavailable(Box::new(error))),
        }
    }
}

/// A text in the reply to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyText {
    Text,
    Note,
}

impl From<NoChanges> for Refusal {
    fn from(why: NoChanges) -> Self {
        Self::ChangesUnknown(why)
    }
}
