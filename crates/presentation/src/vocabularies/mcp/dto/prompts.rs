//! Prompts, which a person chooses in a client, such as a command, and which the client's model carries out.

use serde::Serialize;
use serde_json::value::RawValue;
use tokenrail_domain::AgentId;

use super::arguments::{agent, checked, not_blank};
use super::content::{ContentDto, ResourceContents};
use super::resources::ready;
use super::rpc::Params;
use crate::error::Problem;
use crate::json::fields::Fields;
use crate::query;

/// The prompts with their arguments, as `prompts/list` returns them.
const PROMPTS: &str = include_str!("prompts.json");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptName {
    Delegate,
    CatchUp,
}

impl PromptName {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "delegate" => Self::Delegate,
            "catch_up" => Self::CatchUp,
            _ => return None,
        })
    }
}

/// The result of `prompts/list`.
#[derive(Debug, Serialize)]
pub(crate) struct PromptList {
    prompts: &'static RawValue,
}

impl PromptList {
    /// `None` if the file of the prompts is malformed, which a test excludes.
    pub(crate) fn new() -> Option<Self> {
        ready(PROMPTS).map(|prompts| Self { prompts })
    }
}

/// A prompt that a client wants.
pub(crate) struct PromptCall {
    pub(crate) name: String,
    pub(crate) arguments: Fields,
}

/// The same, with its arguments.
pub(crate) enum PromptWish {
    Delegate { task: String, agent_type: Option<String> },
    CatchUp(AgentId),
}

impl PromptCall {
    pub(crate) fn read(params: &Params) -> Result<Self, Problem> {
        let mut fields = params.fields()?;
        let name = fields.required_text("name", |_| None);
        fields.finish()?;
        let mut arguments = params.object("arguments")?;
        arguments.forget_nulls();
        Ok(Self { name, arguments })
    }

    pub(crate) fn wish(self) -> Result<PromptWish, Problem> {
        let Self { name, mut arguments } = self;
        match PromptName::from_name(&name) {
            Some(PromptName::Delegate) => {
                let task = arguments.required_text("task", not_blank);
                // A client that asks for each argument sends an empty one if it gets no answer.
                let agent_type =
                    arguments.text("agent_type", |_| None).filter(|name| !name.trim().is_empty());
                arguments.finish()?;
                Ok(PromptWish::Delegate { task, agent_type })
            }
            Some(PromptName::CatchUp) => {
                let agent = agent(&mut arguments);
                Ok(PromptWish::CatchUp(checked(arguments, agent)?))
            }
            None => {
                let unknown = format!("unknown prompt {}", query::refused_name(&name));
                Err(Problem::field("name", unknown))
            }
        }
    }
}

/// The result of `prompts/get`.
#[derive(Debug, Serialize)]
pub(crate) struct PromptResult {
    messages: Vec<PromptMessage>,
}

#[derive(Debug, Serialize)]
struct PromptMessage {
    role: &'static str,
    content: ContentDto,
}

impl PromptResult {
    /// What the person says.
    pub(crate) fn of(said: Vec<ContentDto>) -> Self {
        let messages = said.into_iter().map(|content| PromptMessage { role: "user", content });
        Self { messages: messages.collect() }
    }

    pub(crate) fn delegate(task: &str, agent_type: Option<&str>) -> Self {
        let kind = agent_type.map(|kind| format!(", with agent_type set to {kind}")).unwrap_or_default();
        let text = format!(
            "Delegate the task below to an agent, with the tools of Tokenrail. Call launch_agent with the task as the \
             prompt{kind}. Then call wait_for_agent, each time with since set to the last next_since, until reason is \
             ended. If reason is needs_answer, ask me, and pass my answer on with answer_permission. At the end, tell \
             me what the agent has done.\n\nThe task:\n\n{task}"
        );
        Self::of(vec![ContentDto::Text { text }])
    }

    pub(crate) fn catch_up(agent: AgentId, transcript: ResourceContents) -> Self {
        let text = format!(
            "Above is the transcript of the agent {agent}. If it ends with a note that there is more, read the rest \
             with read_agent first. Then tell me in a few sentences what the agent was asked to do, what it has done, \
             and what is open."
        );
        Self::of(vec![ContentDto::Resource { resource: transcript }, ContentDto::Text { text }])
    }
}
