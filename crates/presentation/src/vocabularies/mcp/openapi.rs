//! The part of the OpenAPI document about the route of MCP's clients, whose errors are those of JSON-RPC.

use utoipa::{Modify, OpenApi};

use super::dto::Failed;
use super::handlers;
use crate::refusals::{BODY, EVERYWHERE, STORE, add, add_foreign};

#[derive(OpenApi)]
#[openapi(
    info(title = "", description = ""),
    paths(handlers::message),
    components(schemas(Failed)),
    modifiers(&Refusals),
)]
struct McpDocument;

/// Returns the part of the document about this route.
pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    McpDocument::openapi()
}

/// Gives the operation an id that no other vocabulary uses, and adds its errors.
struct Refusals;

impl Modify for Refusals {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let operations = document.paths.paths.values_mut().filter_map(|item| item.post.as_mut());
        for operation in operations {
            operation.operation_id = Some("mcp_message".to_owned());
            add(operation, &EVERYWHERE);
            for code in EVERYWHERE.iter().chain(&BODY).chain(&STORE) {
                add_foreign(operation, *code, "McpError");
            }
        }
    }
}
