//! What only the node of an agent can do, sent by the node that a client asked: above all, permission answers.

use async_trait::async_trait;
use tokenrail_domain::{AgentId, NodeId, ReplyFault};

use crate::{PermissionAnswer, StoreResult};

/// The inboxes of the nodes. A letter is delivered at least once, also if its writer or its reader is killed. A letter
/// that nobody has replied to within [`LETTER_LIFE_MS`] may be removed, and so may a reply that nobody has fetched.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IInbox: Send + Sync {
    /// Puts a letter into a node's inbox. A letter with the same id is put there once, however often it is sent.
    async fn put(&self, to: NodeId, letter: Letter) -> StoreResult<()>;

    /// The letters to this node without a reply, the oldest first, without those that are `underway`. At most `limit`.
    /// A letter that cannot be read gets the reply [`LetterReply::NotDelivered`].
    async fn letters(&self, underway: Vec<LetterId>, limit: usize) -> StoreResult<Vec<Letter>>;

    /// Replies to a letter. Only the first reply counts. Does nothing if there is no such letter.
    async fn reply(&self, id: LetterId, reply: LetterReply) -> StoreResult<()>;

    /// The reply to a letter, if there is one.
    async fn reply_to(&self, id: LetterId) -> StoreResult<Option<LetterReply>>;
}

/// How long a letter is kept at least.
pub const LETTER_LIFE_MS: u64 = 600_000;

/// The id of a letter: random, and made once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterId(pub [u8; 16]);

/// What the node of an agent is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub id: LetterId,
    pub agent: AgentId,
    pub content: LetterContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterContent {
    /// Answers a permission request.
    Answer(PermissionAnswer),
    /// Ends the process that is idle until the agent's next turn.
    Dismiss,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterReply {
    /// It is done. The request is settled with this answer, and the journal has that.
    Settled,
    /// The agent has it, but did not confirm it in time.
    HandedOn,
    /// The agent could not receive it. The request may still be open.
    NotDelivered,
    /// The request was settled before.
    AlreadySettled,
    /// The agent has no such request.
    Unknown,
    /// The request has no such option, but these.
    NoSuchOption { known: String },
    /// The request does not accept such an answer.
    NotAccepted(ReplyFault),
}
