//! The results of tools.

use serde::Serialize;
use serde_json::value::RawValue;
use tokenrail_application::{AnswerOutcome, TypeInfo};
use tokenrail_domain::{Agent, AgentId, AgentStatus, Sequence, TurnNumber, cut};

use super::entry::{AskedDto, EntryDto, FIELD_BYTES};
use super::resources::ready;
use crate::json::{IdText, IsoTime};

/// The tools with their schemas, as `tools/list` returns them.
const TOOLS: &str = include_str!("tools.json");

/// The maximum length of a prompt in lists and states.
const PROMPT_BYTES: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolName {
    ListAgentTypes,
    ListAgents,
    LaunchAgent,
    SendMessage,
    WaitForAgent,
    ReadAgent,
    ReadEntry,
    AnswerPermission,
    CancelAgent,
}

impl ToolName {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "list_agent_types" => Self::ListAgentTypes,
            "list_agents" => Self::ListAgents,
            "launch_agent" => Self::LaunchAgent,
            "send_message" => Self::SendMessage,
            "wait_for_agent" => Self::WaitForAgent,
            "read_agent" => Self::ReadAgent,
            "read_entry" => Self::ReadEntry,
            "answer_permission" => Self::AnswerPermission,
            "cancel_agent" => Self::CancelAgent,
            _ => return None,
        })
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AgentTypeList {
    agent_types: Vec<AgentTypeState>,
}

#[derive(Debug, Serialize)]
struct AgentTypeState {
    name: String,
    default: bool,
    available: bool,
    asks_permission: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl From<Vec<TypeInfo>> for AgentTypeList {
    fn from(types: Vec<TypeInfo>) -> Self {
        let agent_types = types.into_iter().map(|info| AgentTypeState {
            name: info.name,
            default: info.default,
            available: info.probe.problem.is_none(),
            asks_permission: info.abilities.permissions,
            problem: info.probe.problem,
        });
        Self { agent_types: agent_types.collect() }
    }
}

/// An agent as it is now.
#[derive(Debug, Serialize)]
pub(crate) struct AgentState {
    agent_id: IdText,
    agent_type: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The beginning of its first prompt.
    prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    cwd: String,
    /// The agent that has launched it.
    #[serde(skip_serializing_if = "Option::is_none")]
    launched_by: Option<IdText>,
    turn: u32,
    queued: u32,
    last_seq: u64,
    created_at: IsoTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<IsoTime>,
    /// Why its newest turn failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Agent> for AgentState {
    fn from(agent: Agent) -> Self {
        let mut prompt = agent.prompt;
        cut(&mut prompt, PROMPT_BYTES);
        let mut error = agent.error.map(|error| error.text);
        if let Some(error) = &mut error
            && cut(error, FIELD_BYTES)
        {
            error.push_str(" […]");
        }
        Self {
            agent_id: agent.id.into(),
            agent_type: agent.kind,
            status: agent.status.as_str(),
            name: agent.name,
            prompt,
            model: agent.model,
            cwd: agent.cwd,
            launched_by: agent.launched_by.map(|by| by.agent.into()),
            turn: agent.turn.0,
            queued: agent.queued,
            last_seq: agent.head.0,
            created_at: IsoTime(agent.created_at),
            ended_at: agent.ended_at.map(IsoTime),
            error,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AgentList {
    pub(crate) agents: Vec<AgentState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<IdText>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Launched {
    agent_id: IdText,
    status: &'static str,
    last_seq: u64,
    #[serde(rename = "launched_before")]
    again: bool,
}

impl Launched {
    /// The number is that before the agent's first event, also if the launch is repeated.
    pub(crate) fn new(agent: &Agent, again: bool) -> Self {
        let status = agent.status.as_str();
        Self { agent_id: agent.id.into(), status, last_seq: Sequence::START.0, again }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Sent {
    agent_id: IdText,
    turn: u32,
    queued: u32,
    last_seq: u64,
}

impl Sent {
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, queued: u32, last: Sequence) -> Self {
        Self { agent_id: agent.into(), turn: turn.0, queued, last_seq: last.0 }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ReadResult {
    pub(crate) agent: AgentState,
    pub(crate) entries: Vec<EntryDto>,
    pub(crate) next_since: u64,
    pub(crate) more: bool,
}

/// A part of the text of an entry.
#[derive(Debug, Serialize)]
pub(crate) struct PartResult {
    agent_id: IdText,
    seq: u64,
    text: String,
    next_offset: usize,
    total_bytes: usize,
    more: bool,
}

impl PartResult {
    /// The part that begins at `offset` and has at most `bytes`. `None` if no character begins there.
    pub(crate) fn new(
        agent: AgentId,
        seq: Sequence,
        whole: &str,
        (offset, bytes): (usize, usize),
    ) -> Option<Self> {
        let next_offset = whole.floor_char_boundary(offset.saturating_add(bytes));
        let (text, total_bytes) = (whole.get(offset..next_offset)?.to_owned(), whole.len());
        let more = next_offset < total_bytes;
        Some(Self { agent_id: agent.into(), seq: seq.0, text, next_offset, total_bytes, more })
    }
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitReason {
    Ended,
    NeedsAnswer,
    PageFull,
    Timeout,
    ShuttingDown,
}

#[derive(Debug, Serialize)]
pub(crate) struct WaitResult {
    pub(crate) reason: WaitReason,
    #[serde(flatten)]
    pub(crate) read: ReadResult,
    pub(crate) open_requests: Vec<AskedDto>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AnswerState {
    agent_id: IdText,
    request_id: String,
    state: &'static str,
}

impl AnswerState {
    pub(crate) fn new(agent: AgentId, request_id: String, outcome: AnswerOutcome) -> Self {
        let state = match outcome {
            AnswerOutcome::Settled => "settled",
            AnswerOutcome::HandedOn => "pending",
        };
        Self { agent_id: agent.into(), request_id, state }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Cancelled {
    agent_id: IdText,
    status: &'static str,
}

impl Cancelled {
    pub(crate) fn new(agent: AgentId, status: AgentStatus) -> Self {
        Self { agent_id: agent.into(), status: status.as_str() }
    }
}

/// The result of `tools/list`.
#[derive(Debug, Serialize)]
pub(crate) struct ToolList {
    tools: &'static RawValue,
}

impl ToolList {
    /// `None` if the file of the tools is malformed, which a test excludes.
    pub(crate) fn new() -> Option<Self> {
        ready(TOOLS).map(|tools| Self { tools })
    }
}
