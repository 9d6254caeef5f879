//! What several vocabularies say of an agent in the same words.

use serde::Serialize;
use tokenrail_domain::AgentError;
use utoipa::ToSchema;

use super::IdText;

/// What went wrong with an agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentError)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentError", optional_fields))]
pub(crate) struct AgentErrorDto<'a> {
    /// `rate_limit`, `overloaded`, `authentication`, `invalid_request`, `network`, `timeout`, `process`, `protocol`
    /// or `unknown`.
    #[cfg_attr(test, ts(type = "ErrorClass"))]
    pub(crate) class: &'static str,
    /// Tokenrail's own code, where the error is not the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) code: Option<&'a str>,
    /// The sentence; of an error event it is the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) message: Option<&'a str>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) retry_after: Option<f64>,
    /// Whether the same prompt may succeed later.
    pub(crate) recoverable: bool,
}

impl<'a> From<&'a AgentError> for AgentErrorDto<'a> {
    fn from(error: &'a AgentError) -> Self {
        let AgentError { class, code, text, retry_after_ms, recoverable } = error;
        Self {
            class: class.as_str(),
            code: code.as_deref(),
            message: Some(text),
            retry_after: retry_after_ms.map(|ms| ms as f64 / 1000.0),
            recoverable: *recoverable,
        }
    }
}

/// The agent that a command was taken for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentRef)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentRef"))]
pub(crate) struct AgentRefDto {
    #[schema(value_type = String, format = "uuid")]
    pub(crate) agent_id: IdText,
}
