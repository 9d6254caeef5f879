//! What kind of error the agent tells.
//!
//! Newer versions name the error in fields, older ones only in its text; `error: "unknown"` and
//! `error: "server_error"` say nothing. So the first of these that is known decides: the name, the API's type,
//! the HTTP status, the status in the text, a phrase of the text.

use tokenrail_domain::{AgentError, ErrorClass};

use super::lines::{self, Labelled, MessageLine, Raw, ResultLine};

/// The model whose messages the agent writes itself.
const SYNTHETIC: &str = "<synthetic>";
/// What 1.0 and 2.0 print in place of an answer without calling it an error.
const ERROR_OPENINGS: [&str; 5] =
    ["API Error", "Invalid API key", "Credit balance is too low", "Prompt is too long", "Request timed out"];
/// Phrases of error texts, in lower case; the first one that is found decides.
const PHRASES: [(&str, ErrorClass); 22] = [
    ("rate limit", ErrorClass::RateLimit),
    ("usage limit", ErrorClass::RateLimit),
    ("overloaded", ErrorClass::Overloaded),
    ("at capacity", ErrorClass::Overloaded),
    ("timed out", ErrorClass::Timeout),
    ("timeout", ErrorClass::Timeout),
    ("connection", ErrorClass::Network),
    ("econn", ErrorClass::Network),
    ("enotfound", ErrorClass::Network),
    ("fetch failed", ErrorClass::Network),
    ("invalid api key", ErrorClass::Authentication),
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
];

/// The fields that tell an error; assistant lines and results have the same.
#[derive(Default)]
pub(super) struct Fault<'a> {
    pub(super) error: Raw<'a>,
    pub(super) api_error: Raw<'a>,
    pub(super) status: Raw<'a>,
    pub(super) api_type: Raw<'a>,
}

impl<'a> Fault<'a> {
    pub(super) fn of_message(line: &MessageLine<'a>) -> Self {
        Self {
            error: line.error,
            api_error: line.api_error,
            status: line.api_error_status,
            api_type: line.api_error_type,
        }
    }

    pub(super) fn of_result(line: &ResultLine<'a>) -> Self {
        Self {
            error: None,
            api_error: line.api_error,
            status: line.api_error_status,
            api_type: line.api_error_type,
        }
    }

    /// The error with its text.
    pub(super) fn tell(&self, text: &str) -> AgentError {
        let names = [self.error, self.api_error, self.api_type];
        let class = names
            .into_iter()
            .find_map(|name| of_name(&lines::text(name)?))
            .or_else(|| of_status(lines::number(self.status)?))
            .or_else(|| of_text(text))
            .unwrap_or(ErrorClass::Unknown);
        agent_error(class, None, text.to_owned())
    }
}

/// An error of the model's API, as it streams one: `{"type":"overloaded_error","message":"Overloaded"}`.
pub(super) fn of_api(error: Raw<'_>) -> AgentError {
    let Labelled { type_name, message, .. } = lines::read(error);
    let text = lines::text(message).or_else(|| lines::text(error));
    let text = text.unwrap_or("the model's API reports an error".into());
    Fault { api_type: type_name, ..Fault::default() }.tell(&text)
}

pub(super) fn agent_error(class: ErrorClass, code: Option<&str>, text: String) -> AgentError {
    AgentError {
        class,
        code: code.map(str::to_owned),
        text,
        retry_after_ms: None,
        recoverable: class.is_recoverable(),
    }
}

/// Whether an assistant line is no answer but the agent's own report of an error.
pub(super) fn is_error(line: &MessageLine<'_>, model: Raw<'_>, text: &str) -> bool {
    lines::is_true(line.is_api_error_message)
        || line.error.is_some()
        || (lines::text(model).as_deref() == Some(SYNTHETIC)
            && ERROR_OPENINGS.iter().any(|opening| text.starts_with(opening)))
}

fn of_name(name: &str) -> Option<ErrorClass> {
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

/// Any failure of the server counts as overload: what can be done about it is the same, to try again later.
fn of_status(status: u16) -> Option<ErrorClass> {
    Some(match status {
        429 => ErrorClass::RateLimit,
        401 | 403 => ErrorClass::Authentication,
        408 | 504 => ErrorClass::Timeout,
        400..500 => ErrorClass::InvalidRequest,
        500..600 => ErrorClass::Overloaded,
        _ => return None,
    })
}

fn of_text(text: &str) -> Option<ErrorClass> {
    let status = text.strip_prefix("API Error: ").and_then(|rest| rest.get(..3)?.parse().ok());
    status.and_then(of_status).or_else(|| {
        let text = text.to_lowercase();
        PHRASES.iter().find(|(phrase, _)| text.contains(phrase)).map(|(_, class)| *class)
    })
}
