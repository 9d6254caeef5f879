//! The line format of Codex: snake case in `exec`, camel case in `app-server`.

use serde::Deserialize;

use crate::fields::{self, Raw};

/// The common fields of all lines.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) thread_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) item: Raw<'a>,
    #[serde(borrow)]
    pub(super) usage: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    #[serde(borrow)]
    pub(super) method: Raw<'a>,
    #[serde(borrow)]
    pub(super) params: Raw<'a>,
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) result: Raw<'a>,
}

/// The parameters of a notification.
#[derive(Deserialize, Default)]
pub(super) struct Params<'a> {
    #[serde(borrow, rename = "threadId")]
    pub(super) thread_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) thread: Raw<'a>,
    #[serde(borrow)]
    pub(super) turn: Raw<'a>,
    #[serde(borrow)]
    pub(super) item: Raw<'a>,
    #[serde(borrow, rename = "itemId")]
    pub(super) item_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) delta: Raw<'a>,
    #[serde(borrow, rename = "summaryIndex")]
    pub(super) summary_index: Raw<'a>,
    #[serde(borrow, rename = "contentIndex")]
    pub(super) content_index: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    #[serde(borrow, rename = "willRetry")]
    pub(super) will_retry: Raw<'a>,
    #[serde(borrow, rename = "tokenUsage")]
    pub(super) token_usage: Raw<'a>,
}

/// A thread or a turn.
#[derive(Deserialize, Default)]
pub(super) struct Entity<'a> {
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) status: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    /// In the answer to a request: the thread that was started or resumed.
    #[serde(borrow)]
    pub(super) thread: Raw<'a>,
}

/// The token usage of a thread.
#[derive(Deserialize, Default)]
pub(super) struct TokenUsage<'a> {
    #[serde(borrow)]
    pub(super) total: Raw<'a>,
    #[serde(borrow)]
    pub(super) last: Raw<'a>,
}

/// An error, in any place of a line.
#[derive(Deserialize, Default)]
pub(super) struct Failure<'a> {
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
    #[serde(borrow, rename = "codexErrorInfo")]
    pub(super) info: Raw<'a>,
}

/// An item of a thread, of any type.
#[derive(Deserialize, Default)]
pub(super) struct ThreadItem<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    /// In reasoning: its summary, in parts.
    #[serde(borrow)]
    pub(super) summary: Raw<'a>,
    /// In reasoning: the reasoning itself, in parts.
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow)]
    pub(super) status: Raw<'a>,
    #[serde(borrow)]
    pub(super) command: Raw<'a>,
    #[serde(borrow, alias = "aggregatedOutput")]
    pub(super) aggregated_output: Raw<'a>,
    #[serde(borrow, alias = "exitCode")]
    pub(super) exit_code: Raw<'a>,
    #[serde(borrow)]
    pub(super) changes: Raw<'a>,
    #[serde(borrow)]
    pub(super) server: Raw<'a>,
    #[serde(borrow)]
    pub(super) tool: Raw<'a>,
    #[serde(borrow)]
    pub(super) arguments: Raw<'a>,
    #[serde(borrow)]
    pub(super) result: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    #[serde(borrow)]
    pub(super) query: Raw<'a>,
}

impl ThreadItem<'_> {
    pub(super) fn is_todo_list(&self) -> bool {
        fields::text(self.kind).is_some_and(|kind| matches!(&*kind, "todo_list" | "todoList" | "plan"))
    }
}
