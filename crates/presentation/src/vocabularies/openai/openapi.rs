//! The part of the OpenAPI document about the routes of OpenAI's clients, whose errors have OpenAI's format.

use utoipa::{Modify, OpenApi};

use super::dto::{OpenAiError, OpenAiProblem};
use super::handlers::{completions, create, models, responses};
use crate::error::Code;
use crate::refusals::{BODY, EVERYWHERE, STORE, add, add_foreign, operations};

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
        for (method, path, operation) in operations(document) {
            operation.operation_id = operation.operation_id.take().map(|id| format!("openai_{id}"));
            add(operation, &EVERYWHERE);
            for code in refusals(path, method) {
                add_foreign(operation, code, "OpenAiProblem");
            }
        }
    }
}

fn refusals(path: &str, method: &str) -> Vec<Code> {
    let mut codes = EVERYWHERE.to_vec();
    if path.contains("{id}") {
        codes.push(Code::NotFound);
    }
    if !path.contains("/models") {
        codes.extend(STORE);
    }
    let resumes = ["/openai/v1/responses/{id}", "/openai/v1/chat/completions/{id}"].contains(&path);
    if resumes && method == "get" {
        codes.extend([Code::CursorAhead, Code::ShuttingDown]);
    }
    let creates = ["/openai/v1/responses", "/openai/v1/chat/completions"].contains(&path);
    if creates && method == "post" {
        codes.extend(BODY);
        codes.extend([Code::RunnerUnknown, Code::QueueFull, Code::AgentReadOnly, Code::IdempotencyMismatch]);
    }
    codes
}
