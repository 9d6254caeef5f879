//! The open permission requests of all agents.

#[cfg(test)]
use super::declarations::Declarations;
use serde::Serialize;
use tokenrail_application::{OpenRequest, RequestPlace};
use tokenrail_domain::{Accepts, PermissionOption, Timestamp};
use utoipa::ToSchema;

use crate::error::Problem;
use crate::json::{IdText, IsoTime, Json};

/// An open permission request: an agent asks whether it may do something, and waits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenQuestion)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "OpenQuestion", optional_fields))]
pub(crate) struct OpenQuestionDto<'a> {
    #[schema(value_type = String, format = "uuid")]
    agent_id: IdText,
    request_id: &'a str,
    /// The tool call that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_call_id: Option<&'a str>,
    tool_name: &'a str,
    /// The input that the tool would get. Left out if it is longer than `limits.list_field_bytes`: the event
    /// `permission_request` has all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    input: Option<Json<'a>>,
    options: Vec<OptionDto<'a>>,
    #[schema(value_type = String, format = DateTime)]
    asked_at: IsoTime,
    /// When the request is settled if nobody answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    expires_at: Option<IsoTime>,
    /// The option that is chosen then. Absent if none is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    default_option_id: Option<&'a str>,
    /// What the request accepts besides one option. Absent if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    accepts: Option<AcceptsDto>,
}

/// What a permission request accepts besides one option. Fields that are not accepted are absent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AcceptedAnswers)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AcceptedAnswers", optional_fields))]
pub(crate) struct AcceptsDto {
    /// A note to the agent, with an option that rejects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    note: Option<bool>,
    /// Text in the user's own words, instead of an option.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<bool>,
    /// Several options of the kind `allow_once`; if `text` is also accepted, text can be sent with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    several: Option<bool>,
}

impl AcceptsDto {
    fn of(accepts: Accepts) -> Option<Self> {
        let Accepts { note, text, several } = accepts;
        let if_true = |accepted: bool| accepted.then_some(true);
        let dto = Self { note: if_true(note), text: if_true(text), several: if_true(several) };
        (!accepts.is_plain()).then_some(dto)
    }
}

/// One of the answers to a permission request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OfferedOption)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "OfferedOption"))]
pub(crate) struct OptionDto<'a> {
    option_id: &'a str,
    /// The label that a user reads.
    name: &'a str,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    kind: &'static str,
}

impl<'a> From<&'a OpenRequest> for OpenQuestionDto<'a> {
    fn from(open_request: &'a OpenRequest) -> Self {
        let OpenRequest {
            agent,
            request_id,
            call,
            tool,
            input,
            options,
            accepts,
            asked_at,
            expires_at,
            default_option,
        } = open_request;
        Self {
            agent_id: (*agent).into(),
            request_id,
            tool_call_id: call.as_deref(),
            tool_name: tool,
            input: input.as_ref().map(Json),
            options: options.iter().map(OptionDto::from).collect(),
            asked_at: IsoTime(*asked_at),
            expires_at: expires_at.map(IsoTime),
            default_option_id: default_option.as_deref(),
            accepts: AcceptsDto::of(*accepts),
        }
    }
}

impl<'a> From<&'a PermissionOption> for OptionDto<'a> {
    fn from(option: &'a PermissionOption) -> Self {
        let PermissionOption { id, name, kind } = option;
        Self { option_id: id, name, kind }
    }
}

/// Reads the place after which a page begins.
pub(crate) fn place(text: &str) -> Result<RequestPlace, Problem> {
    let read = || {
        let (asked_at, rest) = text.split_once('.')?;
        let (agent, request_id) = rest.split_once('.')?;
        let asked_at = Timestamp(asked_at.parse().ok()?);
        Some(RequestPlace { asked_at, agent: agent.parse().ok()?, request_id: request_id.to_owned() })
    };
    read().ok_or_else(|| Problem::parameter("after", "must be from the Link header of an earlier page"))
}

/// The link to the requests after the last one of this page.
pub(crate) fn next_questions(last: &OpenRequest, limit: usize) -> String {
    let RequestPlace { asked_at, agent, request_id } = last.place();
    format!("</api/questions?after={}.{agent}.{request_id}&limit={limit}>; rel=\"next\"", asked_at.0)
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<OptionDto<'_>>();
    out.of::<AcceptsDto>();
    out.of::<OpenQuestionDto<'_>>();
}
