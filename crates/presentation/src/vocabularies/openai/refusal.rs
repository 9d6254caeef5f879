//! Errors in OpenAI's format.

use actix_web::http::StatusCode;

use super::dto::{OpenAiError, OpenAiProblem};
use crate::error::{Code, FieldProblem, Problem};
use crate::foreign_refusals::{ForeignRefusals, Refused};

/// The errors of all paths of OpenAI's API, also of those that the guard refuses.
pub(in crate::vocabularies) const REFUSALS: ForeignRefusals =
    ForeignRefusals { below: "/openai", write: refused };

fn refused(problem: &Problem) -> Refused {
    let status = match problem.code.status() {
        // OpenAI has no 422.
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let kind = match status.as_u16() {
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let code = match problem.code {
        Code::Unauthenticated => "invalid_api_key",
        Code::RateLimited => "rate_limit_exceeded",
        Code::RunnerUnknown => "model_not_found",
        code => code.as_str(),
    };
    let first = problem.errors.first();
    let param = match problem.code {
        Code::RunnerUnknown => Some("model".to_owned()),
        // Only Tokenrail's own API has `images`.
        Code::ImagesNotAccepted => {
            first.and_then(place).filter(|place| place != "images").or_else(|| Some("input".to_owned()))
        }
        _ => first.and_then(place),
    };
    let message = first.map_or(&problem.detail, |error| &error.detail);
    let message = match &param {
        Some(param) if first.is_some() => format!("{param}: {message}"),
        _ => message.clone(),
    };
    let error = OpenAiError { message: &message, kind, param: param.as_deref(), code };
    Refused { status, json: serde_json::to_vec(&OpenAiProblem { error }).unwrap_or_default() }
}

/// The place of an error in OpenAI's notation: `input[0].content`.
fn place(error: &FieldProblem) -> Option<String> {
    let Some(pointer) = &error.pointer else { return error.parameter.map(str::to_owned) };
    let mut place = String::new();
    for step in pointer.split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            place.extend(["[", step, "]"]);
        } else {
            place.push_str(if place.is_empty() { "" } else { "." });
            place.push_str(step);
        }
    }
    (!place.is_empty()).then_some(place)
}
