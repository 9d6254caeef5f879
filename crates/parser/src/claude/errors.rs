//! Classifies the errors that Claude Code reports.
//!
//! Newer versions name the error in fields, older ones only in its text. `error: "unknown"` and `error: "server_error"`
//! carry no information. The first known value of these determines the class: the name, the API's type, the HTTP
//! status, the status in the text, a phrase of the text.

use tokenrail_domain::{AgentError, ErrorClass};

use super::lines::{self, Labelled, MessageLine, Raw, ResultLine};
pub(super) use crate::errors::agent_error;
use crate::errors::{of_name, of_status, of_text};

/// The model name of messages that the agent writes itself.
const SYNTHETIC: &str = "<synthetic>";
/// The beginnings of error texts that versions 1.0 and 2.0 print in place of an answer, without marking them as errors.
const ERROR_OPENINGS: [&str; 5] =
    ["API Error", "Invalid API key", "Credit balance is too low", "Prompt is too long", "Request timed out"];

/// The fields that describe an error. Assistant lines and results share them.
#[derive(Default)]
pub(super) struct ReportedError<'a> {
    pub(super) error: Raw<'a>,
    pub(super) api_error: Raw<'a>,
    pub(super) status: Raw<'a>,
    pub(super) api_type: Raw<'a>,
}

impl<'a> ReportedError<'a> {
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

    /// Builds the error with this text.
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

/// An error of the model's API, in its streamed form: `{"type":"overloaded_error","message":"Overloaded"}`.
pub(super) fn of_api(error: Raw<'_>) -> AgentError {
    let Labelled { type_name, message, .. } = lines::read(error);
    let text = lines::text(message).or_else(|| lines::text(error));
    let text = text.unwrap_or("the model's API reported an error".into());
    ReportedError { api_type: type_name, ..ReportedError::default() }.tell(&text)
}

/// Whether an assistant line is the agent's own report of an error and not an answer.
pub(super) fn is_error(line: &MessageLine<'_>, model: Raw<'_>, text: &str) -> bool {
    lines::is_true(line.is_api_error_message)
        || line.error.is_some()
        || (lines::text(model).as_deref() == Some(SYNTHETIC)
            && ERROR_OPENINGS.iter().any(|opening| text.starts_with(opening)))
}
