//! Prompts, and values for their arguments and those of the template of resources.

use tokenrail_application::{AgentFilter, ArchivedFilter, ListPage};

use super::{resources, test_tools};
use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::mcp::dto::{
    COMPLETION_VALUES, Completion, CompletionWish, Params, PromptCall, PromptResult, PromptWish, ValueKind,
};

pub(super) async fn get(api: &Api, params: &Params) -> Result<PromptResult, Problem> {
    let mut call = PromptCall::read(params)?;
    if api.config().test_routes
        && let Some(said) = test_tools::prompt(&mut call)
    {
        call.arguments.finish()?;
        return Ok(PromptResult::of(said));
    }
    Ok(match call.wish()? {
        PromptWish::Delegate { task, agent_type } => PromptResult::delegate(&task, agent_type.as_deref()),
        PromptWish::CatchUp(agent) => {
            PromptResult::catch_up(agent, resources::transcript_of(api, agent).await?)
        }
    })
}

pub(super) async fn complete(api: &Api, params: &Params) -> Result<Completion, Problem> {
    let wish = CompletionWish::read(params)?;
    if api.config().test_routes
        && let Some(completion) = test_tools::completion(&wish)
    {
        return Ok(completion);
    }
    Ok(match wish.kind()? {
        ValueKind::Anything => Completion::new([], &wish.value, false),
        ValueKind::AgentType => {
            Completion::new(api.service().type_names().map(str::to_owned), &wish.value, false)
        }
        ValueKind::Agent => {
            let filter = AgentFilter {
                archived: ArchivedFilter::Without,
                limit: COMPLETION_VALUES,
                ..AgentFilter::default()
            };
            let ListPage { items, more } = api.service().list(filter).await?;
            let ids = items.into_iter().map(|listed| listed.agent.id.to_string());
            Completion::new(ids, &wish.value, more)
        }
    })
}
