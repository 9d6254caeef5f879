//! What the model replies.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;

/// One reply. Begin with [`Reply::text`], [`Reply::thinking`], [`Reply::tool_call`] or [`Reply::error`].
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Message(Message),
    Error { status: u16, kind: &'static str, message: &'static str, retry_after_s: Option<u32> },
}

/// Thinking, then text, then a tool call; each may be missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(super) thinking: Vec<String>,
    pub(super) text: Vec<String>,
    pub(super) tool: Option<ToolCall>,
    pub(super) gate: Option<Gate>,
    pub(super) end: End,
}

#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) input: Value,
}

/// What comes after the last piece of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum End {
    #[default]
    Proper,
    /// Nothing more, with the connection open.
    Silence,
    /// The connection is cut.
    Cut,
    /// An error, and nothing more.
    Error { kind: &'static str, message: &'static str },
}

impl Reply {
    /// Says these pieces, one delta each.
    pub(crate) fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::Message(Message { text: strings(pieces), ..Message::default() })
    }

    /// Thinks these pieces; mostly [`Reply::saying`] follows.
    pub(crate) fn thinking<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::Message(Message { thinking: strings(pieces), ..Message::default() })
    }

    /// Calls a tool of the program, such as `Bash`.
    pub(crate) fn tool_call(name: &str, input: Value) -> Self {
        let tool = Some(ToolCall { name: name.to_owned(), input });
        Self::Message(Message { tool, ..Message::default() })
    }

    /// Refuses: 529 `overloaded_error`, 429 `rate_limit_error`, 401 `authentication_error` …
    pub(crate) fn error(status: u16, kind: &'static str, message: &'static str) -> Self {
        Self::Error { status, kind, message, retry_after_s: None }
    }

    /// Says these pieces after the thinking and before the tool call.
    pub(crate) fn saying<P: Into<String>>(self, pieces: impl IntoIterator<Item = P>) -> Self {
        self.with(|message| message.text = strings(pieces))
    }

    /// Calls a tool after the text.
    pub(crate) fn calling(self, name: &str, input: Value) -> Self {
        self.with(|message| message.tool = Some(ToolCall { name: name.to_owned(), input }))
    }

    /// Waits at the gate before each piece of text, and before the connection is cut.
    pub(crate) fn gated(self, gate: &Gate) -> Self {
        self.with(|message| message.gate = Some(gate.clone()))
    }

    /// Falls silent after the last piece of text.
    pub(crate) fn then_silence(self) -> Self {
        self.with(|message| message.end = End::Silence)
    }

    /// Cuts the connection after the last piece of text. A program may throw away what it has not yet read when
    /// its connection ends, so a test that wants the text to be seen gates the reply, looks, and then lets it be cut.
    pub(crate) fn then_cut(self) -> Self {
        self.with(|message| message.end = End::Cut)
    }

    /// Tells an error after the last piece of text, and ends.
    pub(crate) fn then_error(self, kind: &'static str, message: &'static str) -> Self {
        self.with(|said| said.end = End::Error { kind, message })
    }

    /// Tells the client when to come again; only errors do.
    pub(crate) fn retry_after_s(mut self, seconds: u32) -> Self {
        match &mut self {
            Self::Error { retry_after_s, .. } => *retry_after_s = Some(seconds),
            Self::Message(_) => panic!("only an error says when to try again"),
        }
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Message)) -> Self {
        match &mut self {
            Self::Message(message) => change(message),
            Self::Error { .. } => panic!("an error has no text"),
        }
        self
    }
}

fn strings<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Vec<String> {
    pieces.into_iter().map(Into::into).collect()
}

/// Holds a reply until the test lets it go on, piece by piece. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    /// A closed one.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets so many more pieces pass.
    pub(crate) fn pass(&self, pieces: usize) {
        self.0.add_permits(pieces);
    }

    /// Lets everything pass from now on.
    pub(crate) fn open(&self) {
        self.0.close();
    }

    pub(super) async fn wait(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}
