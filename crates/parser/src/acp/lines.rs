//! The line format of agents that implement the Agent Client Protocol.

use serde::Deserialize;
use tokenrail_domain::JsonText;

use crate::fields::{self, Raw};

/// A JSON-RPC message: a request, a notification, or an answer.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) method: Raw<'a>,
    #[serde(borrow)]
    pub(super) params: Raw<'a>,
    #[serde(borrow)]
    pub(super) result: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
}

/// The parameters of the agent's requests and notifications.
#[derive(Deserialize, Default)]
pub(super) struct Params<'a> {
    #[serde(borrow, rename = "sessionId")]
    pub(super) session: Raw<'a>,
    #[serde(borrow)]
    pub(super) update: Raw<'a>,
    /// In a permission request: the tool call, in the format of an update.
    #[serde(borrow, rename = "toolCall")]
    pub(super) tool_call: Raw<'a>,
}

/// An update of the session, of any kind.
#[derive(Deserialize, Default)]
pub(super) struct Update<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    pub(super) kind: Raw<'a>,
    /// In a message: one block. In a tool call: a list of blocks.
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow, rename = "messageId")]
    pub(super) message: Raw<'a>,
    #[serde(borrow)]
    pub(super) cost: Raw<'a>,
}

/// The changes of a tool call. A missing field is unchanged.
#[derive(Deserialize, Default)]
pub(super) struct ToolUpdate<'a> {
    #[serde(borrow, rename = "toolCallId")]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) title: Raw<'a>,
    #[serde(borrow)]
    pub(super) name: Raw<'a>,
    #[serde(borrow)]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) status: Raw<'a>,
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow)]
    pub(super) locations: Raw<'a>,
    #[serde(borrow, rename = "rawInput")]
    pub(super) input: Raw<'a>,
    #[serde(borrow, rename = "rawOutput")]
    pub(super) output: Raw<'a>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Raw<'a>,
}

/// A block of content, or a piece of a tool's displayed output.
#[derive(Deserialize, Default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    /// The block inside a piece of a tool's displayed output.
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    /// In a file change.
    #[serde(borrow)]
    pub(super) path: Raw<'a>,
    #[serde(borrow, rename = "oldText")]
    pub(super) old: Raw<'a>,
    #[serde(borrow, rename = "newText")]
    pub(super) new: Raw<'a>,
    #[serde(borrow, rename = "terminalId")]
    pub(super) terminal: Raw<'a>,
}

/// The answers to Tokenrail's requests. Each kind of answer has its own fields.
#[derive(Deserialize, Default)]
pub(super) struct Answer<'a> {
    #[serde(borrow, rename = "agentInfo")]
    pub(super) agent: Raw<'a>,
    #[serde(borrow, rename = "sessionId")]
    pub(super) session: Raw<'a>,
    #[serde(borrow, rename = "stopReason")]
    pub(super) stop_reason: Raw<'a>,
    #[serde(borrow)]
    pub(super) usage: Raw<'a>,
    #[serde(borrow, rename = "_meta")]
    meta: Raw<'a>,
}

/// The agent's identity.
#[derive(Deserialize, Default)]
pub(super) struct AgentInfo<'a> {
    #[serde(borrow)]
    pub(super) name: Raw<'a>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow)]
    quota: Raw<'a>,
}

#[derive(Deserialize, Default)]
struct Quota<'a> {
    #[serde(borrow)]
    token_count: Raw<'a>,
}

impl Answer<'_> {
    /// The token usage of the turn. The protocol does not define a field for it yet, so each agent chooses one.
    pub(super) fn usage(&self) -> Option<JsonText> {
        let meta: Meta<'_> = fields::read(self.meta);
        let quota: Quota<'_> = fields::read(meta.quota);
        fields::object(self.usage).or_else(|| fields::object(quota.token_count))
    }
}

/// A JSON-RPC error.
#[derive(Deserialize, Default)]
pub(super) struct Failure<'a> {
    #[serde(borrow)]
    pub(super) code: Raw<'a>,
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
    #[serde(borrow)]
    pub(super) data: Raw<'a>,
}

/// The additional data of an error.
#[derive(Deserialize, Default)]
pub(super) struct FailureData<'a> {
    #[serde(borrow)]
    pub(super) details: Raw<'a>,
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
}

/// The total cost of a session so far.
#[derive(Deserialize, Default)]
pub(super) struct Cost<'a> {
    #[serde(borrow)]
    pub(super) amount: Raw<'a>,
    #[serde(borrow)]
    pub(super) currency: Raw<'a>,
}
