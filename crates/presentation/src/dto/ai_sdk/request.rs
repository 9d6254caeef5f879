//! What clients of the AI SDK send.

use serde::Deserialize;
use tokenrail_domain::AgentId;

use crate::dto::fields::Fields;
use crate::error::Problem;

/// Characters of a client's own id of a conversation, a message or a request.
const ID_CHARS: usize = 255;

/// A message of a chat that is to be answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChatRequest {
    /// The client's id of the conversation.
    pub(crate) chat: Option<String>,
    /// The agent that said the newest answer in it, where that came from here.
    pub(crate) agent: Option<AgentId>,
    pub(crate) saying: Saying,
}

/// What is said: the newest message of the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Saying {
    pub(crate) prompt: String,
    /// The client's id of the message.
    pub(crate) id: Option<String>,
    /// The answer is asked for again; of this message, where the client says so.
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

#[derive(Deserialize)]
struct UiMessage {
    id: Option<String>,
    role: String,
    parts: Option<Vec<UiPart>>,
    /// As older clients and people with `curl` write it.
    content: Option<String>,
    #[serde(default)]
    metadata: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct UiPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// Reads the body of a request for an answer. Names that are not known are ignored: clients add their own.
pub(crate) fn chat_request(body: &[u8], depth: usize) -> Result<ChatRequest, Problem> {
    request(&mut Fields::read(body, depth)?)
}

#[expect(
    clippy::result_large_err,
    reason = "a frame that is refused is rare, and nothing is done but to tell it"
)]
/// Reads a frame. The problem comes with the id of the request, where it has one that can be read.
pub(crate) fn chat_frame(text: &[u8], depth: usize) -> Result<ChatFrame, (Option<String>, Problem)> {
    let mut fields = Fields::read(text, depth).map_err(|problem| (None, problem))?;
    let kind = fields.required_text("type", |_| None);
    let id = fields.required_text("requestId", is_id);
    fields.check().map_err(|problem| (None, problem))?;
    let frame = match kind.as_str() {
        "send" => {
            request(&mut fields).map(|chat| ChatFrame::Send { request: id.clone(), chat: Box::new(chat) })
        }
        "resume" => resume(&mut fields, id.clone()),
        "abort" => return Ok(ChatFrame::Abort { request: id }),
        _ => return Err((None, Problem::field("type", "one of: send, resume, abort"))),
    };
    frame.map_err(|problem| (Some(id), problem))
}

fn resume(fields: &mut Fields, request: String) -> Result<ChatFrame, Problem> {
    fields.forget_nulls();
    let chat = fields.required_text("id", is_id);
    let last_sequence = fields.number("lastSequence");
    fields.check()?;
    Ok(ChatFrame::Resume { request, chat, last_sequence })
}

fn request(fields: &mut Fields) -> Result<ChatRequest, Problem> {
    fields.forget_nulls();
    let chat = fields.text("id", is_id);
    let trigger = fields.text("trigger", |trigger| {
        (!matches!(trigger, "submit-message" | "regenerate-message"))
            .then_some("one of: submit-message, regenerate-message")
    });
    let of = fields.text("messageId", |_| None);
    let messages: Vec<UiMessage> = fields.list("messages").unwrap_or_default();
    fields.check()?;
    let missing = || Problem::field("messages", "must hold a message of the user");
    let said = messages.iter().rposition(|message| message.role == "user").ok_or_else(missing)?;
    let regenerate = trigger.is_some_and(|trigger| trigger == "regenerate-message").then_some(of);
    let agent = messages.iter().rev().find_map(|message| {
        let agent = message.metadata.as_ref()?.get("agentId")?.as_str()?;
        (message.role == "assistant").then_some(agent)?.parse().ok()
    });
    let saying = Saying { prompt: prompt(said, &messages[said])?, id: messages[said].id.clone(), regenerate };
    Ok(ChatRequest { chat, agent, saying })
}

/// The text of a message. What is no text would be lost, so it is refused.
fn prompt(index: usize, message: &UiMessage) -> Result<String, Problem> {
    let wrong = |detail| Problem::field(&format!("messages/{index}"), detail);
    if message.id.as_deref().is_some_and(|id| is_id(id).is_some()) {
        return Err(wrong("its id must be 1 to 255 characters long"));
    }
    let mut texts: Vec<&str> = message.content.as_deref().into_iter().collect();
    if let Some(parts) = &message.parts {
        if parts.iter().any(|part| part.kind == "file") {
            return Err(wrong("files are not taken: send text"));
        }
        let spoken = parts.iter().filter(|part| part.kind == "text");
        texts = spoken.filter_map(|part| part.text.as_deref()).collect();
    }
    let prompt = texts.join("\n");
    if prompt.trim().is_empty() { Err(wrong("must have a text that is not blank")) } else { Ok(prompt) }
}

fn is_id(id: &str) -> Option<&'static str> {
    let good = (1..=ID_CHARS).contains(&id.chars().count());
    (!good).then_some("must be 1 to 255 characters long")
}
