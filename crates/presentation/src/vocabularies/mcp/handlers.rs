//! The endpoint: each POST has one message, and gets its response.

mod calls;
mod parent;
mod prompts;
mod reading;
mod resources;
mod stream;
mod test_tools;
mod tools;
mod wait;

use actix_web::{HttpRequest, HttpResponse, web};

use super::dto::{Call, Done, Empty, Failed, Incoming, Method, PromptList, RequestId, TEMPLATES, ToolList};
use super::dto::{check_version, initialized, ready};
use super::refusal::sentence;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::error::Problem;
use crate::query;

/// The header with the version of the protocol.
const VERSION: &str = "mcp-protocol-version";

/// Send a message of the Model Context Protocol
///
/// The body is one JSON-RPC message. The response to a request is JSON, or an event stream if the request asks for
/// progress notifications. Other messages get 202.
#[utoipa::path(post, path = "/mcp", tag = "mcp", request_body = serde_json::Value,
    params(("Tokenrail-Run" = Option<String>, Header,
        description = "Sent by an agent of this server: the value of its variable `TOKENRAIL_RUN`. The agents that \
                       it launches get its limits.")),
    responses((status = 200, content((serde_json::Value = "application/json"), (EventBlock = "text/event-stream"))),
        (status = 202, description = "A notification, or a response")))]
pub(crate) async fn message(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body = query::body(&request, payload, api.config()).await?;
    check_version(request.headers().get(VERSION).and_then(|version| version.to_str().ok()))?;
    match Incoming::read(&body, api.config().json_depth)? {
        Incoming::Call(call) => Ok(answer(&api, &request, call).await),
        Incoming::Unanswered => Ok(HttpResponse::Accepted().finish()),
    }
}

async fn answer(api: &Api, request: &HttpRequest, call: Call) -> HttpResponse {
    let Call { id, method, params } = call;
    let Some(method) = Method::from_name(&method) else {
        return HttpResponse::Ok().json(Failed::no_method(&id));
    };
    match method {
        Method::Initialize => respond(&id, initialized(&params)),
        Method::Ping => respond(&id, Ok(Empty {})),
        Method::ListTools if api.config().test_routes => respond(&id, Ok(test_tools::tools())),
        Method::ListTools => respond(&id, Ok(ToolList::new())),
        Method::CallTool => tools::call(api, request, id, &params).await,
        Method::ListResources => respond(&id, resources::list(api, &params).await),
        Method::ListTemplates => respond(&id, Ok(ready(TEMPLATES))),
        Method::ReadResource => respond(&id, resources::read(api, &params).await),
        Method::ListPrompts if api.config().test_routes => respond(&id, Ok(test_tools::prompts())),
        Method::ListPrompts => respond(&id, Ok(PromptList::new())),
        Method::GetPrompt => respond(&id, prompts::get(api, &params).await),
        Method::Complete => respond(&id, prompts::complete(api, &params).await),
    }
}

fn respond<T: serde::Serialize>(id: &RequestId, result: Result<T, Problem>) -> HttpResponse {
    match result {
        Ok(result) => HttpResponse::Ok().json(Done::new(id, result)),
        Err(problem) => HttpResponse::Ok().json(Failed::refused(id, problem.code, sentence(&problem))),
    }
}
