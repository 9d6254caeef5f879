//! Answers to an agent's permission requests, over REST and WebSocket.

use std::collections::BTreeSet;

#[cfg(test)]
use super::declarations::Declarations;
use serde::Serialize;
use tokenrail_application::{AnswerOutcome, PermissionAnswer};
use tokenrail_domain::PermissionReply;
use utoipa::ToSchema;

use crate::error::Problem;
use crate::json::fields::Fields;

/// The maximum number of options in one answer.
const ANSWER_OPTIONS: usize = 64;

/// The answer to a permission request: one option, something else that the request accepts, or `cancelled`.
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
    /// Several options of the kind `allow_once`, if the request accepts `several`.
    #[schema(min_items = 1, max_items = 64, nullable = false)]
    option_ids: Option<Vec<String>>,
    /// An answer in the user's own words, if the request accepts `text`. If it also accepts `several`, options can be
    /// sent with it.
    #[schema(pattern = r"\S", nullable = false)]
    text: Option<String>,
    /// A note to the agent, with an option that rejects, if the request accepts `note`.
    #[schema(pattern = r"\S", nullable = false)]
    note: Option<String>,
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
    /// All options of the answer, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    option_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    note: Option<String>,
}

impl PermissionStateDto {
    pub(crate) fn new(answer: PermissionAnswer, outcome: AnswerOutcome) -> Self {
        let PermissionAnswer { request_id, reply } = answer;
        let state = match outcome {
            AnswerOutcome::HandedOn => "pending",
            AnswerOutcome::Settled if reply == PermissionReply::default() => "cancelled",
            AnswerOutcome::Settled => "selected",
        };
        let option_id = reply.first_option().map(str::to_owned);
        let option_ids = reply.several_options().map(<[String]>::to_vec);
        let PermissionReply { options: _, text, note } = reply;
        Self { request_id, state, option_id, option_ids, text, note }
    }
}

/// Reads an answer to the permission request `request_id`.
pub(crate) fn answer(request_id: String, body: &[u8], depth: usize) -> Result<PermissionAnswer, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let reply = reply(&mut fields);
    fields.finish()?;
    Ok(PermissionAnswer { request_id, reply })
}

/// Reads a reply. Whether the request accepts it is not known here.
pub(super) fn reply(fields: &mut Fields) -> PermissionReply {
    let option = fields.text("optionId", |_| None);
    let options = fields.texts("optionIds", wrong_options);
    let blank = |text: &str| text.trim().is_empty().then_some("must not be blank");
    let (text, note) = (fields.text("text", blank), fields.text("note", blank));
    let cancelled = fields.flag("cancelled").unwrap_or(false);
    if !fields.are_good() {
        return PermissionReply::default();
    }
    if option.is_some() && options.is_some() {
        fields.refuse("optionIds", "must not be sent together with optionId");
    }
    let answers = option.is_some() || options.is_some() || text.is_some();
    if answers == cancelled {
        fields.refuse(
            "optionId",
            "must be one of the options of the permission request; to choose none, send \"cancelled\": true",
        );
    }
    PermissionReply::from_parts(option, options, text, note)
}

fn wrong_options(options: &[String]) -> Option<&'static str> {
    let distinct: BTreeSet<_> = options.iter().collect();
    match options.len() {
        0 => Some("must contain at least one option; to choose none, send \"cancelled\": true"),
        many if ANSWER_OPTIONS < many => Some("must contain at most 64 options"),
        many if distinct.len() < many => Some("must not contain an option twice"),
        _ => None,
    }
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<PermissionStateDto>();
    out.of::<PermissionBody>();
}
