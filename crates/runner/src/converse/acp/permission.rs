//! The agent's permission requests.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokenrail_domain::Accepts;
use tokenrail_ports::{Choosable, OptionKind};

use super::messages::{AskPermission, AskedToolCall};
use crate::converse::conversation::{Choice, NewRequest, Outbox};
use crate::converse::rpc::{Rpc, read, text};

/// The open permission requests, by their keys. A key is the id of the request, exactly as received.
#[derive(Debug, Default)]
pub(super) struct Permissions(BTreeMap<String, Asked>);

#[derive(Debug)]
struct Asked {
    id: Box<RawValue>,
    /// The option that rejects, if there is one.
    reject: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    outcome: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Outcome<'a> {
    Selected { option_id: &'a str },
    Cancelled,
}

/// What the agent wants to do, if it does not send the input.
#[derive(Serialize)]
struct Described<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locations: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a RawValue>,
}

impl Permissions {
    pub(super) fn asked(
        &mut self,
        id: &RawValue,
        request: &AskPermission<'_>,
        is_cancelled: bool,
        out: &mut Outbox,
    ) {
        let options: Vec<Choosable> = request
            .options()
            .iter()
            .filter_map(|option| {
                let id = text(option.option_id)?;
                let kind = kind_of(&text(option.kind).unwrap_or_default());
                Some(Choosable::new(&id, &text(option.name).unwrap_or_else(|| id.clone()), kind))
            })
            .collect();
        if is_cancelled || options.is_empty() {
            return Rpc::reply(id, Answer { outcome: Outcome::Cancelled }, out);
        }
        let rejects = |wanted| options.iter().find(|option| option.kind == wanted);
        let reject = rejects(OptionKind::RejectOnce).or_else(|| rejects(OptionKind::RejectAlways));
        let asked = Asked { id: id.to_owned(), reject: reject.map(|option| option.option_id.clone()) };
        let key = id.get().to_owned();
        self.0.insert(key.clone(), asked);
        let call: AskedToolCall<'_> = read(request.tool_call);
        out.asked.push(NewRequest {
            key,
            tool_call_id: text(call.tool_call_id),
            tool_name: name_of(&call),
            input: input_of(&call),
            options,
            // The outcome has no field for a text.
            accepts: Accepts::default(),
        });
    }

    pub(super) fn settle(&mut self, key: &str, choice: &Choice, out: &mut Outbox) {
        let Some(Asked { id, reject }) = self.0.remove(key) else { return };
        let option_id = match choice {
            Choice::Option(option) | Choice::OptionWithNote { option, .. } => Some(option),
            // In this protocol, an answer without an option means that the turn is cancelled.
            Choice::Dismissed | Choice::Composed { .. } => reject.as_ref(),
            Choice::TurnCancelled => None,
        };
        let outcome = option_id.map_or(Outcome::Cancelled, |option_id| Outcome::Selected { option_id });
        Rpc::reply(&id, Answer { outcome }, out);
    }

    /// Removes a request that the agent has withdrawn. Returns whether it was open.
    pub(super) fn withdraw(&mut self, id: &RawValue) -> bool {
        self.0.remove(id.get()).is_some()
    }
}

fn kind_of(kind: &str) -> OptionKind {
    match kind {
        "allow_once" => OptionKind::AllowOnce,
        "allow_always" => OptionKind::AllowAlways,
        "reject_always" => OptionKind::RejectAlways,
        // An unknown kind must not count as permission.
        _ => OptionKind::RejectOnce,
    }
}

/// The name of the tool; the parser chooses the same one.
fn name_of(call: &AskedToolCall<'_>) -> String {
    let given = |raw| text(raw).filter(|name| !name.is_empty());
    let kind = || given(call.kind).filter(|kind| kind != "other");
    given(call.name).or_else(kind).or_else(|| given(call.title)).unwrap_or_else(|| "tool".to_owned())
}

/// The input as received. If it is absent or empty, what the agent shows of it.
fn input_of(call: &AskedToolCall<'_>) -> Box<RawValue> {
    if let Some(input) = call.raw_input.filter(|input| !is_empty(input)) {
        return input.to_owned();
    }
    let shown = |raw: Option<&'_ RawValue>| raw.filter(|raw| !is_empty(raw)).map(ToOwned::to_owned);
    let (title, locations, content) = (shown(call.title), shown(call.locations), shown(call.content));
    let described =
        Described { title: title.as_deref(), locations: locations.as_deref(), content: content.as_deref() };
    to_raw_value(&described).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Whether it is `null`, or an empty object, list or string.
fn is_empty(raw: &RawValue) -> bool {
    let json = raw.get();
    let inside = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    json == "null" || (json.starts_with(['{', '[', '"']) && inside.trim_ascii().is_empty())
}
