//! Classifies the errors that Codex reports.
//!
//! `app-server` names the error, sometimes with the HTTP status. `exec` reports only its text, which may quote the
//! status or the answer of the API.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ErrorClass};

use super::lines::Failure;
use crate::errors;
use crate::fields::{self, raw_structs};

raw_structs! {
    /// The details of errors that concern a connection.
    struct Details { status = "httpStatusCode" }
}

pub(super) fn of(failure: &Failure<'_>) -> AgentError {
    let text = fields::text(failure.message).filter(|text| !text.is_empty());
    let mut error = errors::told(text.as_deref().unwrap_or("the agent reported an error"));
    let named = failure.info.and_then(named);
    // The name of a connection error is less specific than the last HTTP status in the text.
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

/// The class of a named error. The name is a string, or the only field of an object.
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
