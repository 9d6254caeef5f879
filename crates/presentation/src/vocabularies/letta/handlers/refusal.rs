//! Responses, and errors in Letta's own format.

use actix_web::http::header;
use actix_web::{HttpResponse, ResponseError as _};

use crate::error::{FieldProblem, Problem};
use crate::vocabularies::letta::dto::LettaProblem;

/// Prevents Letta's clients from retrying a request that will be refused again. Without this header, they decide by
/// the status alone.
const NO_RETRY: (&str, &str) = ("x-should-retry", "false");

/// Turns the outcome of a request into a response.
pub(super) fn answer(outcome: Result<HttpResponse, Problem>) -> HttpResponse {
    outcome.unwrap_or_else(refused)
}

/// An error in Letta's own format: `{"detail": …}`.
pub(crate) fn refused(problem: Problem) -> HttpResponse {
    let mut response = HttpResponse::build(problem.status_code());
    if let Some(seconds) = problem.retry_after_s {
        response.insert_header((header::RETRY_AFTER, seconds));
    }
    if let Some(allow) = problem.allow {
        response.insert_header((header::ALLOW, allow));
    }
    if !problem.code.retryable() {
        response.insert_header(NO_RETRY);
    }
    let wrong: Vec<_> = problem.errors.iter().map(FieldProblem::sentence).collect();
    let detail = if wrong.is_empty() { problem.detail } else { wrong.join("; ") };
    response.json(LettaProblem { detail: &detail })
}
