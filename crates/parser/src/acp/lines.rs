//! The line format of agents that implement the Agent Client Protocol.

use tokenrail_domain::JsonText;

use crate::fields::{self, Raw, raw_structs};

raw_structs! {
    /// A JSON-RPC message: a request, a notification, or an answer.
    pub(super) struct Message { id, method, params, result, error }

    /// The parameters of the agent's requests and notifications.
    pub(super) struct Params {
        session = "sessionId",
        update,
        /// In a permission request: the tool call, in the format of an update.
        tool_call = "toolCall",
    }

    /// An update of the session, of any kind.
    pub(super) struct Update {
        kind = "sessionUpdate",
        /// In a message: one block. In a tool call: a list of blocks.
        content,
        message = "messageId",
        cost,
    }

    /// The changes of a tool call. A missing field is unchanged.
    pub(super) struct ToolUpdate {
        id = "toolCallId", title, name, kind, status, content, locations, input = "rawInput",
        output = "rawOutput", meta = "_meta",
    }

    /// A block of content, or a piece of a tool's displayed output.
    pub(super) struct Block {
        kind = "type",
        text,
        /// The block inside a piece of a tool's displayed output.
        content,
        /// In a file change.
        path,
        old = "oldText",
        new = "newText",
        terminal = "terminalId",
    }

    /// The answers to Tokenrail's requests. Each kind of answer has its own fields.
    pub(super) struct Answer {
        agent = "agentInfo", session = "sessionId", stop_reason = "stopReason", usage, meta = "_meta",
    }

    /// The agent's identity.
    pub(super) struct AgentInfo { name }

    struct Meta { quota, claude = "claudeCode" }

    /// What `claude-agent-acp` adds to an update of a tool call.
    struct ClaudeMeta { response = "toolResponse" }

    struct Quota { token_count }
}

impl<'a> ToolUpdate<'a> {
    /// What Claude Code says about a tool call, beside the result for the model.
    pub(super) fn claude_response(&self) -> Raw<'a> {
        let meta: Meta<'a> = fields::read(self.meta);
        let claude: ClaudeMeta<'a> = fields::read(meta.claude);
        claude.response
    }
}

impl Answer<'_> {
    /// The token usage of the turn. The protocol does not define a field for it yet, so each agent chooses one.
    pub(super) fn usage(&self) -> Option<JsonText> {
        let meta: Meta<'_> = fields::read(self.meta);
        let quota: Quota<'_> = fields::read(meta.quota);
        fields::object(self.usage).or_else(|| fields::object(quota.token_count))
    }
}

raw_structs! {
    /// A JSON-RPC error.
    pub(super) struct Failure { code, message, data }

    /// The additional data of an error.
    pub(super) struct FailureData { details, message }

    /// The total cost of a session so far.
    pub(super) struct Cost { amount, currency }
}
