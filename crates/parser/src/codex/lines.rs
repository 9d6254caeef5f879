//! The line format of Codex: snake case in `exec`, camel case in `app-server`.

use crate::fields::{self, raw_structs};

raw_structs! {
    /// The common fields of all lines.
    pub(super) struct Head { kind = "type", thread_id, item, usage, error, method, params, id, result }

    /// The parameters of a notification.
    pub(super) struct Params {
        thread_id = "threadId", thread, turn, item, item_id = "itemId", delta,
        summary_index = "summaryIndex", content_index = "contentIndex", error, will_retry = "willRetry",
        token_usage = "tokenUsage",
    }

    /// A thread or a turn.
    pub(super) struct Entity {
        id,
        status,
        error,
        /// In the answer to a request: the thread that was started or resumed.
        thread,
    }

    /// The token usage of a thread.
    pub(super) struct TokenUsage { total, last }

    /// An error, in any place of a line.
    pub(super) struct Failure { message, info = "codexErrorInfo" }

    /// An item of a thread, of any type.
    pub(super) struct ThreadItem {
        kind = "type",
        id,
        text,
        /// In reasoning: its summary, in parts.
        summary,
        /// In reasoning: the reasoning itself, in parts.
        content,
        status,
        command,
        #[serde(alias = "aggregatedOutput")]
        aggregated_output,
        #[serde(alias = "exitCode")]
        exit_code,
        changes,
        server,
        tool,
        arguments,
        result,
        error,
        query,
    }
}

impl ThreadItem<'_> {
    pub(super) fn is_todo_list(&self) -> bool {
        fields::text(self.kind).is_some_and(|kind| matches!(&*kind, "todo_list" | "todoList" | "plan"))
    }
}
