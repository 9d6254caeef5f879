//! The replies of the scripted model.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;

/// One reply. Begin with [`Reply::text`], [`Reply::thinking`], [`Reply::tool_call`] or [`Reply::error`].
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Message(Message),
    Error { status: u16, kind: &'static str, message: &'static str, retry_after_s: Option<u32> },
}

/// Thinking, then text, then a tool call. Each is optional.
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
    /// Nothing more, but the connection stays open.
    Silence,
    /// The connection is cut.
    Cut,
    /// An error, and nothing more.
    Error { kind: &'static str, message: &'static str },
}

impl Reply {
    /// Sends these pieces, one delta each.
    pub(crate) fn text<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self::Message(Message { text: strings(pieces), ..Message::default() })
    }

    /// Sends these pieces of thinking. Usually [`Reply::saying`] follows.
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

    /// Sends these pieces after the thinking and before the tool call.
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

    /// Sends nothing more after the last piece of text, and keeps the connection open.
    pub(crate) fn then_silence(self) -> Self {
        self.with(|message| message.end = End::Silence)
    }

    /// Cuts the connection after the last piece of text. A program may discard what it has not read when its connection
    /// ends. So if the text must be seen, gate the reply, wait for the text, and then let the reply be cut.
    pub(crate) fn then_cut(self) -> Self {
        self.with(|message| message.end = End::Cut)
    }

    /// Sends an error after the last piece of text, and ends.
    pub(crate) fn then_error(self, kind: &'static str, message: &'static str) -> Self {
        self.with(|said| said.end = End::Error { kind, message })
    }

    /// Tells the client when to retry. Only for errors.
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

/// Holds a reply until the test releases it, piece by piece. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets this many more pieces pass.
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
