//! The part of the OpenAPI document about the AI SDK's routes.

use utoipa::OpenApi;

use super::dto::ChatBody;
use super::{handlers, history, socket};
use crate::error::Code;
use crate::refusals::add_problems;

#[derive(OpenApi)]
#[openapi(
    info(title = "", description = ""),
    paths(
        handlers::chat_say,
        handlers::chat_stream,
        handlers::chat_stop,
        history::chat_messages,
        socket::chat_socket
    ),
    components(schemas(ChatBody))
)]
struct AiSdkDocument;

/// Returns the part of the document about these routes.
pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    let mut document = AiSdkDocument::openapi();
    add_problems(&mut document, |method, path| own(method, path).to_vec());
    document
}

fn own(method: &str, path: &str) -> &'static [Code] {
    match (method, path) {
        ("post", "/api/chat") => {
            &[Code::RunnerUnknown, Code::AgentDeleted, Code::QueueFull, Code::IdempotencyMismatch]
        }
        ("get", "/api/chat/{id}/messages" | "/api/chat/{id}/stream") => &[Code::ValidationFailed],
        ("get", "/api/chat") => &[Code::UpgradeRequired, Code::ValidationFailed],
        _ => &[],
    }
}
