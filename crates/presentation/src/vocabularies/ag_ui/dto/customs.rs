//! Values of custom events: what the protocol has no event for.

use serde::Serialize;
use tokenrail_domain::JsonText;

use crate::json::{AgentErrorDto, Json};

/// The longest foreign value in an event, in bytes. Clients refuse a run with an event that is too long.
pub(super) const VALUE_BYTES: usize = 1 << 20;

/// The value of a custom event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum CustomDto<'a> {
    Notice(NoticeValueDto<'a>),
    Error(AgentErrorDto<'a>),
    Abandoned(AbandonedPartsDto),
    Result(LooseResultDto<'a>),
    Block(ForeignValue<'a>),
}

/// Foreign JSON. `null` in place of JSON that is too long.
#[derive(Debug, Serialize)]
pub(crate) struct ForeignValue<'a>(Option<Json<'a>>);

impl<'a> ForeignValue<'a> {
    pub(crate) fn new(json: &'a JsonText) -> Self {
        Self((json.as_str().len() <= VALUE_BYTES).then_some(Json(json)))
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct NoticeValueDto<'a> {
    pub(crate) subtype: &'a str,
    pub(crate) data: ForeignValue<'a>,
}

/// What was sent and is to be discarded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AbandonedPartsDto {
    pub(crate) message_ids: Vec<String>,
    pub(crate) tool_call_ids: Vec<String>,
}

/// The result of a tool call that the agent has not reported.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LooseResultDto<'a> {
    pub(crate) tool_call_id: &'a str,
    pub(crate) content: ForeignValue<'a>,
    pub(crate) is_error: bool,
}
