//! Resources: the transcripts of agents.

use serde::Serialize;
use serde_json::value::RawValue;
use tokenrail_domain::{Agent, AgentId, cut};

use super::arguments::page_cursor;
use super::content::ResourceContents;
use super::rpc::Params;
use crate::error::{Code, Problem};
use crate::json::{IdText, IsoTime};

/// The only template.
const TEMPLATES: &str = r#"[{"uriTemplate":"tokenrail://agents/{agent_id}/transcript","name":"transcript","title":"Transcript of an agent","description":"What an agent has said and done, from its first prompt on","mimeType":"text/plain"}]"#;

/// The URI of the template.
pub(super) const URI_TEMPLATE: &str = "tokenrail://agents/{agent_id}/transcript";

const URI_BEFORE: &str = "tokenrail://agents/";
const URI_AFTER: &str = "/transcript";
const TEXT: &str = "text/plain";

/// The maximum length of the name of a resource.
const TITLE_BYTES: usize = 80;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceList {
    resources: Vec<ResourceDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<IdText>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDto {
    uri: String,
    name: String,
    title: String,
    description: String,
    mime_type: &'static str,
    annotations: ResourceAnnotations,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceAnnotations {
    last_modified: IsoTime,
}

impl ResourceList {
    /// One page. `next` is the cursor of the next one.
    pub(crate) fn new(agents: Vec<Agent>, next: Option<AgentId>) -> Self {
        Self {
            resources: agents.into_iter().map(ResourceDto::from).collect(),
            next_cursor: next.map(IdText::from),
        }
    }
}

impl From<Agent> for ResourceDto {
    fn from(agent: Agent) -> Self {
        let first_line = || agent.prompt.lines().next().unwrap_or_default().to_owned();
        let mut title = agent.name.clone().unwrap_or_else(first_line);
        cut(&mut title, TITLE_BYTES);
        Self {
            uri: uri(agent.id),
            name: agent.id.to_string(),
            title,
            description: format!("An agent of the type {}: {}", agent.kind, agent.status.as_str()),
            mime_type: TEXT,
            annotations: ResourceAnnotations { last_modified: IsoTime(agent.updated_at) },
        }
    }
}

/// The result of `resources/read`.
#[derive(Debug, Serialize)]
pub(crate) struct ReadResource {
    contents: [ResourceContents; 1],
}

impl From<ResourceContents> for ReadResource {
    fn from(contents: ResourceContents) -> Self {
        Self { contents: [contents] }
    }
}

impl ResourceContents {
    pub(crate) fn transcript(agent: AgentId, text: String) -> Self {
        Self::text(uri(agent), TEXT, text)
    }
}

pub(super) fn uri(agent: AgentId) -> String {
    format!("{URI_BEFORE}{agent}{URI_AFTER}")
}

/// The result of `resources/templates/list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateList {
    resource_templates: &'static RawValue,
}

impl TemplateList {
    /// `None` if the text of the template is malformed, which a test excludes.
    pub(crate) fn new() -> Option<Self> {
        ready(TEMPLATES).map(|resource_templates| Self { resource_templates })
    }
}

/// Reads the cursor of a page of resources.
pub(crate) fn resources_after(params: &Params) -> Result<Option<AgentId>, Problem> {
    let mut fields = params.fields()?;
    fields.forget_nulls();
    let before = page_cursor(&mut fields);
    fields.finish()?;
    Ok(before)
}

/// Reads the URI of a resource.
pub(crate) fn resource_uri(params: &Params) -> Result<String, Problem> {
    let mut fields = params.fields()?;
    let uri = fields.required_text("uri", |_| None);
    fields.finish()?;
    Ok(uri)
}

/// The agent whose transcript has this URI.
pub(crate) fn agent_at(uri: &str) -> Result<AgentId, Problem> {
    let id = uri.strip_prefix(URI_BEFORE).and_then(|rest| rest.strip_suffix(URI_AFTER));
    let missing = || Problem::new(Code::NotFound, "no such resource");
    id.and_then(|id| id.parse().ok()).ok_or_else(missing)
}

/// JSON of this server's own, which is not parsed again.
pub(super) fn ready(json: &'static str) -> Option<&'static RawValue> {
    serde_json::from_str(json).ok()
}
