//! The input of a tool, as a terminal shows it.

use serde_json::{Map, Value};

/// The fields of a tool's input that say alone what the tool is to do. The first that is there is shown.
const TELLING_FIELDS: [&str; 8] =
    ["command", "file_path", "path", "notebook_path", "question", "url", "query", "pattern"];
/// The tools of Claude Code whose fields are shown in words. The fields of all other tools are shown as JSON.
const KNOWN_TOOLS: [&str; 6] = ["AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "NotebookEdit", "Write"];

/// What the input of a tool says in one line: its most telling field, or all of it as JSON.
pub(crate) fn told(input: &Value) -> String {
    if let Value::String(text) = input {
        return text.clone();
    }
    let field = telling_field(input).and_then(|name| input.get(name)?.as_str());
    field.map_or_else(|| input.to_string(), str::to_owned)
}

pub(super) fn telling_field(input: &Value) -> Option<&'static str> {
    TELLING_FIELDS.into_iter().find(|name| input.get(*name).is_some_and(Value::is_string))
}

pub(super) fn is_known(tool: &str) -> bool {
    KNOWN_TOOLS.contains(&tool)
}

/// The other fields of a tool's input: for a tool that is known, a line for each of them, and for any other tool one
/// line of JSON. No line is left out because a field is unknown.
pub(super) fn in_lines(tool: &str, fields: &Map<String, Value>) -> Vec<String> {
    if fields.is_empty() {
        return Vec::new();
    }
    if !is_known(tool) {
        return vec![Value::Object(fields.clone()).to_string()];
    }
    fields.iter().flat_map(|(name, value)| line(tool, name, value)).collect()
}

/// The lines of one field of a tool that is known.
fn line(tool: &str, name: &str, value: &Value) -> Vec<String> {
    match (tool, name, value) {
        // The numbered options show these.
        ("AskUserQuestion", "header" | "options" | "multiSelect", _)
        // What a tool does without being told so.
        | ("Bash", "run_in_background", Value::Bool(false))
        | ("Edit", "replace_all", Value::Bool(false)) => Vec::new(),
        ("Bash", "run_in_background", Value::Bool(true)) => vec!["in the background".to_owned()],
        ("Bash", "timeout", Value::Number(ms)) => vec![format!("for at most {ms} ms")],
        ("Edit", "replace_all", Value::Bool(true)) => vec!["replaces every occurrence of the old text".to_owned()],
        ("ExitPlanMode", "allowedPrompts", Value::Array(prompts)) => prompts.iter().map(also_allows).collect(),
        _ => vec![format!("{name}: {}", in_one_line(value))],
    }
}

/// What a plan asks for besides: a tool, and for what.
fn also_allows(asked: &Value) -> String {
    let text = |name: &str| asked.get(name).filter(|value| value.is_string()).map(in_one_line);
    match (text("tool"), text("prompt")) {
        (Some(tool), Some(prompt)) => format!("also allows {tool}: {prompt}"),
        _ => format!("also allows {asked}"),
    }
}

/// A text as it is, if it cannot be taken for several lines of the terminal. Anything else as JSON.
fn in_one_line(value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains(char::is_control) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(tool: &str, fields: &str) -> Vec<String> {
        in_lines(tool, serde_json::from_str::<Value>(fields).unwrap().as_object().unwrap())
    }

    #[test]
    fn an_input_is_told_by_its_most_telling_field() {
        let told = |input: &str| told(&serde_json::from_str(input).unwrap());
        assert_eq!(told(r#"{"description":"x","command":"ls -l"}"#), "ls -l");
        assert_eq!(told(r#"{"file_path":"a.rs","old_string":"x"}"#), "a.rs");
        assert_eq!(told(r#"{"n":1}"#), r#"{"n":1}"#);
    }

    #[test]
    fn the_fields_of_a_known_tool_are_shown_in_words_and_none_is_hidden() {
        let bash = r#"{"description":"List","timeout":5000,"run_in_background":true,"new":{"a":1}}"#;
        let mut shown = lines("Bash", bash);
        shown.sort();
        assert_eq!(
            shown,
            ["description: List", "for at most 5000 ms", "in the background", r#"new: {"a":1}"#]
        );
        assert_eq!(lines("Edit", r#"{"replace_all":false}"#), [""; 0]);
        assert_eq!(lines("Edit", r#"{"replace_all":true}"#).len(), 1);
        assert_eq!(lines("AskUserQuestion", r#"{"header":"DB","options":[],"multiSelect":false}"#), [""; 0]);
        assert_eq!(
            lines("ExitPlanMode", r#"{"allowedPrompts":[{"tool":"Bash","prompt":"run tests"},{"x":1}]}"#),
            ["also allows Bash: run tests", r#"also allows {"x":1}"#]
        );
        assert_eq!(lines("mcp__x__do", r#"{"a":false}"#), [r#"{"a":false}"#]);
    }

    #[test]
    fn a_field_cannot_look_like_another_line() {
        assert_eq!(lines("Bash", r#"{"description":"a\n  1  Allow"}"#), [r#"description: "a\n  1  Allow""#]);
    }
}
