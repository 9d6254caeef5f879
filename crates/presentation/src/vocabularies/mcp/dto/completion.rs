//! Completion: what a client can propose to a person who types an argument of a prompt or of a resource template.

use serde::Serialize;

use super::prompts::PromptName;
use super::resources::URI_TEMPLATE;
use super::rpc::Params;
use crate::error::Problem;

/// The maximum number of values in one result, which is also that of the protocol.
pub(crate) const VALUES: usize = 100;

/// An argument that is being typed.
#[derive(Debug)]
pub(crate) struct CompletionWish {
    pub(crate) of: Completed,
    pub(crate) argument: String,
    /// What is typed so far.
    pub(crate) value: String,
}

/// What has the argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    Prompt(String),
    Template(String),
}

/// What the values of an argument are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    AgentType,
    Agent,
    Anything,
}

impl CompletionWish {
    pub(crate) fn read(params: &Params) -> Result<Self, Problem> {
        let (mut reference, mut argument) = (params.object("ref")?, params.object("argument")?);
        let of = match &*reference.required_text("type", |_| None) {
            "ref/prompt" => Completed::Prompt(reference.required_text("name", |_| None)),
            "ref/resource" => Completed::Template(reference.required_text("uri", |_| None)),
            _ => {
                reference.refuse("type", "must be ref/prompt or ref/resource");
                Completed::Prompt(String::new())
            }
        };
        let wish = Self {
            of,
            argument: argument.required_text("name", |_| None),
            value: argument.required_text("value", |_| None),
        };
        reference.finish()?;
        argument.finish()?;
        Ok(wish)
    }

    pub(crate) fn kind(&self) -> Result<ValueKind, Problem> {
        let prompt = match &self.of {
            Completed::Prompt(name) => match PromptName::from_name(name) {
                Some(prompt) => Some(prompt),
                None => return Err(Problem::field("name", "must be the name of a prompt")),
            },
            Completed::Template(uri) if uri == URI_TEMPLATE => None,
            Completed::Template(_) => {
                return Err(Problem::field("uri", "must be the uriTemplate of a resource"));
            }
        };
        match (prompt, &*self.argument) {
            (Some(PromptName::Delegate), "task") => Ok(ValueKind::Anything),
            (Some(PromptName::Delegate), "agent_type") => Ok(ValueKind::AgentType),
            (Some(PromptName::CatchUp) | None, "agent_id") => Ok(ValueKind::Agent),
            _ => Err(Problem::field("argument", "must be an argument of this prompt or resource")),
        }
    }
}

/// The result of `completion/complete`.
#[derive(Debug, Serialize)]
pub(crate) struct Completion {
    completion: CompletionDto,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CompletionDto {
    values: Vec<String>,
    has_more: bool,
}

impl Completion {
    /// Those of the known values that begin with what is typed. `more` says that there are further values.
    pub(crate) fn new(known: impl IntoIterator<Item = String>, typed: &str, more: bool) -> Self {
        let mut values = known.into_iter().filter(|value| value.starts_with(typed));
        let first: Vec<_> = values.by_ref().take(VALUES).collect();
        let has_more = more || values.next().is_some();
        Self { completion: CompletionDto { values: first, has_more } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Completion, VALUES};

    #[test]
    fn more_values_than_fit_are_said_to_exist() {
        for (known, more, has_more) in
            [(VALUES, false, false), (VALUES, true, true), (VALUES + 1, false, true)]
        {
            let values = (0..known).map(|number| format!("a{number}")).chain(["b".to_owned()]);
            let completion = json!(Completion::new(values, "a", more));
            let completion = &completion["completion"];
            assert_eq!(completion["values"].as_array().unwrap().len(), VALUES);
            assert_eq!(completion["hasMore"], has_more, "{known}");
        }
    }
}
