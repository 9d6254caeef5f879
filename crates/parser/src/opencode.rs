//! The JSON events of opencode: `opencode run --format json`.
//!
//! There are no deltas: a text or a tool call arrives when it is complete. There is no first and no last line either.
//! Every line contains the session id, and the turn ends with the step that does not request tools, or with an error.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | the first with a `sessionID` | [`Said::Session`] |
//! | `step_start` | nothing; if the step before it has not finished, it is a retry: notice `api_retry` |
//! | `text`, `reasoning` | a complete message |
//! | `tool_use` | a tool call and its result, with the patch of its `metadata` |
//! | `step_finish` | usage; if its `reason` ends the turn, [`Said::Close`] with the usage of all steps |
//! | `error` | error, and [`Said::Close`] |
//! | an object of any other type | notice named after the type |
//! | anything else | error `line_invalid` |
//!
//! Lines after the end (the agent continues on its own after it has summarized a long conversation) are a turn of their
//! own.
//!
//! Exit codes add nothing to the lines: a run whose output was cut exits with 0 too.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tokenrail_domain::{
    AgentError, ContentBlock, ErrorClass, EventBody, JsonText, Said, ToolCall, ToolResult, TurnClose, Usage,
};
use tokenrail_ports::{Activity, IMessageParser};

use crate::conversation::Conversation;
use crate::errors;
use crate::fields::{self, Raw, raw_structs};
use crate::line::{self, notice};
use crate::patches;

/// The reasons with which a step finishes and the turn continues.
const MORE_TO_COME: [&str; 2] = ["tool-calls", "unknown"];
/// The tool by which opencode answers an invalid tool call.
const INVALID_TOOL: &str = "invalid";

/// Parses the output of one process of opencode. Create a new parser for each process.
///
/// The table at the top of the source file shows what each line becomes.
#[derive(Debug, Default)]
pub struct OpencodeParser {
    conversation: Conversation,
    in_step: bool,
    /// What the steps of the turn took.
    steps: u32,
    tokens: Tokens,
    cost_usd: f64,
}

raw_structs! {
    struct OpencodeLine { kind = "type", session = "sessionID", part, error }

    /// A part of a message, of any type.
    struct MessagePart { text, tool, call = "callID", state, reason, tokens, cost }

    /// The state of a tool call.
    struct ToolState { status, input, output, error, metadata }

    struct ToolMetadata { exit }

    struct Failure { name, data }

    struct FailureData { message, status = "statusCode", is_retryable = "isRetryable" }
}

/// Token counts, in the agent's own format.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize)]
#[serde(default)]
struct Tokens {
    total: u64,
    input: u64,
    output: u64,
    reasoning: u64,
    cache: CacheTokens,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize)]
#[serde(default)]
struct CacheTokens {
    write: u64,
    read: u64,
}

impl OpencodeParser {
    pub fn new() -> Self {
        Self::default()
    }
}

impl IMessageParser for OpencodeParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let text = line::text(line);
        let text = line::trimmed(&text);
        let Some(line) = line::object::<OpencodeLine<'_>>(text, said) else { return };
        // The session of a sub-agent is not the session to resume.
        if self.conversation.session_id().is_empty() {
            self.conversation.session(fields::text(line.session), said);
        }
        let part: MessagePart<'_> = fields::read(line.part);
        let kind = fields::text(line.kind).unwrap_or("untyped".into());
        let words = || fields::text(part.text).map(Cow::into_owned).unwrap_or_default();
        match &*kind {
            "step_start" => {
                self.conversation.begin_turn(said);
                if std::mem::replace(&mut self.in_step, true) {
                    said.push(notice("api_retry", JsonText::new_unchecked(text)));
                }
            }
            "text" => self.conversation.whole(vec![ContentBlock::Text(words())], said),
            "reasoning" => self.conversation.whole(vec![ContentBlock::Reasoning(words())], said),
            "tool_use" => self.tool_use(&part, said),
            "step_finish" => self.step_finish(&part, said),
            "error" => self.error(line.error, said),
            _ => said.push(notice(&kind, JsonText::new_unchecked(text))),
        }
    }

    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        errors::of_complaint(stderr)
    }

    fn activity(&self) -> Activity {
        self.conversation.activity()
    }
}

impl OpencodeParser {
    fn tool_use(&mut self, part: &MessagePart<'_>, said: &mut Vec<Said>) {
        let state: ToolState<'_> = fields::read(part.state);
        let id = fields::text(part.call).unwrap_or_default().into_owned();
        let tool = fields::text(part.tool).unwrap_or_default().into_owned();
        let metadata: ToolMetadata<'_> = fields::read(state.metadata);
        // A command that fails has the state `completed` too.
        let exit: Option<i64> = fields::number(metadata.exit);
        let failed = fields::text(state.status).as_deref() == Some("error");
        let is_error = failed || tool == INVALID_TOOL || exit.is_some_and(|code| code != 0);
        let input = fields::tool_input(state.input);
        self.conversation.call(ToolCall { call: id.clone(), tool, input, parent_call: None }, said);
        let content = if failed { state.error.or(state.output) } else { state.output };
        let content = fields::as_given(content);
        let patch = patches::of_opencode(state.metadata).filter(|_| !is_error);
        self.conversation
            .returned(ToolResult { call: id, content, is_error, parent_call: None, patch }, said);
    }

    fn step_finish(&mut self, part: &MessagePart<'_>, said: &mut Vec<Said>) {
        self.conversation.begin_turn(said);
        self.in_step = false;
        self.steps += 1;
        self.cost_usd += fields::number(part.cost).unwrap_or(0.0);
        self.tokens.add(fields::read(part.tokens));
        let stop_reason = fields::text(part.reason).map(Cow::into_owned);
        let ends = stop_reason.as_deref().is_some_and(|reason| !MORE_TO_COME.contains(&reason));
        let usage = fields::object(part.tokens).unwrap_or_else(|| JsonText::new_unchecked("{}"));
        said.push(Said::Event(EventBody::Usage(Box::new(Usage { stop_reason, usage }))));
        if ends {
            self.close(None, false, said);
        }
    }

    fn error(&mut self, error: Raw<'_>, said: &mut Vec<Said>) {
        let failure: Failure<'_> = fields::read(error);
        let name = fields::text(failure.name).unwrap_or_default();
        let error = error_of(&name, &fields::read(failure.data));
        if self.conversation.is_closed() {
            return self.conversation.tell(error, said);
        }
        self.close(Some(error), name == "MessageAbortedError", said);
    }

    fn close(&mut self, error: Option<AgentError>, interrupted: bool, said: &mut Vec<Said>) {
        let Self { conversation, steps, tokens, cost_usd, .. } = std::mem::take(self);
        self.conversation = conversation;
        let mut close = TurnClose { error, interrupted, ..TurnClose::default() };
        if 0 < steps {
            close.num_turns = Some(steps);
            close.cost_usd = Some(cost_usd);
            close.usage = serde_json::to_string(&tokens).ok().map(JsonText::new_unchecked);
        }
        self.conversation.close(close, said);
    }
}

impl Tokens {
    /// Adds the counts of a step. They come from the agent, so they may be too large to add without saturation.
    fn add(&mut self, step: Self) {
        self.total = self.total.saturating_add(step.total);
        self.input = self.input.saturating_add(step.input);
        self.output = self.output.saturating_add(step.output);
        self.reasoning = self.reasoning.saturating_add(step.reasoning);
        self.cache.write = self.cache.write.saturating_add(step.cache.write);
        self.cache.read = self.cache.read.saturating_add(step.cache.read);
    }
}

/// Classifies an error by its name if the name is known, otherwise by the HTTP status, otherwise by the text.
fn error_of(name: &str, data: &FailureData<'_>) -> AgentError {
    let text = fields::text(data.message).filter(|text| !text.is_empty());
    let mut error = errors::told(text.as_deref().unwrap_or(name));
    let by_name = match name {
        "ProviderAuthError" => Some(ErrorClass::Authentication),
        "MessageOutputLengthError" | "ContextOverflowError" => Some(ErrorClass::InvalidRequest),
        _ => None,
    };
    let by_status = || errors::of_status(fields::number(data.status)?);
    if let Some(class) = by_name.or_else(by_status) {
        error.class = class;
        error.recoverable = class.is_recoverable();
    }
    error.recoverable |= fields::is_true(data.is_retryable);
    error
}
