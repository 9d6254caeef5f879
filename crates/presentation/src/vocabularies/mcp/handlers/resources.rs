//! The transcripts of agents.

use std::fmt::Write as _;

use actix_web::HttpResponse;
use tokenrail_application::{AgentFilter, ArchivedFilter, ListPage};
use tokenrail_domain::{AgentId, Sequence};

use super::{reading, test_tools};
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::vocabularies::mcp::dto::{
    Caller, EntryDto, Failed, Params, ReadResource, ReadWish, ResourceContents, ResourceList, SaidDto,
    agent_at, resource_uri, resources_after,
};
use crate::vocabularies::mcp::refusal::sentence;

/// The number of agents in one page.
const RESOURCES: usize = 50;
/// The approximate maximum size of a transcript. A client gets it as a whole.
const TRANSCRIPT_BYTES: usize = 200_000;

/// The newest agents.
pub(super) async fn list(api: &Api, params: &Params) -> Result<ResourceList, Problem> {
    let filter = AgentFilter {
        before: resources_after(params)?,
        archived: ArchivedFilter::Without,
        limit: RESOURCES,
        ..AgentFilter::default()
    };
    let ListPage { items, more } = api.service().list(filter).await?;
    let next = items.last().filter(|_| more).map(|listed| listed.agent.id);
    Ok(ResourceList::new(items.into_iter().map(|listed| listed.agent).collect(), next))
}

/// The contents of a resource, or that it does not exist.
pub(super) async fn respond(api: &Api, caller: &Caller, params: &Params) -> HttpResponse {
    match (read(api, params).await, resource_uri(params)) {
        (Err(problem), Ok(uri)) if problem.code == Code::NotFound => {
            HttpResponse::Ok().json(Failed::no_resource(caller, uri, sentence(&problem)))
        }
        (result, _) => super::respond(caller, result),
    }
}

async fn read(api: &Api, params: &Params) -> Result<ReadResource, Problem> {
    let uri = resource_uri(params)?;
    if api.config().test_routes
        && let Some(resource) = test_tools::resource(&uri)
    {
        return Ok(resource.into());
    }
    Ok(transcript_of(api, agent_at(&uri)?).await?.into())
}

pub(super) async fn transcript_of(api: &Api, agent: AgentId) -> Result<ResourceContents, Problem> {
    let agent = api.service().get(agent).await?;
    let wish = ReadWish { agent: agent.id, since: Sequence::START, bytes: TRANSCRIPT_BYTES };
    let page = reading::page(api, wish, agent.head).await?;
    let up_to = page.up_to();
    let mut text = transcript(&page.into_entries());
    if up_to < agent.head {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[There is more: call read_agent with since {}]", up_to.0);
    }
    Ok(ResourceContents::transcript(agent.id, text))
}

/// The entries as a person would read them.
fn transcript(entries: &[EntryDto]) -> String {
    let mut out = String::new();
    for entry in entries {
        let _ = writeln!(out, "{} {}\n", entry.seq, paragraph(&entry.said));
    }
    out
}

fn paragraph(said: &SaidDto) -> String {
    match said {
        SaidDto::Prompt { text } => format!("Prompt: {}", text.shown()),
        SaidDto::Text { text, .. } => format!("Agent: {}", text.shown()),
        SaidDto::Retracted { .. } => "[The agent withdraws the message above]".to_owned(),
        SaidDto::ToolCall { tool, input, .. } => format!("Tool {tool}: {}", input.shown()),
        SaidDto::ToolResult { is_error: true, text, .. } => format!("Tool error: {}", text.shown()),
        SaidDto::ToolResult { is_error: false, text, .. } => format!("Tool result: {}", text.shown()),
        SaidDto::PermissionRequest(asked) => format!("[The agent asks: {}]", asked.tool),
        SaidDto::PermissionResolved { .. } => "[The request is settled]".to_owned(),
        SaidDto::Error { text } => format!("Error: {}", text.shown()),
        SaidDto::TurnEnd { outcome, error, text, truncated } => {
            let mark = if *truncated { " […]" } else { "" };
            match (error, text) {
                (Some(error), _) => format!("[The turn has ended: {outcome}: {error}{mark}]"),
                (None, Some(text)) => format!("Agent: {text}{mark}\n\n[The turn has ended: {outcome}]"),
                (None, None) => format!("[The turn has ended: {outcome}]"),
            }
        }
    }
}
