//! Errors as MCP's clients see them: JSON-RPC errors, and results of tools that a model can read.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;

use super::dto::{CallToolResult, Failed, RequestId, argument};
use crate::error::{FieldProblem, Problem};
use crate::foreign_refusals::{ForeignRefusals, Refused};

/// The errors of requests that are not carried out at all.
pub(in crate::vocabularies) const REFUSALS: ForeignRefusals =
    ForeignRefusals { below: "/mcp", write: refused };

fn refused(problem: &Problem) -> Refused {
    refused_as(problem, None)
}

/// The response to a request that cannot be read, apart from its id.
pub(super) fn unreadable(problem: &Problem, id: &RequestId) -> HttpResponse {
    let Refused { status, json } = refused_as(problem, Some(id));
    HttpResponse::build(status).content_type("application/json").body(json)
}

fn refused_as(problem: &Problem, id: Option<&RequestId>) -> Refused {
    let status = match problem.code.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let failed = Failed::unread(id, problem.code, sentence(problem));
    Refused { status, json: serde_json::to_vec(&failed).unwrap_or_default() }
}

/// An error of a tool, with its code.
pub(super) fn failed(problem: &Problem) -> CallToolResult {
    // A tool calls some of its arguments by other names than the rest of the API does.
    CallToolResult::failed(format!("{} ({})", described(problem, argument), problem.code.as_str()))
}

/// The same without the code, for a person.
pub(super) fn why(problem: &Problem) -> String {
    described(problem, argument)
}

/// What is wrong.
pub(super) fn sentence(problem: &Problem) -> String {
    described(problem, |field| field)
}

fn described(problem: &Problem, name: fn(&str) -> &str) -> String {
    if problem.errors.is_empty() {
        return problem.detail.clone();
    }
    let errors: Vec<_> = problem.errors.iter().map(|error| one(error, name)).collect();
    errors.join("; ")
}

fn one(error: &FieldProblem, name: fn(&str) -> &str) -> String {
    let place = error.pointer.as_deref().map(|pointer| name(pointer.trim_start_matches('/')));
    match place.or(error.parameter) {
        None | Some("") => error.detail.clone(),
        Some(place) => format!("{place}: {}", error.detail),
    }
}
