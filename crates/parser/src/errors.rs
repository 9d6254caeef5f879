//! Classifies the errors that agents report.
//!
//! Agents name their errors in fields, or in texts that quote the model's API. Formats differ in where the words are,
//! and hardly in the words.

use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ErrorClass};

use crate::fields::{self, raw_structs};

/// Phrases of error texts, in lower case. The first phrase that is found determines the class.
const PHRASES: [(&str, ErrorClass); 42] = [
    ("rate limit", ErrorClass::RateLimit),
    ("usage limit", ErrorClass::RateLimit),
    ("too many requests", ErrorClass::RateLimit),
    ("overloaded", ErrorClass::Overloaded),
    ("at capacity", ErrorClass::Overloaded),
    ("timed out", ErrorClass::Timeout),
    ("timeout", ErrorClass::Timeout),
    ("connection", ErrorClass::Network),
    ("econn", ErrorClass::Network),
    ("enotfound", ErrorClass::Network),
    ("fetch failed", ErrorClass::Network),
    ("invalid api key", ErrorClass::Authentication),
    ("invalid x-api-key", ErrorClass::Authentication),
    ("run /login", ErrorClass::Authentication),
    ("authenticat", ErrorClass::Authentication),
    ("credit balance", ErrorClass::InvalidRequest),
    ("prompt is too long", ErrorClass::InvalidRequest),
    ("request too large", ErrorClass::InvalidRequest),
    ("output token maximum", ErrorClass::InvalidRequest),
    ("usage policy", ErrorClass::InvalidRequest),
    ("safeguards", ErrorClass::InvalidRequest),
    ("selected model", ErrorClass::InvalidRequest),
    ("no conversation found", ErrorClass::InvalidRequest),
    ("--resume requires", ErrorClass::InvalidRequest),
    ("context window", ErrorClass::InvalidRequest),
    ("quota", ErrorClass::RateLimit),
    ("high demand", ErrorClass::Overloaded),
    ("unauthorized", ErrorClass::Authentication),
    ("stream disconnected", ErrorClass::Network),
    // The model's answer was cut or garbled, in the words of programs that parse it.
    ("in json at position", ErrorClass::Network),
    ("incomplete json", ErrorClass::Network),
    ("empty response", ErrorClass::Network),
    ("error sending request", ErrorClass::Network),
    ("network error", ErrorClass::Network),
    ("getaddrinfo", ErrorClass::Network),
    ("socket hang up", ErrorClass::Network),
    ("service unavailable", ErrorClass::Overloaded),
    ("bad gateway", ErrorClass::Overloaded),
    ("internal server error", ErrorClass::Overloaded),
    // A malformed request, in the words of servers that validate it.
    ("input should be", ErrorClass::InvalidRequest),
    ("no previous sessions found", ErrorClass::InvalidRequest),
    ("does not have permission to use", ErrorClass::Authentication),
];

/// The errors with which programs exit without starting their turn, in lower case: recorded from Claude Code 1.0.30 to
/// 2.1.330, Codex 0.169, Gemini CLI 0.61 and opencode 1.18.
const COMPLAINTS: [(&str, ErrorClass); 12] = [
    ("no conversation found with session id", ErrorClass::InvalidRequest),
    ("requires a valid session id", ErrorClass::InvalidRequest),
    ("no rollout found for thread", ErrorClass::InvalidRequest),
    ("session not found", ErrorClass::InvalidRequest),
    ("invalid session identifier", ErrorClass::InvalidRequest),
    ("error: unexpected argument", ErrorClass::InvalidRequest),
    ("error: unknown option", ErrorClass::InvalidRequest),
    ("unknown argument", ErrorClass::InvalidRequest),
    ("no prompt provided via stdin", ErrorClass::InvalidRequest),
    ("input must be provided", ErrorClass::InvalidRequest),
    ("not inside a trusted directory", ErrorClass::InvalidRequest),
    ("please run /login", ErrorClass::Authentication),
];

/// The words before an HTTP status in an error text, in lower case. Punctuation and spaces may stand between them and
/// the status, as in `status: 429` and `rejected (429)`.
const BEFORE_STATUS: [&str; 13] = [
    "api error",
    "status code",
    "status_code",
    "statuscode",
    "status",
    "error code",
    "rejected",
    "http/1.0",
    "http/1.1",
    "http/2",
    "http/2.0",
    "http/3",
    "http",
];
/// The words after an HTTP status: `429 status code (no body)`.
const AFTER_STATUS: &str = " status code";
/// The maximum nesting depth of an error in an error. Deeper errors are treated as text.
const QUOTED_DEPTH_MAX: usize = 4;

pub(crate) fn agent_error(class: ErrorClass, code: Option<&str>, text: String) -> AgentError {
    AgentError::new(class, code, text)
}

pub(crate) fn of_name(name: &str) -> Option<ErrorClass> {
    Some(match name {
        "rate_limit" | "rate_limit_error" => ErrorClass::RateLimit,
        "overloaded" | "overloaded_error" => ErrorClass::Overloaded,
        "authentication_failed" | "authentication_error" | "permission_error" | "oauth_org_not_allowed" => {
            ErrorClass::Authentication
        }
        "invalid_request"
        | "invalid_request_error"
        | "not_found_error"
        | "request_too_large"
        | "billing_error"
        | "model_not_found"
        | "max_output_tokens" => ErrorClass::InvalidRequest,
        "connection_failed" => ErrorClass::Network,
        "timeout" | "timeout_error" => ErrorClass::Timeout,
        _ => return None,
    })
}

/// The class of an HTTP status. Any server failure counts as overload, because the remedy is the same: retry later.
pub(crate) fn of_status(status: u16) -> Option<ErrorClass> {
    Some(match status {
        429 => ErrorClass::RateLimit,
        401 | 403 => ErrorClass::Authentication,
        408 | 504 => ErrorClass::Timeout,
        400..500 => ErrorClass::InvalidRequest,
        500..600 => ErrorClass::Overloaded,
        _ => return None,
    })
}

/// An error of which only the text is known. If the text quotes an answer of the model's API, the answer determines the
/// class, and its message is the text of the error.
pub(crate) fn told(text: &str) -> AgentError {
    match quoted(text) {
        (Some(class), Some(message)) => agent_error(class, None, message),
        (class, _) => {
            let class = class.or_else(|| of_text(text)).unwrap_or(ErrorClass::Unknown);
            agent_error(class, None, text.to_owned())
        }
    }
}

/// Classifies a text. If it contains several signs, the first known one determines the class.
pub(crate) fn of_text(text: &str) -> Option<ErrorClass> {
    let text = text.to_lowercase();
    let phrase = || PHRASES.iter().find(|(phrase, _)| text.contains(phrase)).map(|(_, class)| *class);
    status_in(&text).and_then(of_status).or_else(phrase)
}

/// The class of the HTTP status in a text. `None` if there is no such status.
pub(crate) fn of_status_in(text: &str) -> Option<ErrorClass> {
    status_in(&text.to_lowercase()).and_then(of_status)
}

/// The first number in a text that is the HTTP status of an error, judged by the words beside it.
fn status_in(text: &str) -> Option<u16> {
    let ends = BEFORE_STATUS.iter().flat_map(|word| text.match_indices(word).map(|(at, _)| at + word.len()));
    let mut after = ends.filter_map(|end| {
        let (digits, rest) = text[end..].trim_start_matches([' ', ':', '=', '(', '"']).split_at_checked(3)?;
        (!rest.starts_with(char::is_alphanumeric)).then_some(digits)
    });
    let before = text.match_indices(AFTER_STATUS);
    let mut before = before.filter_map(|(at, _)| text.get(at.checked_sub(3)?..at));
    let is_known = |digits: &str| {
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
        number.filter(|status| of_status(*status).is_some())
    };
    after.find_map(is_known).or_else(|| before.find_map(is_known))
}

/// The class of an error that a program prints on standard error instead of starting its turn.
pub(crate) fn of_complaint(stderr: &str) -> Option<ErrorClass> {
    let stderr = stderr.to_lowercase();
    COMPLAINTS.iter().find(|(phrase, _)| stderr.contains(phrase)).map(|(_, class)| *class)
}

raw_structs! {
    /// An answer of the model's API: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"…"}}`,
    /// `{"type":"overloaded_error","message":"…"}` and the like.
    struct Answer { error, kind = "type", code, message }
}

/// Parses the first JSON object in a text as an answer of the API. Returns the class of the error and its message.
fn quoted(text: &str) -> (Option<ErrorClass>, Option<String>) {
    let (mut class, mut message) = (None, None);
    let Some(at) = text.find('{') else { return (class, message) };
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<&RawValue>();
    let mut next = values.next().and_then(Result::ok);
    for _ in 0..QUOTED_DEPTH_MAX {
        let Some(raw) = next else { break };
        let answer: Answer<'_> = fields::read(Some(raw));
        let by_name = || of_name(&fields::text(answer.kind)?);
        let by_code = || of_status(fields::number(answer.code)?);
        class = by_name().or_else(by_code).or(class);
        message = fields::text(answer.message).map(Into::into).or(message);
        next = answer.error;
    }
    (class, message)
}

#[cfg(test)]
mod tests;
