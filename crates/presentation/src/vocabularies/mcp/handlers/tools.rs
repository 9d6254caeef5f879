//! Calls a tool.

use actix_web::{HttpRequest, HttpResponse};

use super::{calls, reading, stream, test_tools, wait::Wait};
use crate::api::Api;
use crate::error::Problem;
use crate::peer::peer;
use crate::query::{self, Form};
use crate::vocabularies::mcp::dto::{self, Caller, Params, ToolName, ToolResult};
use crate::vocabularies::mcp::refusal::failed;

/// Calls a tool. An error of the tool is a result too: the client's model reads it, and mends its call.
pub(super) async fn call(api: &Api, request: &HttpRequest, caller: Caller, params: &Params) -> HttpResponse {
    let name = match tool_name(params) {
        Ok(name) => name,
        Err(problem) => return super::respond::<ToolResult>(&caller, Err(problem)),
    };
    if api.config().test_routes
        && let Some(response) = test_tools::call(&caller, &name, params)
    {
        return response;
    }
    let Some(tool) = ToolName::from_name(&name) else {
        let unknown = format!("unknown tool {}", query::refused_name(&name));
        return super::respond::<ToolResult>(&caller, Err(Problem::field("name", unknown)));
    };
    let result = match tool {
        ToolName::WaitForAgent => return wait(api, request, caller, params).await,
        ToolName::ListAgentTypes => Ok(calls::types(api).await),
        ToolName::ListAgents => calls::list(api, params).await,
        ToolName::LaunchAgent => calls::launch(api, request.headers(), params).await,
        ToolName::SendMessage => calls::send(api, params).await,
        ToolName::ReadAgent => reading::read(api, params).await,
        ToolName::ReadEntry => reading::read_part(api, params).await,
        ToolName::AnswerPermission => calls::answer(api, params).await,
        ToolName::CancelAgent => calls::cancel(api, params).await,
    };
    super::respond(&caller, Ok(result.unwrap_or_else(|problem| failed(&problem))))
}

fn tool_name(params: &Params) -> Result<String, Problem> {
    let mut fields = params.fields()?;
    let name = fields.required_text("name", |_| None);
    fields.finish()?;
    Ok(name)
}

/// Waits with a place among the streams, which are limited. With progress, the response is an event stream.
async fn wait(api: &Api, request: &HttpRequest, caller: Caller, params: &Params) -> HttpResponse {
    let beginning = async {
        let token = params.progress_token()?;
        let place = api.open_stream(peer(request.peer_addr()))?;
        Ok((token, place, Wait::begin(api, dto::wait(params)?).await?))
    };
    let (token, place, wait) = match beginning.await {
        Ok(begun) => begun,
        Err(problem) => return super::respond(&caller, Ok(failed(&problem))),
    };
    match token {
        Some(token) if query::form(request.headers()).is_ok_and(|form| form == Form::EventStream) => {
            stream::open(api, caller, token, wait, place)
        }
        _ => {
            let result = wait.finish(api).await.unwrap_or_else(|problem| failed(&problem));
            drop(place);
            super::respond(&caller, Ok(result))
        }
    }
}
