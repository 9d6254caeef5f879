//! The part of the OpenAPI document about the route of MCP's clients, whose errors are those of JSON-RPC.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::dto::Failed;
use super::handlers;
use crate::error::Code;
use crate::refusals::{BODY, EVERYWHERE, STORE, add};

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
                refuse(operation, *code);
            }
        }
    }
}

/// Adds an error of JSON-RPC, next to the problem document with the same status, which this path does not return.
fn refuse(operation: &mut Operation, code: Code) {
    let status = match code.status().as_u16() {
        422 => "400".to_owned(),
        status => status.to_string(),
    };
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("McpError"))).build();
    let mut response = ResponseBuilder::new().description("an error").build();
    if let Some(RefOr::T(known)) = operation.responses.responses.get(&status) {
        response = known.clone();
    }
    response.content.insert("application/json".to_owned(), content.into());
    operation.responses.responses.insert(status, response.into());
}
