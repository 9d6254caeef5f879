//! Errors as MCP's clients see them: JSON-RPC errors, and results of tools that a model can read.

use actix_web::http::StatusCode;

use super::dto::{Failed, ToolResult, argument};
use crate::error::{FieldProblem, Problem};
use crate::foreign_refusals::{ForeignRefusals, Refused};

/// The errors of requests that are not carried out at all.
pub(in crate::vocabularies) const REFUSALS: ForeignRefusals =
    ForeignRefusals { below: "/mcp", write: refused };

fn refused(problem: &Problem) -> Refused {
    let status = match problem.code.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let failed = Failed::unread(problem.code, sentence(problem));
    Refused { status, json: serde_json::to_vec(&failed).unwrap_or_default() }
}

/// An error of a tool, with its code.
pub(super) fn failed(problem: &Problem) -> ToolResult {
    ToolResult::failed(format!("{} ({})", sentence(problem), problem.code.as_str()))
}

/// What is wrong, with the names of arguments.
pub(super) fn sentence(problem: &Problem) -> String {
    if problem.errors.is_empty() {
        return problem.detail.clone();
    }
    let errors: Vec<_> = problem.errors.iter().map(one).collect();
    errors.join("; ")
}

fn one(error: &FieldProblem) -> String {
    let place = error.pointer.as_deref().map(|pointer| argument(pointer.trim_start_matches('/')));
    match place.or(error.parameter) {
        None | Some("") => error.detail.clone(),
        Some(place) => format!("{place}: {}", error.detail),
    }
}
