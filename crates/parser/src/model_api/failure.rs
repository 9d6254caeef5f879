//! What kind of error an API tells.

use std::borrow::Cow;

use serde::Deserialize;
use tokenrail_domain::{AgentError, ErrorClass};

use crate::errors::{agent_error, of_name, of_status, of_text};
use crate::fields::{self, Raw};

/// How much of an answer is shown that does not say what was wrong.
const SHOWN_CHARS_MAX: usize = 200;

/// An error, or an answer that holds one. Each API and each server has its own subset of these.
#[derive(Deserialize, Default)]
struct Failure<'a> {
    #[serde(borrow)]
    error: Raw<'a>,
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow)]
    detail: Raw<'a>,
}

/// The error of an answer that has ended for a reason for which whole answers do not.
pub(super) fn broken_off(class: ErrorClass, reason: &str) -> AgentError {
    agent_error(class, None, format!("the upstream broke its answer off: {reason}"))
}

/// The error that an event tells in the middle of a stream: a text, or an object that says what it is of.
pub(super) fn told(error: Raw<'_>) -> AgentError {
    let failure: Failure<'_> = fields::read(error);
    let message = fields::text(failure.message).or_else(|| fields::text(error));
    let text = message.unwrap_or_else(|| match error {
        Some(raw) => shown(raw.get()).into(),
        None => "the API reports an error and does not say which".into(),
    });
    // A code is more exact than a type: a wrong key is an invalid request to some.
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

/// What an answer that is an error says to its reader; none where it says nothing.
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
