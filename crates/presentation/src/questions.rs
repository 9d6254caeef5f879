//! An agent's questions, as the notices of its journal have them.

mod approvals;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{JsonText, Notice};

pub(crate) use approvals::Approvals;

/// What a notice tells of a question.
#[derive(Debug)]
pub(crate) enum QuestionNotice {
    Asked(Question),
    Settled(Settling),
}

/// The agent asks whether it may do something.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Question {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) tool_call_id: Option<String>,
    pub(crate) tool_name: String,
    input: Box<RawValue>,
    options: Vec<Offer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer {
    option_id: String,
    kind: String,
}

/// The question is not open any more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settling {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) option_id: Option<String>,
    pub(crate) by: String,
}

impl QuestionNotice {
    /// None where the notice is about something else, or has not what it takes.
    pub(crate) fn of(notice: &Notice) -> Option<Self> {
        let data = notice.data.as_str();
        match notice.subtype.as_str() {
            Notice::PERMISSION_REQUEST => serde_json::from_str(data).ok().map(Self::Asked),
            Notice::PERMISSION_RESOLVED => serde_json::from_str(data).ok().map(Self::Settled),
            _ => None,
        }
    }
}

impl Question {
    /// What the tool would be called with.
    pub(crate) fn input(&self) -> JsonText {
        JsonText::new_unchecked(self.input.get())
    }

    /// The tool call that it is about. A question that is about none stands for one.
    pub(crate) fn call(&self) -> &str {
        self.tool_call_id.as_deref().unwrap_or(&self.request_id)
    }

    /// The option that allows it, or does not, this once where there is a choice.
    pub(crate) fn option(&self, allows: bool) -> Option<&str> {
        let (once, any) = if allows { ("allow_once", "allow_") } else { ("reject_once", "reject_") };
        let offers = || self.options.iter();
        let offer = offers().find(|offer| offer.kind == once);
        let offer = offer.or_else(|| offers().find(|offer| offer.kind.starts_with(any)));
        offer.map(|offer| offer.option_id.as_str())
    }

    /// The options by which the agent is allowed to go on.
    pub(crate) fn allowing(&self) -> impl Iterator<Item = &str> {
        let allowing = self.options.iter().filter(|offer| offer.kind.starts_with("allow_"));
        allowing.map(|offer| offer.option_id.as_str())
    }
}
