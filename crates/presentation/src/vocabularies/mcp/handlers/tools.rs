//! Calls a tool.

use actix_web::{HttpRequest, HttpResponse};
use tokio::time::Instant;

use super::{
    calls, reading, stream, test_tools,
    wait::{Asking, Wait},
};
use crate::api::Api;
use crate::error::Problem;
use crate::peer::peer;
use crate::query::{self, Form};
use crate::vocabularies::mcp::dto::{self, Answers, CallToolResult, Caller, Done, Params, ToolName, Waited};
use crate::vocabularies::mcp::refusal::failed;

/// Calls a tool. An error of the tool is a result too: the client's model reads it, and mends its call.
pub(super) async fn call(api: &Api, request: &HttpRequest, caller: Caller, params: &Params) -> HttpResponse {
    let name = match tool_name(params) {
        Ok(name) => name,
        Err(problem) => return super::respond::<CallToolResult>(&caller, Err(problem)),
    };
    if api.config().test_routes
        && let Some(response) = test_tools::call(&caller, &name, params)
    {
        return response;
    }
    let Some(tool) = ToolName::from_name(&name) else {
        let unknown = format!("unknown tool {}", query::refused_name(&name));
        return super::respond::<CallToolResult>(&caller, Err(Problem::field("name", unknown)));
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

/// Waits with a place among the streams, which are limited. With progress, the response is an event stream. If the call
/// brings a person's answers, the agent gets them first. The time of the wait begins before that.
async fn wait(api: &Api, request: &HttpRequest, caller: Caller, params: &Params) -> HttpResponse {
    let wish = dto::wait(params);
    let answers = match &wish {
        // Also if the client no longer says that it can show forms: the person has answered.
        Ok(wish) if caller.is_newest() => dto::answers(params, wish.read.agent),
        _ => Ok(Answers::default()),
    };
    let answers = match answers {
        Ok(answers) => answers,
        Err(problem) => return super::respond::<CallToolResult>(&caller, Err(problem)),
    };
    let forms = caller.offers().forms && !answers.is_dismissed;
    let beginning = async {
        let (wish, token) = (wish?, params.progress_token()?);
        let place = api.open_stream(peer(request.peer_addr()))?;
        let until = Instant::now() + wish.limit;
        let passed = calls::pass_on(api, wish.read.agent, answers.given, until).await?;
        let answered = [answers.earlier, passed.answered].concat();
        let asking = Asking { forms, answered, refused: passed.refused };
        Ok((token, place, Wait::begin(api, wish.read, until, asking).await?))
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
            let result = wait.finish(api).await.unwrap_or_else(|problem| Waited::Over(failed(&problem)));
            drop(place);
            HttpResponse::Ok().json(Done::waited(&caller, result))
        }
    }
}
