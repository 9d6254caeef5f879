//! The frames that WebSocket clients send.

use tokenrail_application::PermissionAnswer;
use tokenrail_domain::{AgentId, JsonText};
use uuid::Uuid;

use crate::error::{Code, Problem};
use crate::json::fields::Fields;
use crate::vocabularies::native::Dialect;
use crate::vocabularies::native::dto::permission::reply;

/// A frame from a WebSocket client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientFrame {
    Subscribe(Subscribe),
    Unsubscribe {
        agent: AgentId,
    },
    MessageStatus(AskedStatus),
    /// An answer to a permission request of an agent.
    Permission {
        agent: AgentId,
        answer: PermissionAnswer,
    },
    Ping,
}

/// A request for the current state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AskedStatus {
    pub(crate) message: Uuid,
    /// The agent that sent the message, if the client names it.
    pub(crate) agent: Option<AgentId>,
}

/// A request to follow an agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subscribe {
    pub(crate) agent: AgentId,
    pub(crate) since: Option<u64>,
    pub(crate) raw: bool,
    /// Whether deltas are packed. `None`: as set for the connection.
    pub(crate) packed: Option<bool>,
    pub(crate) dialect: Option<Dialect>,
}

/// The problem with a frame from a client, and the agent that the frame names, if any.
#[derive(Debug)]
pub(crate) struct Mistake {
    /// Boxed, so that a result without a problem stays small.
    pub(crate) problem: Box<Problem>,
    pub(crate) agent: Option<AgentId>,
}

impl Mistake {
    pub(crate) fn new(problem: Problem, agent: Option<AgentId>) -> Self {
        Self { problem: Box::new(problem), agent }
    }
}

/// Reads a frame from a WebSocket client.
pub(crate) fn client_frame(body: &[u8], depth: usize) -> Result<ClientFrame, Mistake> {
    let nobody = |problem| Mistake::new(problem, None);
    let mut frame = Fields::read(body, depth).map_err(nobody)?;
    let kind = frame.required_text("type", |_| None);
    let payload = frame.object("payload");
    frame.finish().map_err(nobody)?;
    let payload = payload.as_ref().map_or("{}", JsonText::as_str);
    match kind.as_str() {
        "subscribe" => subscribe(payload.as_bytes(), depth).map(ClientFrame::Subscribe),
        "unsubscribe" => {
            unsubscribe(payload.as_bytes(), depth).map(|agent| ClientFrame::Unsubscribe { agent })
        }
        "ping" => Ok(ClientFrame::Ping),
        "permission" => permission(payload.as_bytes(), depth),
        "message.status" => message_status(payload.as_bytes(), depth).map(ClientFrame::MessageStatus),
        other => Err(nobody(Problem::field("type", advice(other)))),
    }
}

/// Returns what to do instead of sending a frame of a type that clients do not send.
fn advice(kind: &str) -> &'static str {
    match kind {
        "message.new" | "message.start" | "message.chunk" | "message.end" => {
            "only the server sends this frame; to send a message, use POST /api/agents/{agentId}/messages"
        }
        "agent:send" | "agent:message" => "to send a message, use POST /api/agents/{agentId}/messages",
        "agent:cancel" | "agent:cancelled" => "to cancel, use POST /api/agents/{agentId}/cancel",
        _ => "must be one of: subscribe, unsubscribe, message.status, permission, ping",
    }
}

fn message_status(payload: &[u8], depth: usize) -> Result<AskedStatus, Mistake> {
    let mut fields = Fields::read(payload, depth).map_err(|problem| Mistake::new(problem, None))?;
    let message = fields.required_text("messageId", |_| None);
    let named = fields.text("agentId", |_| None);
    let agent = named.as_ref().and_then(|agent| agent.parse().ok());
    fields.finish().map_err(|problem| Mistake::new(problem, agent))?;
    if named.is_some() && agent.is_none() {
        return Err(Mistake::new(unknown_agent(), None));
    }
    // A malformed id is as unknown as any other.
    match Uuid::try_parse(&message) {
        Ok(id) if message.len() == 36 => Ok(AskedStatus { message: id, agent }),
        _ => Err(Mistake::new(unknown_message(), agent)),
    }
}

fn permission(payload: &[u8], depth: usize) -> Result<ClientFrame, Mistake> {
    let mut fields = Fields::read(payload, depth).map_err(|problem| Mistake::new(problem, None))?;
    let agent = fields.agent();
    let request_id = fields.required_text("requestId", |_| None);
    let reply = reply(&mut fields);
    fields.finish().map_err(|problem| Mistake::new(problem, agent))?;
    let agent = agent.ok_or_else(|| Mistake::new(unknown_agent(), None))?;
    Ok(ClientFrame::Permission { agent, answer: PermissionAnswer { request_id, reply } })
}

/// Reads the payload of `unsubscribe`.
pub(crate) fn unsubscribe(payload: &[u8], depth: usize) -> Result<AgentId, Mistake> {
    let mut fields = Fields::read(payload, depth).map_err(|problem| Mistake::new(problem, None))?;
    let agent = fields.agent();
    fields.finish().map_err(|problem| Mistake::new(problem, agent))?;
    agent.ok_or_else(|| Mistake::new(unknown_agent(), None))
}

/// Reads the payload of `subscribe`.
pub(crate) fn subscribe(payload: &[u8], depth: usize) -> Result<Subscribe, Mistake> {
    let mut fields = Fields::read(payload, depth).map_err(|problem| Mistake::new(problem, None))?;
    let agent = fields.agent();
    let since = fields.cursor("since");
    let raw = fields.flag("raw").unwrap_or(false);
    let packed = fields.flag("packed");
    let dialect = fields.text("dialect", |_| None);
    fields.finish().map_err(|problem| Mistake::new(problem, agent))?;
    let agent = agent.ok_or_else(|| Mistake::new(unknown_agent(), None))?;
    let since = since.map_err(|problem| Mistake::new(problem, Some(agent)))?;
    let dialect = dialect
        .map(|name| Dialect::from_name(&name))
        .transpose()
        .map_err(|problem| Mistake::new(problem, Some(agent)))?;
    Ok(Subscribe { agent, since, raw, packed, dialect })
}

pub(crate) fn unknown_agent() -> Problem {
    Problem::new(Code::NotFound, "no such agent")
}

pub(crate) fn unknown_message() -> Problem {
    Problem::new(Code::NotFound, "no such message")
}
