//! How a permission request was settled, in a line that clients receive.

use serde::{Deserialize, Serialize};
use tokenrail_domain::PermissionReply;

use super::ResolvedBy;

/// How a permission request was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    pub request_id: String,
    /// The chosen option, or the first one of several. `None` if no option was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    option_id: Option<String>,
    pub by: ResolvedBy,
    /// All chosen options, if there are several. Lines of earlier releases lack this field and those after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    option_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Resolution {
    pub fn new(request_id: String, reply: PermissionReply, by: ResolvedBy) -> Self {
        let option_id = reply.first_option().map(str::to_owned);
        let option_ids = reply.several_options().map(<[String]>::to_vec);
        let PermissionReply { options: _, text, note } = reply;
        Self { request_id, option_id, by, option_ids, text, note }
    }

    /// What the user replied, or what was chosen if nobody did.
    pub fn reply(&self) -> PermissionReply {
        let Self { request_id: _, option_id, by: _, option_ids, text, note } = self.clone();
        PermissionReply::from_parts(option_id, option_ids, text, note)
    }
}
