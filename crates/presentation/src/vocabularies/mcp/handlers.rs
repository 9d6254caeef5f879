//! The endpoint: each POST has one message, and gets its response.

mod calls;
mod listen;
mod parent;
mod prompts;
mod reading;
mod resources;
mod stream;
mod test_inputs;
mod test_tools;
mod tools;
mod wait;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};

use super::dto::{
    Call, Caller, Done, Empty, Failed, Incoming, Method, Mirrors, Params, PromptList, RequestId,
};
use super::dto::{TemplateList, ToolList, Unfit, check_version, client, discovered, initialized};
use super::refusal::{sentence, unreadable};
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::error::Problem;
use crate::query;

/// The headers that repeat parts of the request.
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Send a message of the Model Context Protocol
///
/// The body is one JSON-RPC message. The response to a request is JSON, or an event stream if the request asks for
/// progress notifications. Other messages get 202.
#[utoipa::path(post, path = "/mcp", tag = "mcp", request_body = serde_json::Value,
    params(("MCP-Protocol-Version" = Option<String>, Header, description = "The version of the protocol."),
        ("Mcp-Method" = Option<String>, Header,
        description = "The method of the request. Required by version 2026-07-28."),
        ("Mcp-Name" = Option<String>, Header,
        description = "The name of the tool or prompt, or the URI of the resource. Required by version 2026-07-28."),
        ("Tokenrail-Run" = Option<String>, Header,
        description = "Sent by an agent of this server: the value of its variable `TOKENRAIL_RUN`. The agents that \
                       it launches are then limited to its folder, and in number and depth.")),
    responses((status = 200, content((serde_json::Value = "application/json"), (EventBlock = "text/event-stream"))),
        (status = 202, description = "A notification, or a response")))]
pub(crate) async fn message(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body = query::body(&request, payload, api.config()).await?;
    let mirrors = mirrors(request.headers());
    let call = match Incoming::read(&body, api.config().json_depth) {
        Ok(Incoming::Call(call)) => call,
        Ok(Incoming::Unanswered) => {
            check_version(mirrors.version.as_deref())?;
            return Ok(HttpResponse::Accepted().finish());
        }
        Err(problem) => {
            let problem = check_version(mirrors.version.as_deref()).err().unwrap_or(problem);
            return match RequestId::of_unreadable(&body) {
                Some(id) => Ok(unreadable(&problem, &id)),
                None => Err(problem),
            };
        }
    };
    let offers = match client(&call, &mirrors) {
        Ok(offers) => offers,
        Err(unfit) => return Ok(refuse(&call, unfit)),
    };
    if let Err(problem) = check_version(mirrors.version.as_deref()) {
        return Ok(unreadable(&problem, &call.id));
    }
    let (caller, method, params) = Caller::of(call, offers);
    Ok(answer(&api, &request, caller, &method, params).await)
}

fn mirrors(headers: &HeaderMap) -> Mirrors {
    let all = |name| {
        // A character that a header must not have becomes one that no method or version has.
        let values = headers.get_all(name).map(|value| value.to_str().map_or("\u{fffd}", str::trim));
        let joined = values.collect::<Vec<_>>().join(", ");
        headers.contains_key(name).then_some(joined)
    };
    Mirrors { version: all(VERSION), method: all(METHOD), name: all(NAME) }
}

fn refuse(call: &Call, unfit: Unfit) -> HttpResponse {
    HttpResponse::BadRequest().json(match unfit {
        Unfit::Header(header) => Failed::header_mismatch(&call.id, header),
        Unfit::Version(version) => Failed::unsupported(&call.id, version),
        Unfit::Meta(problem) => Failed::unclear(&call.id, sentence(&problem)),
    })
}

async fn answer(
    api: &Api,
    request: &HttpRequest,
    caller: Caller,
    method: &str,
    params: Params,
) -> HttpResponse {
    let Some(method) = Method::from_name(method, caller.is_newest()) else {
        let mut response = if caller.is_newest() { HttpResponse::NotFound() } else { HttpResponse::Ok() };
        return response.json(Failed::no_method(&caller));
    };
    let caller = caller.with_cache(method.cache());
    match method {
        Method::Initialize => respond(&caller, initialized(&params)),
        Method::Ping => respond(&caller, Ok(Empty {})),
        Method::Discover => respond(&caller, Ok(discovered())),
        Method::Listen => listen::open(api, request, caller, &params).await,
        Method::ListTools if api.config().test_routes => respond(&caller, Ok(test_tools::tools(&caller))),
        Method::ListTools => respond(&caller, Ok(ToolList::new())),
        Method::CallTool => tools::call(api, request, caller, &params).await,
        Method::ListResources => respond(&caller, resources::list(api, &params).await),
        Method::ListTemplates => respond(&caller, Ok(TemplateList::new())),
        Method::ReadResource => resources::respond(api, &caller, &params).await,
        Method::ListPrompts if api.config().test_routes => respond(&caller, Ok(test_tools::prompts(&caller))),
        Method::ListPrompts => respond(&caller, Ok(PromptList::new())),
        Method::GetPrompt if api.config().test_routes && test_inputs::is_prompt(&caller, &params) => {
            test_inputs::call(&caller, test_inputs::PROMPT, &params)
        }
        Method::GetPrompt => respond(&caller, prompts::get(api, &params).await),
        Method::Complete => respond(&caller, prompts::complete(api, &params).await),
    }
}

fn respond<T: serde::Serialize>(caller: &Caller, result: Result<T, Problem>) -> HttpResponse {
    match result {
        Ok(result) => HttpResponse::Ok().json(Done::new(caller, result)),
        Err(problem) => HttpResponse::Ok().json(Failed::refused(caller, problem.code, sentence(&problem))),
    }
}
