//! What the requests of both APIs share. A parameter that would change the meaning of a request, and that cannot be
//! honoured, is refused by its name. Other parameters are ignored.

use serde_json::Value;

use crate::json::fields::Fields;

/// The maximum length of a model name, in bytes.
const MODEL_BYTES: usize = 128;

/// An agent type, and the model of its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub(crate) kind: String,
    pub(crate) model: Option<String>,
}

impl ModelChoice {
    /// Reads `type` or `type/model`. `None` if the model cannot be the name of one.
    pub(crate) fn read(name: &str) -> Option<Self> {
        let (kind, model) = match name.split_once('/') {
            Some((kind, model)) => (kind, Some(model.to_owned())),
            None => (name, None),
        };
        let legal = |model: &String| {
            (1..=MODEL_BYTES).contains(&model.len())
                && !model.starts_with('-')
                && model.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte))
        };
        let is_legal = !kind.is_empty() && model.as_ref().is_none_or(legal);
        is_legal.then(|| Self { kind: kind.to_owned(), model })
    }

    pub(super) fn take(fields: &mut Fields) -> Option<Self> {
        let model = fields.text("model", |_| None);
        let choice = model.as_deref().and_then(Self::read);
        if model.is_some() && choice.is_none() {
            fields.refuse("model", "must be an agent type, or an agent type, a slash and a model");
        }
        choice
    }
}

/// An optional flag, `false` if it is absent.
pub(super) fn flag(fields: &mut Fields, name: &str) -> bool {
    fields.optional(name, "must be true or false").unwrap_or(false)
}

/// Refuses a parameter with a value that would change the meaning of the request.
pub(super) fn refuse_if(fields: &mut Fields, name: &str, detail: &str, is_refused: impl Fn(&Value) -> bool) {
    if fields.optional::<Value>(name, "cannot be read").is_some_and(|given| is_refused(&given)) {
        fields.refuse(name, detail);
    }
}

/// Refuses what no request can have: tools of the client, and a response that is not saved.
pub(super) fn refuse_everywhere(fields: &mut Fields) {
    refuse_if(fields, "tools", "not supported: agents use only their own tools", |given| {
        given.as_array().is_none_or(|tools| !tools.is_empty())
    });
    refuse_if(fields, "tool_choice", "must be auto or none: agents use only their own tools", |given| {
        !matches!(given.as_str(), Some("auto" | "none"))
    });
    refuse_if(
        fields,
        "store",
        "must be true: the server saves every response until its agent is deleted",
        |given| *given != Value::Bool(true),
    );
}

/// One text of several. `None` if all are empty.
pub(super) fn joined(texts: impl IntoIterator<Item = String>) -> Option<String> {
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
