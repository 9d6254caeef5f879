//! What every result of a turn shows under the same names.

use serde::Serialize;
use tokenrail_domain::TurnResult;

use crate::json::{AgentErrorDto, Json};

/// The optional fields of a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub(crate) struct ResultDetailsDto<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<AgentErrorDto<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a str>,
}

impl<'a> From<&'a TurnResult> for ResultDetailsDto<'a> {
    fn from(result: &'a TurnResult) -> Self {
        // Each kind of result has its own names for the fields that are ignored here.
        let TurnResult {
            num_turns,
            cost_usd,
            usage,
            error,
            origin,
            outcome: _,
            text: _,
            duration_ms: _,
            message_count: _,
        } = result;
        Self {
            num_turns: *num_turns,
            cost_usd: *cost_usd,
            usage: usage.as_ref().map(Json),
            error: error.as_ref().map(AgentErrorDto::from),
            origin: origin.as_deref(),
        }
    }
}
