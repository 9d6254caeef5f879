//! The part of the OpenAPI document about AG-UI's routes.

use utoipa::OpenApi;

use super::dto::{CapabilitiesDto, RunInputBody};
use super::handlers::{runs, threads};
use crate::error::Code;
use crate::refusals::{STORE, add_problems};

#[derive(OpenApi)]
#[openapi(
    info(title = "", description = ""),
    paths(runs::run, runs::run_of_type, runs::capabilities, threads::connect, threads::cancel),
    components(schemas(RunInputBody, CapabilitiesDto))
)]
struct AgUiDocument;

/// The problems of a run, besides those of the store.
const RUN: &[Code] = &[
    Code::NotFound,
    Code::RunnerUnknown,
    Code::AgentReadOnly,
    Code::AgentDeleted,
    Code::QueueFull,
    Code::IdempotencyMismatch,
    Code::CursorMalformed,
    Code::CursorAhead,
    Code::ImagesNotAccepted,
];

/// The problems of the stream of a thread, and of its cancellation.
const THREAD: &[Code] = &[
    Code::CursorMalformed,
    Code::CursorAhead,
    Code::ValidationFailed,
    Code::StoreFailed,
    Code::StoreBusy,
    Code::ShuttingDown,
    Code::CapacityExhausted,
];

/// Returns the part of the document about these routes.
pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    let mut document = AgUiDocument::openapi();
    add_problems(&mut document, own);
    document
}

fn own(method: &str, path: &str) -> Vec<Code> {
    match (method, path) {
        ("post", "/ag-ui" | "/ag-ui/{type}") => [RUN, &STORE].concat(),
        (_, "/ag-ui/threads/{id}" | "/ag-ui/threads/{id}/cancel") => THREAD.to_vec(),
        _ => Vec::new(),
    }
}
