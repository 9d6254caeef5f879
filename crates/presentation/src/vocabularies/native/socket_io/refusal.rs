//! Errors in the format of Engine.IO, also of requests that reach no handler.

use actix_web::http::StatusCode;

use crate::error::Problem;
use crate::foreign_refusals::{ForeignRefusals, Refused};
use crate::vocabularies::native::dto::socket_io::EngineProblem;

/// The errors of everything below Engine.IO's path.
pub(crate) const REFUSALS: ForeignRefusals = ForeignRefusals { below: "/socket.io", write: refused };

fn refused(problem: &Problem) -> Refused {
    let status = problem.code.status();
    let (code, name) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST => {
            (4, "Forbidden")
        }
        _ => (3, "Bad request"),
    };
    let error = EngineProblem { code, message: format!("{name}: {}", problem.sentence()) };
    Refused { status, json: serde_json::to_vec(&error).unwrap_or_default() }
}
