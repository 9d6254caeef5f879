//! Objects about an agent that several vocabularies share.

use serde::Serialize;
use tokenrail_domain::AgentError;
use utoipa::ToSchema;

use super::IdText;

/// The error of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentError)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentError", optional_fields))]
pub(crate) struct AgentErrorDto<'a> {
    /// `rate_limit`, `overloaded`, `authentication`, `invalid_request`, `network`, `timeout`, `process`, `protocol`
    /// or `unknown`.
    #[cfg_attr(test, ts(type = "ErrorClass"))]
    pub(crate) class: &'static str,
    /// Tokenrail's own error code; absent if the agent reported the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) code: Option<&'a str>,
    /// The error message; in an error event, it is also the `content`.
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

/// The agent that accepted a command.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentRef)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentRef"))]
pub(crate) struct AgentRefDto {
    #[schema(value_type = String, format = "uuid")]
    pub(crate) agent_id: IdText,
}
