//! Permission requests, as the notices in an agent's journal contain them.

mod approvals;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{Accepts, JsonText, Notice, PermissionReply, ReplyFault};

pub(crate) use approvals::Approvals;

/// The kinds of options.
const KINDS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

/// A notice about a permission request.
#[derive(Debug)]
pub(crate) enum PermissionNotice {
    Asked(AskedPermission),
    Settled(Settling),
}

/// A permission request: the agent asks whether it may do something.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskedPermission {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) tool_call_id: Option<String>,
    pub(crate) tool_name: String,
    input: Box<RawValue>,
    options: Vec<Offer>,
    #[serde(default)]
    accepts: AcceptedAnswers,
}

/// What the request accepts besides one option.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AcceptedAnswers {
    #[serde(default)]
    pub(crate) note: bool,
    #[serde(default)]
    pub(crate) text: bool,
    #[serde(default)]
    pub(crate) several: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer {
    option_id: String,
    kind: String,
}

/// The permission request is no longer open.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settling {
    pub(crate) request_id: String,
    #[serde(default)]
    option_id: Option<String>,
    /// All chosen options, if there are several.
    #[serde(default)]
    option_ids: Option<Vec<String>>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    note: Option<String>,
    by: String,
}

impl Settling {
    /// What the user said to the rejection, or else who settled the request.
    pub(crate) fn reason(&self) -> &str {
        self.note.as_deref().unwrap_or(&self.by)
    }
}

impl PermissionNotice {
    /// `None` if the notice is about something else, or its data is malformed.
    pub(crate) fn of(notice: &Notice) -> Option<Self> {
        let data = notice.data.as_str();
        match notice.subtype.as_str() {
            Notice::PERMISSION_REQUEST => serde_json::from_str(data).ok().map(Self::Asked),
            Notice::PERMISSION_RESOLVED => serde_json::from_str(data).ok().map(Self::Settled),
            _ => None,
        }
    }
}

impl AskedPermission {
    /// The input with which the agent wants to call the tool.
    pub(crate) fn input(&self) -> JsonText {
        JsonText::new_unchecked(self.input.get())
    }

    /// The id of the tool call that the request is about. If there is none, the id of the request itself.
    pub(crate) fn call(&self) -> &str {
        self.tool_call_id.as_deref().unwrap_or(&self.request_id)
    }

    /// The option that allows or rejects the action: if there is a choice, the one that does so only once.
    pub(crate) fn option(&self, allows: bool) -> Option<&str> {
        let (once, any) = if allows { ("allow_once", "allow_") } else { ("reject_once", "reject_") };
        let offers = || self.options.iter();
        let offer = offers().find(|offer| offer.kind == once);
        let offer = offer.or_else(|| offers().find(|offer| offer.kind.starts_with(any)));
        offer.map(|offer| offer.option_id.as_str())
    }

    /// Whether a rejection may have a note to the agent.
    pub(crate) fn accepts_note(&self) -> bool {
        self.accepts.note
    }

    /// All options.
    pub(crate) fn option_ids(&self) -> impl Iterator<Item = &str> {
        self.options.iter().map(|offer| offer.option_id.as_str())
    }

    /// Why the request does not accept a reply. `None` if it does.
    pub(crate) fn fault(&self, reply: &PermissionReply) -> Option<ReplyFault> {
        let AcceptedAnswers { note, text, several } = self.accepts;
        let kind_of = |option: &str| {
            let offer = self.options.iter().find(|offer| offer.option_id == option)?;
            Some(KINDS.into_iter().find(|kind| *kind == offer.kind).unwrap_or_default())
        };
        reply.fault(Accepts { note, text, several }, kind_of)
    }

    /// The options that allow the action.
    pub(crate) fn allowing(&self) -> impl Iterator<Item = &str> {
        let allowing = self.options.iter().filter(|offer| offer.kind.starts_with("allow_"));
        allowing.map(|offer| offer.option_id.as_str())
    }
}
