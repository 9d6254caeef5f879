//! The stream of a chat completion. It is made from the events of the stream of the response, so both APIs show the
//! same turn in the same way.
//!
//! Chat Completions has one text for everything that the agent says, and clients execute its tool calls. So messages
//! are joined, and a tool call is a line of the reasoning.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::dto::{
    BETWEEN, ChunkChoice, ChunkDelta, ChunkDto, CompletionUsage, FailedChunk, OutputItem, ResponseDto,
    StreamEvent, call_line,
};
use super::fold::OpenAi;
use super::response_id::ResponseId;
use super::writer::Writer;
use crate::blocks::BlockWriter;
use crate::fold::Frames;

/// Writes chunks. Each has a number, from 0, which is the `id` of its block.
pub(crate) struct Chunks {
    out: BlockWriter,
    /// The first chunk that the client does not have.
    from: u64,
    next: u64,
    id: String,
    created: i64,
    model: String,
    include_usage: bool,
    /// The items that the newest text and the newest reasoning belong to.
    newest_said: Option<usize>,
    newest_done: Option<usize>,
    /// The names of tool calls that are not shown yet.
    calls: BTreeMap<usize, String>,
}

impl Chunks {
    /// The chunks of this turn with the number `from` and greater.
    pub(crate) fn new(id: ResponseId, from: u64, include_usage: bool) -> Self {
        Self {
            out: BlockWriter::default(),
            from,
            next: 0,
            id: id.completion(),
            created: 0,
            model: String::new(),
            include_usage,
            newest_said: None,
            newest_done: None,
            calls: BTreeMap::new(),
        }
    }

    fn chunk(&mut self, choices: &[ChunkChoice<'_>], usage: Option<CompletionUsage>) {
        let number = self.next;
        self.next += 1;
        if self.from <= number {
            let (id, model) = (&self.id, &self.model);
            let object = "chat.completion.chunk";
            let chunk = ChunkDto { id, object, created: self.created, model, choices, usage };
            self.out.block(Some(number), None, &chunk);
        }
    }

    fn delta(&mut self, delta: ChunkDelta<'_>) {
        self.chunk(&[ChunkChoice { delta, ..ChunkChoice::default() }], None);
    }

    fn say(&mut self, item: Option<usize>, text: &str) {
        if self.newest_said.is_some() && self.newest_said != item {
            self.delta(ChunkDelta { content: Some(BETWEEN), ..ChunkDelta::default() });
        }
        self.newest_said = item;
        self.delta(ChunkDelta { content: Some(text), ..ChunkDelta::default() });
    }

    /// Shows what the agent thinks or does.
    fn tell(&mut self, item: Option<usize>, text: &str) {
        if self.newest_done.is_some() && self.newest_done != item {
            self.delta(ChunkDelta { reasoning_content: Some(BETWEEN), ..ChunkDelta::default() });
        }
        self.newest_done = item;
        self.delta(ChunkDelta { reasoning_content: Some(text), ..ChunkDelta::default() });
    }

    fn show_call(&mut self, item: Option<usize>, arguments: &str) {
        if let Some(name) = item.and_then(|item| self.calls.remove(&item)) {
            self.tell(item, &call_line(&name, arguments));
        }
    }

    fn item(&mut self, event: &StreamEvent<'_>) {
        let Some(OutputItem::McpCall { name, arguments, .. }) = event.item else { return };
        match event.kind {
            "response.output_item.added" => {
                self.calls.extend(event.output_index.map(|at| (at, name.clone())));
            }
            // Only a call whose arguments did not end is not shown yet.
            _ => self.show_call(event.output_index, arguments),
        }
    }

    fn end(&mut self, response: &ResponseDto) {
        match response.finish() {
            Ok(reason) => {
                let finish_reason = Some(reason);
                self.chunk(&[ChunkChoice { finish_reason, ..ChunkChoice::default() }], None);
                if self.include_usage {
                    self.chunk(&[], response.usage.as_ref().map(CompletionUsage::from));
                } else {
                    // A client that has it may resume without asking for it.
                    self.next += 1;
                }
            }
            Err(error) => {
                if self.from <= self.next {
                    self.out.block(Some(self.next), None, &FailedChunk { error });
                }
                self.next += 1;
            }
        }
        self.out.done();
    }
}

impl Frames<OpenAi> for Chunks {
    fn frame(&mut self, event: StreamEvent<'_>) {
        let item = event.output_index;
        match (event.kind, event.response, event.delta) {
            ("response.created", Some(response), _) => {
                (self.created, self.model) = (response.created_at, response.model.clone());
                let delta =
                    ChunkDelta { role: Some("assistant"), content: Some(""), ..ChunkDelta::default() };
                self.delta(delta);
            }
            ("response.completed" | "response.incomplete" | "response.failed", Some(response), _) => {
                self.end(response);
            }
            ("response.output_text.delta", _, Some(text)) => self.say(item, text),
            ("response.reasoning_summary_text.delta", _, Some(text)) => self.tell(item, text),
            ("response.mcp_call_arguments.done", ..) => {
                self.show_call(item, event.arguments.unwrap_or_default());
            }
            ("response.output_item.added" | "response.output_item.done", ..) => self.item(&event),
            _ => {}
        }
    }
}

impl Writer for Chunks {
    fn take(&mut self) -> Bytes {
        self.out.take()
    }

    fn is_ahead(&self) -> bool {
        self.next < self.from
    }
}
