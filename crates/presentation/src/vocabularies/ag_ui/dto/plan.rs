//! Plans: what an agent wants to do, step by step. Agents write them in formats of their own, and clients get one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tokenrail_domain::JsonText;

use super::customs::VALUE_BYTES;

/// The content of an activity.
#[derive(Debug, Serialize)]
pub(crate) struct PlanDto<'a> {
    todos: Vec<TodoDto<'a>>,
}

#[derive(Debug, Serialize)]
struct TodoDto<'a> {
    content: Cow<'a, str>,
    status: TodoStatus,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// What an agent reports.
#[derive(Deserialize)]
struct GivenReport<'a> {
    /// `entries` of the Agent Client Protocol, `items` of `codex exec`.
    #[serde(borrow, alias = "items")]
    entries: Option<Vec<GivenStep<'a>>>,
    /// Codex's app server reports the whole notification.
    #[serde(borrow)]
    params: Option<GivenParams<'a>>,
}

#[derive(Deserialize)]
struct GivenParams<'a> {
    #[serde(borrow)]
    plan: Vec<GivenStep<'a>>,
}

#[derive(Deserialize)]
struct GivenStep<'a> {
    #[serde(borrow, alias = "step", alias = "text")]
    content: Cow<'a, str>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    completed: Option<bool>,
}

impl<'a> PlanDto<'a> {
    /// The plan in a notice. `None` if it has none that is known, or is too long.
    pub(crate) fn of(data: &'a JsonText) -> Option<Self> {
        let text = Some(data.as_str()).filter(|text| text.len() <= VALUE_BYTES)?;
        let GivenReport { entries, params } = serde_json::from_str(text).ok()?;
        let steps = entries.or(params.map(|params| params.plan))?;
        let todos = steps.into_iter().map(TodoDto::of).collect::<Option<_>>()?;
        Some(Self { todos })
    }
}

impl<'a> TodoDto<'a> {
    fn of(GivenStep { content, status, completed }: GivenStep<'a>) -> Option<Self> {
        let status = match (status.as_deref(), completed) {
            (Some("completed"), _) | (_, Some(true)) => TodoStatus::Completed,
            (Some("in_progress" | "inProgress"), _) => TodoStatus::InProgress,
            (Some(_), _) | (_, Some(false)) => TodoStatus::Pending,
            (None, None) => return None,
        };
        Some(Self { content, status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_of_all_agents_become_the_same() {
        for given in [
            r#"{"method":"turn/plan/updated","params":{"explanation":null,"plan":[{"step":"\"é","status":"completed"},{"step":"b","status":"inProgress"},{"step":"c","status":"pending"}]}}"#,
            r#"{"sessionUpdate":"plan","entries":[{"content":"\"é","status":"completed","priority":"low"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}"#,
            r#"{"id":"item_1","type":"todo_list","items":[{"text":"\"\u00e9","completed":true},{"text":"b","status":"in_progress"},{"text":"c","completed":false}]}"#,
        ] {
            let data = JsonText::new_unchecked(given);
            let plan = serde_json::to_string(&PlanDto::of(&data)).unwrap();
            let expected = r#"{"todos":[{"content":"\"é","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}"#;
            assert_eq!(plan, expected, "{given}");
        }
        let empty = JsonText::new_unchecked(r#"{"entries":[]}"#);
        assert_eq!(serde_json::to_string(&PlanDto::of(&empty)).unwrap(), r#"{"todos":[]}"#);
        let long = format!(r#"{{"entries":[],"x":"{}"}}"#, "x".repeat(VALUE_BYTES));
        for other in
            ["{}", "[]", r#"{"type":"plan","text":"1. Look"}"#, r#"{"entries":[{"text":"a"}]}"#, &long]
        {
            assert!(PlanDto::of(&JsonText::new_unchecked(other)).is_none());
        }
    }
}
