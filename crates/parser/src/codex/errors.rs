//! What kind of error Codex tells.
//!
//! `app-server` names it, sometimes with the HTTP status; `exec` has its text only, in which the status or the answer
//! of the API may be quoted.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ErrorClass};

use super::lines::Failure;
use crate::errors;
use crate::fields::{self, Raw};

/// What the names of errors that are about a connection have.
#[derive(Deserialize, Default)]
struct Details<'a> {
    #[serde(borrow, rename = "httpStatusCode")]
    status: Raw<'a>,
}

pub(super) fn of(failure: &Failure<'_>) -> AgentError {
    let text = fields::text(failure.message).filter(|text| !text.is_empty());
    let mut error = errors::told(text.as_deref().unwrap_or("the agent reports an error"));
    let named = failure.info.and_then(named);
    // Names of what has become of a connection say less than the last answer.
    let answered =
        named.filter(|class| *class == ErrorClass::Network).and_then(|_| errors::of_status_in(&error.text));
    if let Some(class) = answered.or(named) {
        error.class = class;
        error.recoverable = class.is_recoverable();
    }
    error
}

pub(super) fn interrupted() -> AgentError {
    errors::agent_error(ErrorClass::Unknown, None, "the agent was interrupted".to_owned())
}

/// A name is a string, or the only field of an object.
fn named(info: &RawValue) -> Option<ErrorClass> {
    if let Some(name) = fields::text(Some(info)) {
        return of_name(&name);
    }
    let named: BTreeMap<&str, &RawValue> = serde_json::from_str(info.get()).ok()?;
    let (name, details) = named.first_key_value()?;
    let details: Details<'_> = fields::read(Some(details));
    errors::of_status(fields::number(details.status).unwrap_or(0)).or_else(|| of_name(name))
}

fn of_name(name: &str) -> Option<ErrorClass> {
    Some(match name {
        "usageLimitExceeded" => ErrorClass::RateLimit,
        "internalServerError" | "serverOverloaded" => ErrorClass::Overloaded,
        "unauthorized" => ErrorClass::Authentication,
        "badRequest" | "contextWindowExceeded" => ErrorClass::InvalidRequest,
        "httpConnectionFailed"
        | "responseStreamConnectionFailed"
        | "responseStreamDisconnected"
        | "responseTooManyFailedAttempts" => ErrorClass::Network,
        "sandboxError" => ErrorClass::Process,
        _ => return None,
    })
}
