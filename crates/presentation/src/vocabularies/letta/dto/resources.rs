//! Agents, conversations, runs and models in Letta's format. Fields for which Tokenrail has no value are empty.

use serde::Serialize;
use tokenrail_application::TypeInfo;
use tokenrail_domain::{Agent, Turn, TurnState};
use utoipa::ToSchema;

use crate::json::{IsoTime, Json};

/// The version of Letta's own server whose protocol this is.
const VERSION: &str = "0.16.8";
/// The context window that is reported for every model, in tokens. Tokenrail does not know the real one.
const CONTEXT_WINDOW: u32 = 200_000;

/// A list that is always empty.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = LettaNothing, value_type = Vec<Object>)]
struct Nothing([(); 0]);

const NOTHING: Nothing = Nothing([]);

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaHealth)]
pub(crate) struct HealthDto {
    status: &'static str,
    version: &'static str,
}

impl HealthDto {
    pub(crate) fn new() -> Self {
        Self { status: "ok", version: VERSION }
    }
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaAgent)]
pub(crate) struct LettaAgentDto<'a> {
    id: String,
    name: String,
    agent_type: &'static str,
    system: &'static str,
    description: Option<&'a str>,
    model: &'a str,
    embedding: Option<&'a str>,
    llm_config: LlmConfig<'a>,
    memory: Memory,
    blocks: Nothing,
    tools: Nothing,
    tags: Nothing,
    sources: Nothing,
    secrets: Nothing,
    tool_rules: Nothing,
    identities: Nothing,
    identity_ids: Nothing,
    message_ids: Nothing,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json<'a>>,
    timezone: &'static str,
    #[schema(value_type = String, format = DateTime)]
    created_at: IsoTime,
    #[schema(value_type = String, format = DateTime)]
    updated_at: IsoTime,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_run_completion: Option<IsoTime>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaMemory)]
struct Memory {
    blocks: Nothing,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaLlmConfig)]
struct LlmConfig<'a> {
    model: &'a str,
    handle: &'a str,
    model_endpoint_type: &'static str,
    context_window: u32,
}

impl<'a> LlmConfig<'a> {
    fn new(kind: &'a str) -> Self {
        Self { model: kind, handle: kind, model_endpoint_type: "anthropic", context_window: CONTEXT_WINDOW }
    }
}

impl<'a> From<&'a Agent> for LettaAgentDto<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self {
            id: format!("agent-{}", agent.id),
            name: agent.name.clone().unwrap_or_else(|| agent.kind.clone()),
            agent_type: "letta_v1_agent",
            system: "",
            description: None,
            model: &agent.kind,
            embedding: None,
            llm_config: LlmConfig::new(&agent.kind),
            memory: Memory { blocks: NOTHING },
            blocks: NOTHING,
            tools: NOTHING,
            tags: NOTHING,
            sources: NOTHING,
            secrets: NOTHING,
            tool_rules: NOTHING,
            identities: NOTHING,
            identity_ids: NOTHING,
            message_ids: NOTHING,
            metadata: agent.metadata.as_ref().map(Json),
            timezone: "UTC",
            created_at: IsoTime(agent.created_at),
            updated_at: IsoTime(agent.updated_at),
            last_run_completion: agent.ended_at.map(IsoTime),
        }
    }
}

/// A conversation. Each agent is one conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaConversation)]
pub(crate) struct ConversationDto<'a> {
    id: String,
    agent_id: String,
    summary: Option<&'a str>,
    model: &'a str,
    in_context_message_ids: Nothing,
    #[schema(value_type = String, format = DateTime)]
    created_at: IsoTime,
    #[schema(value_type = String, format = DateTime)]
    updated_at: IsoTime,
}

impl<'a> From<&'a Agent> for ConversationDto<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self {
            id: format!("conv-{}", agent.id),
            agent_id: format!("agent-{}", agent.id),
            summary: agent.name.as_deref(),
            model: &agent.kind,
            in_context_message_ids: NOTHING,
            created_at: IsoTime(agent.created_at),
            updated_at: IsoTime(agent.updated_at),
        }
    }
}

/// The possible statuses of a run.
pub(crate) const RUN_STATUSES: [&str; 5] = ["created", "running", "completed", "failed", "cancelled"];

/// A run, which is a turn of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaRun)]
pub(crate) struct RunDto {
    id: String,
    agent_id: String,
    conversation_id: String,
    background: bool,
    pub(crate) status: &'static str,
    pub(crate) stop_reason: Option<&'static str>,
    #[schema(value_type = String, format = DateTime)]
    created_at: IsoTime,
    #[schema(value_type = Option<String>, format = DateTime)]
    completed_at: Option<IsoTime>,
}

impl RunDto {
    /// `end`: the run's stop reason and the time of its end.
    pub(crate) fn new(id: String, turn: &Turn, end: Option<(&'static str, IsoTime)>) -> Self {
        let status = match (turn.state, end) {
            (TurnState::Queued, _) => "created",
            (TurnState::Running, _) => "running",
            (TurnState::Ended(_), Some(("cancelled", _))) => "cancelled",
            (TurnState::Ended(_), Some(("error", _))) => "failed",
            (TurnState::Ended(_), _) => "completed",
        };
        Self {
            id,
            agent_id: format!("agent-{}", turn.agent),
            conversation_id: format!("conv-{}", turn.agent),
            // A run continues if its client disconnects, unless the client asked to cancel it.
            background: true,
            status,
            stop_reason: end.map(|(stop_reason, _)| stop_reason),
            created_at: IsoTime(turn.asked_at),
            completed_at: end.map(|(_, at)| at),
        }
    }
}

/// A model. Letta clients choose the agent type as the model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LettaModel)]
pub(crate) struct ModelDto<'a> {
    name: &'a str,
    display_name: &'a str,
    provider_name: &'static str,
    provider_type: &'static str,
    model_type: &'static str,
    max_context_window: u32,
    #[serde(flatten)]
    config: LlmConfig<'a>,
}

impl<'a> From<&'a TypeInfo> for ModelDto<'a> {
    fn from(info: &'a TypeInfo) -> Self {
        Self {
            name: &info.name,
            display_name: &info.name,
            provider_name: "tokenrail",
            provider_type: "anthropic",
            model_type: "llm",
            max_context_window: CONTEXT_WINDOW,
            config: LlmConfig::new(&info.name),
        }
    }
}
