//! What WebSocket clients say.

use tokenrail_domain::{AgentId, JsonText};

use crate::dialect::Dialect;
use crate::dto::fields::Fields;
use crate::error::{Code, Problem};

/// What a client says over a WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientFrame {
    Subscribe(Subscribe),
    Unsubscribe { agent: AgentId },
    Ping,
}

/// A wish to follow an agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subscribe {
    pub(crate) agent: AgentId,
    pub(crate) since: Option<u64>,
    pub(crate) raw: bool,
    pub(crate) dialect: Option<Dialect>,
}

/// What is wrong with a frame from a client, and the agent that it is about, where one is named.
#[derive(Debug)]
pub(crate) struct Mistake {
    /// Boxed, so that an answer stays small where all is well.
    pub(crate) problem: Box<Problem>,
    pub(crate) agent: Option<AgentId>,
}

impl Mistake {
    fn new(problem: Problem, agent: Option<AgentId>) -> Self {
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
            let mut fields = Fields::read(payload.as_bytes(), depth).map_err(nobody)?;
            let agent = fields.agent();
            fields.finish().map_err(|problem| Mistake::new(problem, agent))?;
            agent
                .map(|agent| ClientFrame::Unsubscribe { agent })
                .ok_or_else(|| Mistake::new(unknown_agent(), None))
        }
        "ping" => Ok(ClientFrame::Ping),
        _ => Err(Mistake::new(Problem::field("type", "one of: subscribe, unsubscribe, ping"), None)),
    }
}

fn subscribe(payload: &[u8], depth: usize) -> Result<Subscribe, Mistake> {
    let mut fields = Fields::read(payload, depth).map_err(|problem| Mistake::new(problem, None))?;
    let agent = fields.agent();
    let since = fields.cursor("since");
    let raw = fields.flag("raw").unwrap_or(false);
    let dialect = fields.text("dialect", |_| None);
    fields.finish().map_err(|problem| Mistake::new(problem, agent))?;
    let agent = agent.ok_or_else(|| Mistake::new(unknown_agent(), None))?;
    let since = since.map_err(|problem| Mistake::new(problem, Some(agent)))?;
    let dialect = dialect
        .map(|name| Dialect::named(&name))
        .transpose()
        .map_err(|problem| Mistake::new(problem, Some(agent)))?;
    Ok(Subscribe { agent, since, raw, dialect })
}

fn unknown_agent() -> Problem {
    Problem::new(Code::NotFound, "there is no such agent")
}
