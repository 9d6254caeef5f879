//! The requests of AI SDK clients.

use serde_json::value::RawValue;
use tokenrail_domain::AgentId;
use utoipa::ToSchema;

use super::history::{self, History, SaidMessage};
use super::id::is_id;
use crate::error::Problem;
use crate::json::fields::Fields;

/// A request for a response in a chat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChatRequest {
    /// The client's id of the conversation.
    pub(crate) chat: Option<String>,
    /// The agent that the newest response names. Only responses of Tokenrail name one.
    pub(crate) agent: Option<AgentId>,
    pub(crate) saying: Saying,
}

/// The message to answer: the newest user message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Saying {
    pub(crate) prompt: String,
    /// The client's id of the message.
    pub(crate) id: Option<String>,
    /// `Some` if the client asks for another response. The inner value is the id of the response to regenerate, if the
    /// client names it.
    #[expect(clippy::option_option, reason = "again or not, and then of which message, if it is named")]
    pub(crate) regenerate: Option<Option<String>>,
}

/// A frame from a WebSocket client.
#[derive(Debug)]
pub(crate) enum ChatFrame {
    Send { request: String, chat: Box<ChatRequest> },
    Resume { request: String, chat: String, last_sequence: Option<u64> },
    Abort { request: String },
}

/// A frame that is refused.
#[derive(Debug)]
pub(crate) struct RefusedFrame {
    /// The id of its request. `None` if the frame has no valid id, or if its type is unknown.
    pub(crate) request: Option<String>,
    pub(crate) problem: Problem,
}

/// A request for a response, as the AI SDK sends it. Other fields are ignored.
#[derive(ToSchema)]
#[schema(as = ChatRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatBody {
    /// The client's id of the conversation; if omitted, the server creates one.
    #[schema(min_length = 1, max_length = 255, nullable = false)]
    id: Option<String>,
    /// The conversation so far, as UI messages. Only the newest user message is used.
    #[schema(value_type = Vec<Object>)]
    messages: (),
    #[schema(pattern = "^(submit|regenerate)-message$", nullable = false)]
    trigger: Option<String>,
    /// The message whose response is to be regenerated.
    #[schema(nullable = false)]
    message_id: Option<String>,
}

/// Reads the body of a request for a response. Unknown fields are ignored, because clients add their own. The newest
/// user message has at most `message_bytes` bytes.
pub(crate) fn chat_request(body: &[u8], message_bytes: usize) -> Result<ChatRequest, Problem> {
    let (mut fields, messages) = Fields::pick(body, &["id", "trigger", "messageId"], "messages")?;
    request(&mut fields, messages, message_bytes)
}

/// Reads a frame.
pub(crate) fn chat_frame(text: &[u8], message_bytes: usize) -> Result<ChatFrame, Box<RefusedFrame>> {
    let refused = |request, problem| Box::new(RefusedFrame { request, problem });
    let wanted = ["type", "requestId", "id", "trigger", "messageId", "lastSequence"];
    let (mut fields, messages) =
        Fields::pick(text, &wanted, "messages").map_err(|problem| refused(None, problem))?;
    let kind = fields.required_text("type", |_| None);
    let id = fields.required_text("requestId", is_id);
    fields.check().map_err(|problem| refused(None, problem))?;
    let frame = match kind.as_str() {
        "send" => request(&mut fields, messages, message_bytes)
            .map(|chat| ChatFrame::Send { request: id.clone(), chat: Box::new(chat) }),
        "resume" => resume(&mut fields, id.clone()),
        "abort" => return Ok(ChatFrame::Abort { request: id }),
        _ => return Err(refused(None, Problem::field("type", "must be one of: send, resume, abort"))),
    };
    frame.map_err(|problem| refused(Some(id), problem))
}

fn resume(fields: &mut Fields, request: String) -> Result<ChatFrame, Problem> {
    fields.forget_nulls();
    let chat = fields.required_text("id", is_id);
    let last_sequence = fields.number("lastSequence");
    fields.check()?;
    Ok(ChatFrame::Resume { request, chat, last_sequence })
}

fn request(
    fields: &mut Fields,
    messages: Option<&RawValue>,
    message_bytes: usize,
) -> Result<ChatRequest, Problem> {
    fields.forget_nulls();
    let chat = fields.text("id", is_id);
    let trigger = fields.text("trigger", |trigger| {
        (!matches!(trigger, "submit-message" | "regenerate-message"))
            .then_some("must be one of: submit-message, regenerate-message")
    });
    let of = fields.text("messageId", is_id);
    let messages = messages.filter(|messages| messages.get() != "null");
    if messages.is_none() {
        fields.refuse("messages", "must be present");
    }
    fields.check()?;
    let history = messages.map(|messages| history::read(messages, of.as_deref())).transpose()?;
    let History { said, agent, is_of_user } = history.unwrap_or_default();
    let Some((index, said)) = said else {
        return Err(Problem::field("messages", "must contain a user message"));
    };
    // A client may name the user message instead of the response. It then gets a new response each time it asks.
    let of = of.filter(|_| !is_of_user);
    let regenerate = trigger.is_some_and(|trigger| trigger == "regenerate-message").then_some(of);
    let SaidMessage { id, prompt } = history::said(index, said, message_bytes)?;
    Ok(ChatRequest { chat, agent, saying: Saying { prompt, id, regenerate } })
}
