//! Agents, and the short answers.

#[cfg(test)]
use super::declarations::Declarations;
use serde::Serialize;
use tokenrail_application::{Accepted, Needs, NodeState, NodeView};
use tokenrail_domain::{Agent, AgentId, AgentStatus, Copied, ListedAgent, LongField};
use utoipa::ToSchema;

use crate::json::{AgentErrorDto, IdText, IsoTime, Json};

/// One conversation with one agent program.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Agent)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Agent", optional_fields))]
pub(crate) struct AgentDto<'a> {
    #[schema(value_type = String, format = "uuid")]
    id: IdText,
    /// The same as `id`.
    #[schema(value_type = String, format = "uuid")]
    agent_id: IdText,
    /// The configured agent type.
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<&'a str>,
    /// The client's own id of this conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    chat_id: Option<&'a str>,
    /// `initializing`, `running`, `completed`, `failed`, `cancelled` or `interrupted`.
    #[cfg_attr(test, ts(type = "AgentStatus"))]
    status: &'static str,
    /// How many permission requests of the agent are open: it waits for their answers.
    open_questions: usize,
    /// When the oldest of them was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    waiting_since: Option<IsoTime>,
    /// The prompt of the first turn; in a list, its beginning.
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    model: Option<&'a str>,
    cwd: &'a str,
    /// The agent program's own conversation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session_id: Option<&'a str>,
    /// The name of the node that has the agent's folder and runs its turns. Absent if the database is not shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    node: Option<String>,
    /// `away`, `lost` or `gone`; absent if the node is alive. If `lost` or `gone`, the agent accepts no messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(type = "Exclude<NodeState, \"alive\">", optional))]
    node_state: Option<&'static str>,
    /// The newest turn that has started.
    turn: u32,
    /// How many turns are queued.
    queued: u32,
    /// The number of the newest event.
    head: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: IsoTime,
    #[schema(value_type = String, format = DateTime)]
    updated_at: IsoTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    ended_at: Option<IsoTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    deleted_at: Option<IsoTime>,
    /// Whether it is pinned: the page shows it before the other agents.
    pinned: bool,
    /// Whether it is archived: lists leave it out. It is unarchived if it gets a message or asks for permission.
    archived: bool,
    /// Why the newest turn failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<AgentErrorDto<'a>>,
    /// Token usage of the newest turn, as the agent gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    usage: Option<Json<'a>>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cost_usd: Option<f64>,
    /// The metadata of the launch, as the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    metadata: Option<Json<'a>>,
    /// The options of the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    options: Option<Json<'a>>,
    cancel_on_disconnect: bool,
    /// `true` if the agent is imported or a replay: it accepts no messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    read_only: Option<bool>,
    /// The agent whose history it replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    replay_of: Option<IdText>,
    /// The agent that launched this one, if an agent did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    launched_by: Option<IdText>,
    /// The depth of that launch: 1 if the parent was not launched by an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    launch_depth: Option<u32>,
    /// In a list: the fields that are longer than `limits.list_field_bytes`. `name`, `prompt`, `model`, `cwd` and the
    /// `message` of `error` are cut; other fields are left out. `GET /api/agents/{id}` returns all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    truncated: Vec<&'static str>,
}

fn name_of(field: LongField) -> &'static str {
    match field {
        LongField::Name => "name",
        LongField::Prompt => PROMPT,
        LongField::Model => "model",
        LongField::Cwd => "cwd",
        LongField::Error => "error",
        LongField::Chat => "chatId",
        LongField::Session => "sessionId",
        LongField::Usage => "usage",
        LongField::Metadata => "metadata",
        LongField::Options => "options",
    }
}

/// The one field of a turn that may be cut in a list.
pub(super) const PROMPT: &str = "prompt";

impl<'a> AgentDto<'a> {
    /// An agent in a list.
    pub(crate) fn listed(listed: &'a ListedAgent, needs: Needs, home: Option<NodeView>) -> Self {
        let ListedAgent { agent, truncated } = listed;
        let truncated = truncated.iter().map(|field| name_of(*field)).collect();
        Self { truncated, ..Self::new(agent, needs, home) }
    }

    /// `home` is the agent's node. `None` if the database is not shared.
    pub(crate) fn new(agent: &'a Agent, needs: Needs, home: Option<NodeView>) -> Self {
        let node_state = home.as_ref().map(|home| home.node.state).filter(|state| *state != NodeState::Alive);
        Self {
            id: agent.id.into(),
            agent_id: agent.id.into(),
            kind: &agent.kind,
            name: agent.name.as_deref(),
            chat_id: agent.chat.as_deref(),
            status: agent.status.as_str(),
            open_questions: needs.open_questions,
            waiting_since: needs.waiting_since.map(IsoTime),
            prompt: &agent.prompt,
            model: agent.model.as_deref(),
            cwd: &agent.cwd,
            session_id: agent.session.as_deref(),
            node: home.map(|home| home.node.name),
            node_state: node_state.map(NodeState::as_str),
            turn: agent.turn.0,
            queued: agent.queued,
            head: agent.head.0,
            created_at: IsoTime(agent.created_at),
            updated_at: IsoTime(agent.updated_at),
            ended_at: agent.ended_at.map(IsoTime),
            deleted_at: agent.deleted_at.map(IsoTime),
            pinned: agent.pinned,
            archived: agent.archived,
            error: agent.error.as_ref().map(AgentErrorDto::from),
            usage: agent.usage.as_ref().map(Json),
            cost_usd: agent.cost_usd,
            metadata: agent.metadata.as_ref().map(Json),
            options: agent.options.as_ref().map(Json),
            cancel_on_disconnect: agent.cancel_on_disconnect,
            read_only: agent.copy.map(|_| true),
            replay_of: match agent.copy {
                Some(Copied::Replay(replay)) => Some(replay.of.into()),
                Some(Copied::File) | None => None,
            },
            launched_by: agent.launched_by.map(|by| by.agent.into()),
            launch_depth: agent.launched_by.map(|by| by.depth),
            truncated: Vec::new(),
        }
    }
}

/// An agent and its status.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentState)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentState"))]
pub(crate) struct AgentStatusDto {
    #[schema(value_type = String, format = "uuid")]
    agent_id: IdText,
    #[cfg_attr(test, ts(type = "AgentStatus"))]
    status: &'static str,
}

impl AgentStatusDto {
    pub(crate) fn new(id: AgentId, status: AgentStatus) -> Self {
        Self { agent_id: id.into(), status: status.as_str() }
    }
}

/// A message that became a turn.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Accepted)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Accepted"))]
pub(crate) struct AcceptedDto {
    turn: u32,
    /// How many turns are queued, including this one.
    queued: u32,
}

impl From<Accepted> for AcceptedDto {
    fn from(accepted: Accepted) -> Self {
        let Accepted { turn, queued } = accepted;
        Self { turn: turn.0, queued }
    }
}

/// A ticket for a browser's WebSocket or `EventSource`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Ticket)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Ticket"))]
pub(crate) struct TicketDto<'a> {
    pub(crate) ticket: &'a str,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: IsoTime,
}

/// A one-time login code.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LoginCode)]
pub(crate) struct LoginCodeDto<'a> {
    pub(crate) code: &'a str,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: IsoTime,
}

/// The process of the server.
#[derive(Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ServerProcess", optional_fields))]
#[serde(rename_all = "camelCase")]
#[schema(as = ServerProcess)]
pub(crate) struct ServerDto {
    /// The id of the process. Absent if the client is on another machine, where it means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
}

/// The status of the server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServiceStatus)]
pub(crate) struct ServiceStatusDto {
    pub(crate) status: &'static str,
    /// Only `/readyz`, and only if several servers can share the database: `working`, or `polling` if hints of other
    /// servers do not arrive. Then the server asks the database more often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bell: Option<&'static str>,
}

/// The types that the client library knows.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<AgentDto<'_>>();
    out.of::<AgentStatusDto>();
    out.of::<AcceptedDto>();
    out.of::<super::agent_type::AbilitiesDto>();
    out.of::<super::agent_type::ImageLimitsDto>();
    out.of::<super::agent_type::AgentTypeDto<'_>>();
    out.of::<TicketDto<'_>>();
    out.of::<ServerDto>();
}
