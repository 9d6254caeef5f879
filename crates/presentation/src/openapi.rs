//! `/openapi.json`: the REST API for machines.

mod letta;

use std::sync::OnceLock;

use actix_web::HttpResponse;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{Modify, OpenApi};

use crate::dto::{
    AcceptedDto, AgentDto, AgentErrorDto, AgentMessageDto, AgentRefDto, AgentStatusDto, AgentTypeDto,
    ChatBody, DeltasDto, ImportBody, LaunchBody, MetadataDto, PageItemDto, PermissionBody,
    PermissionStateDto, ReplayBody, SendBody, ServiceStatusDto, TicketBody, TicketDto, TurnDto,
    TurnRecordSchema,
};
use crate::error::{Code, FieldProblem, ProblemDto};
use crate::{chat, rest, ws};

#[derive(OpenApi)]
#[openapi(
    info(title = "Tokenrail", description = "Launches AI agents, keeps every token, and shows it live."),
    paths(
        rest::launch, rest::list, rest::active, rest::get, rest::status, rest::cancel, rest::delete,
        rest::messages, rest::events, rest::send, rest::turns, rest::turn,
        rest::export, rest::take_in, rest::replay, rest::permission,
        rest::chat_say, rest::chat_stream, rest::chat_stop, chat::chat_socket,
        rest::types, rest::ticket, rest::health, rest::ready, rest::metrics, rest::problem,
        ws::open,
    ),
    components(schemas(
        AcceptedDto, AgentDto, AgentErrorDto, AgentMessageDto, AgentRefDto, AgentStatusDto, AgentTypeDto, ChatBody, DeltasDto, FieldProblem,
        ImportBody, LaunchBody, MetadataDto, PageItemDto, PermissionBody, PermissionStateDto, ProblemDto, ReplayBody, SendBody, ServiceStatusDto, TicketBody, TicketDto,
        TurnDto, TurnRecordSchema,
    )),
    modifiers(&Token, &Problems),
)]
struct Document;

/// The document, made once.
pub(crate) async fn document() -> HttpResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut document = Document::openapi();
        document.merge(letta::Letta::openapi());
        document.to_json().unwrap_or_default()
    });
    HttpResponse::Ok().content_type("application/json").body(text.as_str())
}

/// Says that a token is needed everywhere but for the probes and the pages of problems.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        let none: [&str; 0] = [];
        document.security = Some(vec![SecurityRequirement::new("token", none)]);
        for path in ["/healthz", "/readyz", "/problems/{code}"] {
            if let Some(get) = document.paths.paths.get_mut(path).and_then(|item| item.get.as_mut()) {
                get.security = Some(Vec::new());
            }
        }
    }
}

/// What every route can answer: the guard stands before all of them.
const EVERYWHERE: [Code; 7] = [
    Code::BadRequest,
    Code::Unauthenticated,
    Code::OriginNotAllowed,
    Code::HostNotAllowed,
    Code::ContentEncoding,
    Code::HeadersTooLarge,
    Code::RateLimited,
];

/// What a route that asks the store can answer.
const STORE: [Code; 6] = [
    Code::StoreFailed,
    Code::StoreBusy,
    Code::StorageFull,
    Code::OutcomeUnknown,
    Code::ShuttingDown,
    Code::CapacityExhausted,
];

/// What a route with a body can answer.
const BODY: [Code; 5] = [
    Code::MalformedJson,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::ValidationFailed,
    Code::RequestTimeout,
];

/// Adds the problems of each route to its answers.
struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (path, item) in &mut document.paths.paths {
            let operations = [("get", &mut item.get), ("post", &mut item.post), ("delete", &mut item.delete)];
            for (method, operation) in operations {
                if let Some(operation) = operation {
                    unbind_numbers(operation);
                    add(operation, &problems(path, method));
                }
            }
        }
    }
}

fn problems(path: &str, method: &str) -> Vec<Code> {
    let mut codes = EVERYWHERE.to_vec();
    if method == "post" && !path.ends_with("/cancel") && !path.ends_with("/stop") {
        codes.extend(BODY);
    }
    if path.contains("{id}") || path.contains("{code}") {
        codes.push(Code::NotFound);
    }
    if path.starts_with("/api/") || path == "/readyz" {
        codes.extend(STORE);
    }
    codes.extend_from_slice(match (method, path) {
        ("post", "/api/agents") => &[Code::RunnerUnknown, Code::CwdNotAllowed, Code::IdempotencyMismatch],
        ("post", "/api/agents/{id}/messages") => {
            &[Code::AgentDeleted, Code::AgentReadOnly, Code::QueueFull, Code::IdempotencyMismatch]
        }
        ("get", "/api/agents" | "/api/agents/{id}/turns") | ("delete", "/api/agents/{id}") => {
            &[Code::ValidationFailed]
        }
        ("get", "/api/agents/{id}/messages") => {
            &[Code::CursorMalformed, Code::CursorAhead, Code::ValidationFailed]
        }
        ("get", "/api/agents/{id}/events") => {
            &[Code::CursorMalformed, Code::CursorAhead, Code::ValidationFailed, Code::NotAcceptable]
        }
        ("get", "/api/agents/{id}/export") | ("post", "/api/agents/{id}/replay") => &[Code::AgentActive],
        ("post", "/api/agents/{id}/permissions/{requestId}") => &[Code::AlreadyResolved],
        ("post", "/api/chat") => {
            &[Code::RunnerUnknown, Code::AgentDeleted, Code::QueueFull, Code::IdempotencyMismatch]
        }
        ("get", "/api/chat/{id}/stream") => &[Code::ValidationFailed],
        ("get", "/api/chat") => &[Code::UpgradeRequired, Code::ValidationFailed],
        ("get", "/ws") => {
            &[Code::UpgradeRequired, Code::DialectUnknown, Code::ValidationFailed, Code::CapacityExhausted]
        }
        _ => &[],
    });
    codes
}

/// A `limit` may be any whole number, for one that is larger than the server's is the server's, and so is more than
/// there is of the `last` events; and after any turn there may be none. So no format bounds them.
fn unbind_numbers(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && matches!(parameter.name.as_str(), "limit" | "last" | "after")
            && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
        {
            schema.format = None;
        }
    }
}

fn add(operation: &mut Operation, codes: &[Code]) {
    for code in codes {
        let status = code.status().as_str().to_owned();
        let words = codes.iter().filter(|other| other.status() == code.status()).map(|code| code.as_str());
        let description = words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content)
            .build();
        operation.responses.responses.insert(status, response.into());
    }
}
