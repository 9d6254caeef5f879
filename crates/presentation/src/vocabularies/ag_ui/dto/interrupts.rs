//! Permission requests as interrupts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokenrail_domain::{JsonText, TurnNumber};

use super::ForeignValue;
use crate::vocabularies::ag_ui::interrupt_id::InterruptId;
use crate::vocabularies::turns::permission_notices::AskedPermission;

/// What a run waits for: the answer to a permission request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InterruptDto<'a> {
    id: InterruptId,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    response_schema: AnswerSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    metadata: InterruptMetadata<'a>,
}

/// The permission request as the events of the native API contain it.
#[derive(Debug, Serialize)]
struct InterruptMetadata<'a> {
    tokenrail: ForeignValue<'a>,
}

/// A JSON schema of the answer.
#[derive(Debug, Serialize)]
struct AnswerSchema {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: BTreeMap<&'static str, PropertySchema>,
}

#[derive(Debug, Serialize)]
struct PropertySchema {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Expiry {
    expires_at: Option<String>,
}

impl<'a> InterruptDto<'a> {
    /// `data` is the request as the notice contains it.
    pub(crate) fn new(
        turn: TurnNumber,
        request: &AskedPermission,
        data: &'a JsonText,
        tool_call_id: Option<&'a str>,
    ) -> Self {
        let options = request.option_ids().map(str::to_owned).collect();
        let property = |kind, values| PropertySchema { kind, values };
        let mut properties = BTreeMap::from([
            ("approved", property("boolean", Vec::new())),
            ("optionId", property("string", options)),
        ]);
        if request.accepts_note() {
            properties.insert("note", property("string", Vec::new()));
        }
        let Expiry { expires_at } = serde_json::from_str(data.as_str()).unwrap_or_default();
        Self {
            id: InterruptId { turn, request: request.request_id.clone() },
            reason: if tool_call_id.is_some() { "tool_call" } else { "input_required" },
            message: format!("The agent asks whether it may use {}.", request.tool_name),
            tool_call_id,
            response_schema: AnswerSchema { kind: "object", properties },
            expires_at,
            metadata: InterruptMetadata { tokenrail: ForeignValue::new(data) },
        }
    }
}
