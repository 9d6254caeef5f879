//! Answers to an agent's permission requests, over REST and WebSocket.

#[cfg(test)]
use super::declarations::Declarations;
use serde::Serialize;
use tokenrail_application::{AnswerOutcome, PermissionAnswer};
use utoipa::ToSchema;

use crate::error::Problem;
use crate::json::fields::Fields;

/// The answer to a permission request: exactly one of the two fields.
#[derive(ToSchema)]
#[schema(as = PermissionAnswer, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(
    test,
    derive(ts_rs::TS),
    ts(rename = "PermissionAnswer", rename_all = "camelCase", optional_fields)
)]
pub(crate) struct PermissionBody {
    /// The id of one of the request's options.
    #[schema(min_length = 1, nullable = false)]
    option_id: Option<String>,
    /// `true`: choose none of the options.
    #[schema(nullable = false)]
    cancelled: Option<bool>,
}

/// The state of a permission request after an answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PermissionState)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "PermissionState", optional_fields))]
pub(crate) struct PermissionStateDto {
    pub(crate) request_id: String,
    /// `pending` if the agent has not accepted the answer yet; its events will show the outcome.
    #[cfg_attr(test, ts(type = "\"selected\" | \"cancelled\" | \"pending\""))]
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    option_id: Option<String>,
}

impl PermissionStateDto {
    pub(crate) fn new(answer: PermissionAnswer, outcome: AnswerOutcome) -> Self {
        let PermissionAnswer { question, option } = answer;
        let state = match (outcome, &option) {
            (AnswerOutcome::HandedOn, _) => "pending",
            (AnswerOutcome::Settled, Some(_)) => "selected",
            (AnswerOutcome::Settled, None) => "cancelled",
        };
        Self { request_id: question, state, option_id: option }
    }
}

/// Reads an answer to the permission request `question`.
pub(crate) fn permission(question: String, body: &[u8], depth: usize) -> Result<PermissionAnswer, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let option = chosen(&mut fields);
    fields.finish()?;
    Ok(PermissionAnswer { question, option })
}

/// Reads the chosen option. `None` if the client chooses none.
pub(super) fn chosen(fields: &mut Fields) -> Option<String> {
    let option = fields.text("optionId", |_| None);
    let cancelled = fields.flag("cancelled").unwrap_or(false);
    if fields.are_good() && option.is_some() == cancelled {
        fields.refuse(
            "optionId",
            "must be one of the options of the permission request; to choose none, send \"cancelled\": true",
        );
    }
    option
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<PermissionStateDto>();
    out.of::<PermissionBody>();
}
