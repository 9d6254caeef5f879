//! What Letta's clients send. Fields that Tokenrail does not use are ignored: tools, skills, memory.

use serde::Deserialize;
use tokenrail_application::Launch;
use utoipa::ToSchema;

use crate::error::Problem;
use crate::json::fields::Fields;

/// The maximum length of a name, in characters.
const NAME_CHARS: usize = 200;

/// A message to an agent, and the form of the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) prompt: String,
    /// The answer to a permission request. If it is present, the message has no prompt.
    pub(crate) approval: Option<Approval>,
    /// The client's own id of the message. A second message with this id is the same message.
    pub(crate) otid: Option<String>,
    /// The agent, if the path does not name it.
    pub(crate) agent: Option<String>,
    pub(crate) streaming: Option<bool>,
    pub(crate) tokens: bool,
    pub(crate) pings: bool,
    pub(crate) cancel_on_disconnect: bool,
}

/// The answer to a permission request for a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approval {
    call: Option<String>,
    /// The message that contains the permission request.
    asked_by: Option<String>,
    pub(crate) approve: bool,
    /// What the user says to a rejection.
    pub(crate) reason: Option<String>,
}

impl Approval {
    /// Whether this answers the permission request in this message about this tool call.
    pub(crate) fn is_about(&self, message: &str, call: &str) -> bool {
        match &self.call {
            Some(named) => named == call,
            None => self.asked_by.as_deref() == Some(message),
        }
    }
}

/// A request to resume the stream of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Resume {
    pub(crate) run: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) after: Option<u64>,
    pub(crate) tokens: Option<bool>,
    pub(crate) pings: Option<bool>,
}

#[derive(Deserialize)]
struct Incoming {
    role: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    content: Option<Content>,
    otid: Option<String>,
    approvals: Option<Vec<Decision>>,
    approve: Option<bool>,
    approval_request_id: Option<String>,
    reason: Option<String>,
}

/// The decision about one tool call. Clients send the results of client-side tools in the same list.
#[derive(Deserialize)]
struct Decision {
    tool_call_id: Option<String>,
    approve: Option<bool>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
}

/// A message: in `messages`, in `input`, or as `role` and `content`. Other fields are ignored.
#[derive(ToSchema)]
#[schema(as = LettaMessageRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct LettaMessageBody {
    /// Items `{role, content, otid?}` with the role `user` or `system`; or a single item `{type: "approval", approvals:
    /// [{tool_call_id, approve}]}`.
    #[schema(value_type = Option<Vec<Object>>)]
    messages: (),
    /// A string, or parts of type `text`.
    #[schema(value_type = serde_json::Value, required = false)]
    input: (),
    role: Option<String>,
    /// A string, or parts of type `text`.
    #[schema(value_type = serde_json::Value, required = false)]
    content: (),
    /// The agent, if the path does not name it.
    agent_id: Option<String>,
    /// Whether to stream the response.
    streaming: Option<bool>,
    /// Whether to stream pieces instead of whole items.
    stream_tokens: Option<bool>,
    include_pings: Option<bool>,
    cancel_on_disconnect: Option<bool>,
}

/// A request to resume the stream of a run.
#[derive(ToSchema)]
#[schema(as = LettaStreamRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct LettaResumeBody {
    /// For a conversation: the run to resume. Default: the newest run.
    run_id: Option<String>,
    agent_id: Option<String>,
    /// The last `seq_id` that the client has.
    #[schema(minimum = 0)]
    starting_after: Option<u64>,
    stream_tokens: Option<bool>,
    include_pings: Option<bool>,
}

/// The runs to cancel. Default: all open runs.
#[derive(ToSchema)]
#[schema(as = LettaCancelRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct LettaCancelBody {
    run_ids: Option<Vec<String>>,
    agent_id: Option<String>,
}

/// An agent to create. Other fields are ignored.
#[derive(ToSchema)]
#[schema(as = LettaAgentRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct LettaAgentBody {
    #[schema(max_length = 200)]
    name: Option<String>,
    /// The agent type, or `type/model`; any other handle leaves the choice to the server.
    model: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: (),
}

/// Reads a message in each of its forms: `{messages}`, `{input}`, `{role, content}`.
pub(crate) fn message(body: &[u8], depth: usize) -> Result<Message, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let content = "must be a string or a list of parts of the type text";
    let messages: Option<Vec<Incoming>> = fields.optional("messages", "must be a list of messages");
    let input: Option<Content> = fields.optional("input", content);
    let bare = Incoming {
        role: fields.optional("role", "must be a string"),
        kind: None,
        content: fields.optional("content", content),
        otid: fields.optional("otid", "must be a string"),
        approvals: None,
        approve: None,
        approval_request_id: None,
        reason: None,
    };
    let field = if messages.is_some() {
        "messages"
    } else if input.is_some() {
        "input"
    } else {
        "content"
    };
    let input = Incoming { content: input.or(bare.content), ..bare };
    let messages = messages.unwrap_or_else(|| vec![input]);
    let approval = approval(&messages);
    let said = if approval.is_some() { Ok((String::new(), None)) } else { said(messages) };
    let (prompt, otid) = said.unwrap_or_else(|wrong| {
        // A malformed field is not reported as missing too.
        if fields.are_good() {
            fields.refuse(field, wrong);
        }
        (String::new(), None)
    });
    let flag = "must be true or false";
    let message = Message {
        prompt,
        approval,
        otid,
        agent: fields.optional("agent_id", "must be a string"),
        streaming: fields.optional("streaming", flag),
        tokens: fields.optional("stream_tokens", flag).unwrap_or(false),
        pings: fields.optional("include_pings", flag).unwrap_or(false),
        cancel_on_disconnect: fields
            .optional("cancel_on_disconnect", flag)
            .or_else(|| fields.optional("cancelOnDisconnect", flag))
            .unwrap_or(false),
    };
    fields.finish()?;
    Ok(message)
}

/// Reads the answer to a permission request. `None` unless the request contains only that, for one tool call.
fn approval(messages: &[Incoming]) -> Option<Approval> {
    let [Incoming { kind, approvals, approve, approval_request_id, reason, .. }] = messages else {
        return None;
    };
    if kind.as_deref() != Some("approval") {
        return None;
    }
    let asked_by = approval_request_id.clone();
    match approvals.as_deref() {
        Some([Decision { tool_call_id: Some(call), approve: Some(approve), reason }]) => {
            Some(Approval { call: Some(call.clone()), asked_by, approve: *approve, reason: reason.clone() })
        }
        None => {
            let (asked_by, reason) = (Some(asked_by?), reason.clone());
            Some(Approval { call: None, asked_by, approve: (*approve)?, reason })
        }
        Some(_) => None,
    }
}

/// Returns the text of the messages, and the id of the last message that has one.
fn said(messages: Vec<Incoming>) -> Result<(String, Option<String>), &'static str> {
    let (mut texts, mut id) = (Vec::new(), None);
    for Incoming { role, kind, content, otid, .. } in messages {
        if !matches!(kind.as_deref(), None | Some("message")) {
            return Err(
                "only messages and the approval of one tool call are supported; client-side tools are not",
            );
        }
        if !matches!(role.as_deref(), None | Some("user" | "system")) {
            return Err("the role must be user or system");
        }
        match content {
            Some(Content::Text(text)) => texts.push(text),
            Some(Content::Parts(parts)) => {
                for ContentPart { kind, text } in parts {
                    match (kind.as_deref(), text) {
                        (None | Some("text"), Some(text)) => texts.push(text),
                        _ => return Err("only parts of the type text are supported"),
                    }
                }
            }
            None => return Err("must be present"),
        }
        id = otid.or(id);
    }
    let prompt = texts.join("\n\n");
    if prompt.trim().is_empty() { Err("must contain text") } else { Ok((prompt, id)) }
}

/// Reads a request to resume a stream. The body may be absent.
pub(crate) fn resume(body: Option<&[u8]>, depth: usize) -> Result<Resume, Problem> {
    let Some(body) = body else { return Ok(Resume::default()) };
    let mut fields = Fields::read(body, depth)?;
    let (text, flag) = ("must be a string", "must be true or false");
    let resume = Resume {
        run: fields.optional("run_id", text),
        agent: fields.optional("agent_id", text),
        after: fields.optional("starting_after", "must be a whole number, 0 or greater"),
        tokens: fields.optional("stream_tokens", flag),
        pings: fields.optional("include_pings", flag),
    };
    fields.finish()?;
    Ok(resume)
}

/// Reads which runs to cancel, and the agent. Each is `None` if the body does not name it.
pub(crate) fn named_runs(
    body: Option<&[u8]>,
    depth: usize,
) -> Result<(Option<Vec<String>>, Option<String>), Problem> {
    let Some(body) = body else { return Ok((None, None)) };
    let mut fields = Fields::read(body, depth)?;
    let runs = fields.optional("run_ids", "must be a list of strings");
    let agent = fields.optional("agent_id", "must be a string");
    fields.finish()?;
    Ok((runs, agent))
}

/// Reads an agent to create: a launch without a prompt, and the handle of its model.
pub(crate) fn created(body: Option<&[u8]>, depth: usize) -> Result<(Launch, Option<String>), Problem> {
    let Some(body) = body else { return Ok((Launch::default(), None)) };
    let mut fields = Fields::read(body, depth)?;
    let name: Option<String> = fields.optional("name", "must be a string");
    if name.as_ref().is_some_and(|name| NAME_CHARS < name.chars().count()) {
        fields.refuse("name", "must be at most 200 characters long");
    }
    let model = fields.optional("model", "must be a string");
    let metadata = fields.optional_object("metadata");
    fields.finish()?;
    Ok((Launch { name, metadata, ..Launch::default() }, model))
}
