//! The stream of a chat completion. It is made from the events of the stream of the response, so both APIs show the
//! same turn in the same way.
//!
//! Chat Completions has one text for everything that the agent says, and clients execute its tool calls. So messages
//! are joined, and a tool call is a line of the reasoning.

use std::collections::BTreeSet;

use super::dto::{
    BETWEEN, ChunkChoice, ChunkDelta, ChunkDto, CompletionUsage, FailedChunk, Gap, GapText, OutputItem,
    ResponseDto, StreamEvent,
};
use super::fold::{OpenAi, ResponseFrame};
use super::pieces::About;
use super::response_id::ResponseId;
use super::writer::{Unsent, Writer};
use crate::fold::Frames;

/// Writes chunks. Each has a number, from 0, which is the `id` of its block.
pub(crate) struct Chunks {
    unsent: Unsent,
    id: String,
    created: i64,
    model: String,
    include_usage: bool,
    /// The items that the newest text and the newest reasoning belong to.
    newest_said: Option<usize>,
    newest_done: Option<usize>,
    /// The tool calls that are not shown yet.
    calls: BTreeSet<usize>,
}

impl Chunks {
    /// The chunks of this turn with the number `from` and greater.
    pub(crate) fn new(id: ResponseId, from: u64, include_usage: bool) -> Self {
        Self {
            unsent: Unsent::new(from),
            id: id.completion(),
            created: 0,
            model: String::new(),
            include_usage,
            newest_said: None,
            newest_done: None,
            calls: BTreeSet::new(),
        }
    }

    fn chunk(&mut self, choices: &[ChunkChoice<'_>], usage: Option<CompletionUsage>, about: About<'_>) {
        let number = self.unsent.next();
        if self.unsent.count(number) {
            let (id, model) = (&self.id, &self.model);
            let object = "chat.completion.chunk";
            let chunk = ChunkDto { id, object, created: self.created, model, choices, usage };
            self.unsent.out.block(Some(number), None, &chunk, about);
        }
    }

    fn delta(&mut self, delta: ChunkDelta<'_>, about: About<'_>) {
        self.chunk(&[ChunkChoice { delta, ..ChunkChoice::default() }], None, about);
    }

    fn say(&mut self, item: Option<usize>, text: &str) {
        if self.newest_said.is_some() && self.newest_said != item {
            self.delta(ChunkDelta { content: Some(BETWEEN), ..ChunkDelta::default() }, About::Nothing);
        }
        self.newest_said = item;
        self.delta(ChunkDelta { content: Some(text), ..ChunkDelta::default() }, About::Nothing);
    }

    /// Shows what the agent thinks or does.
    fn tell(&mut self, item: Option<usize>, text: GapText<'_>, about: About<'_>) {
        let shown = |text| ChunkDelta { reasoning_content: Some(text), ..ChunkDelta::default() };
        if self.newest_done.is_some() && self.newest_done != item {
            self.delta(shown(GapText::Given(BETWEEN)), About::Nothing);
        }
        self.newest_done = item;
        self.delta(shown(text), about);
    }

    fn show_call(&mut self, item: Option<usize>, about: About<'_>) {
        if item.is_some_and(|item| self.calls.remove(&item)) {
            self.tell(item, GapText::Gap(Gap::Line), about);
        }
    }

    fn item(&mut self, event: &StreamEvent<'_>, about: About<'_>) {
        let Some(OutputItem::McpCall { .. }) = event.item else { return };
        match event.kind {
            "response.output_item.added" => self.calls.extend(event.output_index),
            // Only a call whose arguments did not end is not shown yet.
            _ => self.show_call(event.output_index, about),
        }
    }

    fn end(&mut self, response: &ResponseDto) {
        match response.finish() {
            Ok(reason) => {
                let finish_reason = Some(reason);
                let choice = ChunkChoice { finish_reason, ..ChunkChoice::default() };
                self.chunk(&[choice], None, About::Nothing);
                if self.include_usage {
                    let usage = response.usage.as_ref().map(CompletionUsage::from);
                    self.chunk(&[], usage, About::Nothing);
                } else {
                    // A client that has it may resume without asking for it.
                    self.unsent.count(self.unsent.next());
                }
            }
            Err(error) => {
                let number = self.unsent.next();
                if self.unsent.count(number) {
                    self.unsent.out.block(Some(number), None, &FailedChunk { error }, About::Nothing);
                }
            }
        }
        self.unsent.out.done();
    }
}

impl Frames<OpenAi> for Chunks {
    fn frame(&mut self, ResponseFrame { event, about }: ResponseFrame<'_>) {
        let item = event.output_index;
        match (event.kind, event.response, event.delta) {
            ("response.created", Some(response), _) => {
                (self.created, self.model) = (response.created_at, response.model.clone());
                let delta =
                    ChunkDelta { role: Some("assistant"), content: Some(""), ..ChunkDelta::default() };
                self.delta(delta, About::Nothing);
            }
            ("response.completed" | "response.incomplete" | "response.failed", Some(response), _) => {
                self.end(response);
            }
            ("response.output_text.delta", _, Some(text)) => self.say(item, text),
            ("response.reasoning_summary_text.delta", _, Some(text)) => {
                self.tell(item, GapText::Given(text), about);
            }
            ("response.mcp_call_arguments.done", ..) => self.show_call(item, about),
            ("response.output_item.added" | "response.output_item.done", ..) => self.item(&event, about),
            _ => {}
        }
    }
}

impl Writer for Chunks {
    fn unsent(&self) -> &Unsent {
        &self.unsent
    }

    fn unsent_mut(&mut self) -> &mut Unsent {
        &mut self.unsent
    }
}
