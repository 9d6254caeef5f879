//! Classifies the errors that an API reports.

use std::borrow::Cow;

use tokenrail_domain::{AgentError, ErrorClass};

use crate::errors::{agent_error, of_name, of_status, of_text};
use crate::fields::{self, Raw, raw_structs};

/// The maximum number of characters shown of an answer that does not contain an error message.
const SHOWN_CHARS_MAX: usize = 200;

raw_structs! {
    /// An error, or an answer that contains one. Each API and each server has its own subset of these fields.
    struct Failure { error, kind = "type", code, message, detail }
}

/// The error for an answer that ended for a reason other than completion.
pub(super) fn broken_off(class: ErrorClass, reason: &str) -> AgentError {
    agent_error(class, None, format!("the model API stopped its response early: {reason}"))
}

/// The error that an event reports in the middle of a stream: a text, or an object with a type.
pub(super) fn told(error: Raw<'_>) -> AgentError {
    let failure: Failure<'_> = fields::read(error);
    let message = fields::text(failure.message).or_else(|| fields::text(error));
    let text = message.unwrap_or_else(|| match error {
        Some(raw) => shown(raw.get()).into(),
        None => "the API reported an error without details".into(),
    });
    // A code is more exact than a type: some servers report a wrong key with the type of an invalid request.
    let class = [failure.code, failure.kind]
        .into_iter()
        .find_map(|name| class_of(&fields::text(name)?))
        .or_else(|| of_status(fields::number(failure.code)?))
        .or_else(|| of_text(&text))
        .unwrap_or(ErrorClass::Unknown);
    agent_error(class, None, text.into_owned())
}

fn class_of(name: &str) -> Option<ErrorClass> {
    Some(match name {
        "rate_limit_exceeded" | "insufficient_quota" | "tokens" | "requests" => ErrorClass::RateLimit,
        "api_error" | "server_error" | "internal_server_error" | "service_unavailable" => {
            ErrorClass::Overloaded
        }
        "invalid_api_key" => ErrorClass::Authentication,
        "context_length_exceeded" | "content_filter" | "content_policy_violation" | "invalid_prompt" => {
            ErrorClass::InvalidRequest
        }
        other => return of_name(other),
    })
}

/// The message of an answer that is an error, or the beginning of the answer if it has no message. `None` if both are
/// empty.
pub(super) fn message_in(answer: Option<&str>) -> Option<String> {
    let answer = answer?.trim();
    let outer: Failure<'_> = fields::reread(answer);
    let inner: Failure<'_> = fields::read(outer.error);
    let places = [inner.message, outer.error, outer.message, outer.detail];
    let message = places.into_iter().find_map(fields::text).filter(|message| !message.is_empty());
    let message = message.map_or_else(|| shown(answer), Cow::into_owned);
    Some(message).filter(|message| !message.is_empty())
}

fn shown(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let more = if shown.len() < text.len() { " …" } else { "" };
    format!("{shown}{more}")
}
