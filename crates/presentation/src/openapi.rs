//! `/openapi.json`: the REST API for machines.

use std::sync::OnceLock;

use actix_web::HttpResponse;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::error::{Code, FieldProblem, ProblemDto};
use crate::json::{AgentErrorDto, AgentRefDto};
use crate::refusals::add_problems;
use crate::vocabularies::FOREIGN;
use crate::vocabularies::native::dto::{
    AcceptedDto, AgentDto, AgentMessageDto, AgentStatusDto, AgentTypeDto, DeltasDto, ImportBody, LaunchBody,
    MetadataDto, PageItemDto, PermissionBody, PermissionStateDto, ReplayBody, SendBody, ServiceStatusDto,
    TicketBody, TicketDto, TurnDto, TurnRecordSchema,
};
use crate::{rest, ws};

#[derive(OpenApi)]
#[openapi(
    info(title = "Tokenrail", description = "Run AI agents, save every token they print, and stream it live to any number of clients."),
    paths(
        rest::launch, rest::list, rest::active, rest::get, rest::status, rest::cancel, rest::delete,
        rest::messages, rest::events, rest::send, rest::turns, rest::turn,
        rest::export, rest::take_in, rest::replay, rest::permission,
        rest::types, rest::ticket, rest::health, rest::ready, rest::metrics, rest::problem,
        ws::open,
    ),
    components(schemas(
        AcceptedDto, AgentDto, AgentErrorDto, AgentMessageDto, AgentRefDto, AgentStatusDto, AgentTypeDto, DeltasDto, FieldProblem,
        ImportBody, LaunchBody, MetadataDto, PageItemDto, PermissionBody, PermissionStateDto, ProblemDto, ReplayBody, SendBody, ServiceStatusDto, TicketBody, TicketDto,
        TurnDto, TurnRecordSchema,
    )),
    modifiers(&Token),
)]
struct Document;

/// The document, made once.
pub(crate) async fn document() -> HttpResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut document = Document::openapi();
        add_problems(&mut document, own);
        for vocabulary in FOREIGN {
            document.merge((vocabulary.document)());
        }
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

fn own(method: &str, path: &str) -> &'static [Code] {
    match (method, path) {
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
        ("get", "/ws") => {
            &[Code::UpgradeRequired, Code::DialectUnknown, Code::ValidationFailed, Code::CapacityExhausted]
        }
        _ => &[],
    }
}
