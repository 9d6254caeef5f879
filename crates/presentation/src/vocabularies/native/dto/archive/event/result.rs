//! The result of a turn of an exported agent, to write and to read.

use serde::{Deserialize, Serialize};
use tokenrail_domain::{AgentError, ErrorClass, TurnOutcome, TurnResult};

use super::super::GivenJson;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorBody {
    class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    recoverable: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultBody {
    outcome: String,
    text: String,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u32>,
    /// As text, because a number might not be read back exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<GivenJson>,
    message_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

impl From<&AgentError> for ErrorBody {
    fn from(error: &AgentError) -> Self {
        let AgentError { class, code, text, retry_after_ms, recoverable } = error.clone();
        Self { class: class.as_str().to_owned(), code, text, retry_after_ms, recoverable }
    }
}

impl From<&TurnResult> for ResultBody {
    fn from(result: &TurnResult) -> Self {
        // All fields, so that none is missing here.
        let TurnResult {
            origin,
            error,
            message_count,
            usage,
            cost_usd,
            num_turns,
            duration_ms,
            text,
            outcome,
        } = result.clone();
        Self {
            outcome: outcome.as_str().to_owned(),
            text,
            duration_ms,
            num_turns,
            cost_usd: cost_usd.map(|cost| cost.to_string()),
            usage: usage.map(GivenJson),
            message_count,
            error: error.as_ref().map(ErrorBody::from),
            origin,
        }
    }
}

impl ErrorBody {
    pub(super) fn into_error(self) -> Result<AgentError, String> {
        let Self { class, code, text, retry_after_ms, recoverable } = self;
        let class = ErrorClass::from_name(&class).ok_or("unknown error class")?;
        Ok(AgentError { class, code, text, retry_after_ms, recoverable })
    }
}

impl ResultBody {
    pub(super) fn into_result(self) -> Result<TurnResult, String> {
        let Self { outcome, text, duration_ms, num_turns, cost_usd, usage, message_count, error, origin } =
            self;
        let cost_usd = match cost_usd.map(|cost| cost.parse::<f64>()) {
            None => None,
            Some(Ok(cost)) if cost.is_finite() => Some(cost),
            Some(_) => return Err("costUsd must be a number".to_owned()),
        };
        Ok(TurnResult {
            outcome: TurnOutcome::from_name(&outcome).ok_or("unknown outcome")?,
            text,
            duration_ms,
            num_turns,
            cost_usd,
            usage: usage.map(|usage| usage.0),
            message_count,
            error: error.map(ErrorBody::into_error).transpose()?,
            origin,
        })
    }
}
