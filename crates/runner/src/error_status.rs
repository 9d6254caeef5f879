//! What the status of an HTTP response says about an error.

use reqwest::StatusCode;
use tokenrail_domain::ErrorClass;

/// The class of an error response. `server_failure` is the class of a failure inside the server that responded.
pub(crate) fn class_of(status: StatusCode, server_failure: ErrorClass) -> ErrorClass {
    match status.as_u16() {
        401 | 403 | 407 => ErrorClass::Authentication,
        408 | 504 => ErrorClass::Timeout,
        429 => ErrorClass::RateLimit,
        400..500 => ErrorClass::InvalidRequest,
        500..600 => server_failure,
        _ => ErrorClass::Protocol,
    }
}
