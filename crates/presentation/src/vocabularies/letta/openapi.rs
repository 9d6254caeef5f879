//! The part of the OpenAPI document about Letta's routes, whose errors have a format of their own.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::handlers::{NO_LISTS, agents, conversations, history, messages, runs};
use crate::error::Code;
use crate::refusals::{BODY, EVERYWHERE, STORE, add, operations, unbind_numbers};
use crate::vocabularies::letta::dto::LettaProblem;

#[derive(OpenApi)]
#[openapi(
    info(title = "", description = ""),
    paths(
        agents::health, agents::models, agents::agents, agents::agent, agents::create, agents::update_agent,
        agents::delete_agent, agents::no_list,
        messages::say, messages::say_streaming, messages::say_in_background, messages::cancel,
        history::history, history::conversation_history, history::run_history,
        conversations::conversations, conversations::begin, conversations::conversation,
        conversations::update_conversation, conversations::delete_conversation, conversations::converse,
        conversations::converse_again, conversations::cancel_conversation,
        runs::runs, runs::run, runs::run_stream, runs::cancel_run, runs::run_usage,
    ),
    components(schemas(LettaProblem)),
    modifiers(&Lists, &Refusals),
)]
struct LettaDocument;

/// Returns the part of the document about these routes.
pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    LettaDocument::openapi()
}

/// Adds the lists that are always empty, with the description of the first of them.
struct Lists;

impl Modify for Lists {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let address = |list: &str| format!("/v1/agents/{{id}}/{list}");
        let Some(described) = document.paths.paths.get(&address(NO_LISTS[0])).cloned() else { return };
        for list in &NO_LISTS[1..] {
            let mut item: PathItem = described.clone();
            if let Some(get) = &mut item.get {
                get.operation_id = Some(format!("no_{}", list.replace(['-', '/'], "_")));
            }
            document.paths.paths.insert(address(list), item);
        }
    }
}

/// Gives the operations ids that no other vocabulary uses, and adds the errors of each.
struct Refusals;

impl Modify for Refusals {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (method, path, operation) in operations(document) {
            operation.operation_id = operation.operation_id.take().map(|id| format!("letta_{id}"));
            unbind_numbers(operation);
            add(operation, &EVERYWHERE);
            refuse(operation, &refusals(path, method, operation.request_body.is_some()));
        }
    }
}

fn refusals(path: &str, method: &str, body: bool) -> Vec<Code> {
    let mut codes = Vec::new();
    if !matches!(path, "/v1/health" | "/v1/models") {
        codes.extend([Code::NotFound, Code::ValidationFailed]);
        codes.extend(STORE);
    }
    if body {
        codes.extend(BODY);
    }
    codes.extend_from_slice(match (method, path) {
        ("post", "/v1/agents" | "/v1/conversations") => {
            &[Code::RunnerUnknown, Code::CwdNotAllowed, Code::RateLimited]
        }
        ("post", path) if path.ends_with("/stream") && !path.ends_with("messages/stream") => {
            &[Code::CursorAhead, Code::BadRequest]
        }
        ("post", path) if path.contains("/messages") && !path.ends_with("/cancel") => {
            &[Code::AgentDeleted, Code::AgentReadOnly, Code::QueueFull, Code::IdempotencyMismatch]
        }
        _ => &[],
    });
    codes
}

/// Adds errors in Letta's format, next to the problem documents with the same status.
fn refuse(operation: &mut Operation, codes: &[Code]) {
    for code in codes {
        let status = code.status().as_str().to_owned();
        let words = codes.iter().filter(|other| other.status() == code.status()).map(|code| code.as_str());
        let description = words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("LettaProblem"))).build();
        let mut response = ResponseBuilder::new().description(description).build();
        if let Some(RefOr::T(known)) = operation.responses.responses.get(&status) {
            response.content.clone_from(&known.content);
        }
        response.content.insert("application/json".to_owned(), content.into());
        operation.responses.responses.insert(status, response.into());
    }
}
