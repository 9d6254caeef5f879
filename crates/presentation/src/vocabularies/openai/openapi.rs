//! The part of the OpenAPI document about the routes of OpenAI's clients, whose errors have OpenAI's format.

use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::dto::{OpenAiError, OpenAiProblem};
use super::handlers::{completions, create, models, responses};
use crate::error::Code;
use crate::refusals::{BODY, EVERYWHERE, STORE, add};

#[derive(OpenApi)]
#[openapi(
    info(title = "", description = ""),
    paths(
        create::create, responses::retrieve, responses::cancel, responses::delete, responses::input_items,
        completions::complete, completions::completion, completions::delete_completion, models::models,
        models::model,
    ),
    components(schemas(OpenAiProblem, OpenAiError)),
    modifiers(&Refusals),
)]
struct OpenAiDocument;

/// Returns the part of the document about these routes.
pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    OpenAiDocument::openapi()
}

/// Gives the operations ids that no other vocabulary uses, and adds the errors of each.
struct Refusals;

impl Modify for Refusals {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (path, item) in &mut document.paths.paths {
            let operations = [
                (HttpMethod::Get, &mut item.get),
                (HttpMethod::Post, &mut item.post),
                (HttpMethod::Delete, &mut item.delete),
            ];
            for (method, operation) in operations {
                let Some(operation) = operation else { continue };
                operation.operation_id = operation.operation_id.take().map(|id| format!("openai_{id}"));
                add(operation, &EVERYWHERE);
                refuse(operation, &refusals(path, &method));
            }
        }
    }
}

fn refusals(path: &str, method: &HttpMethod) -> Vec<Code> {
    let mut codes = EVERYWHERE.to_vec();
    if path.contains("{id}") {
        codes.push(Code::NotFound);
    }
    if !path.contains("/models") {
        codes.extend(STORE);
    }
    let resumes = ["/openai/v1/responses/{id}", "/openai/v1/chat/completions/{id}"].contains(&path);
    if resumes && *method == HttpMethod::Get {
        codes.extend([Code::CursorAhead, Code::ShuttingDown]);
    }
    let creates = ["/openai/v1/responses", "/openai/v1/chat/completions"].contains(&path);
    if creates && *method == HttpMethod::Post {
        codes.extend(BODY);
        codes.extend([Code::RunnerUnknown, Code::QueueFull, Code::AgentReadOnly, Code::IdempotencyMismatch]);
    }
    codes
}

/// Adds errors in OpenAI's format, next to the problem documents with the same status, which no path here returns.
fn refuse(operation: &mut Operation, codes: &[Code]) {
    for code in codes {
        let status = match code.status().as_u16() {
            422 => "400".to_owned(),
            status => status.to_string(),
        };
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("OpenAiProblem"))).build();
        let mut response = ResponseBuilder::new().description("an error").build();
        if let Some(RefOr::T(known)) = operation.responses.responses.get(&status) {
            response = known.clone();
        }
        response.content.insert("application/json".to_owned(), content.into());
        operation.responses.responses.insert(status, response.into());
    }
}
