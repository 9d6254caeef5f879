//! A permission request, as a terminal shows it.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::excerpt::{excerpt, passage};
use super::screen::{Screen, Style};

/// How many lines of the old text and of the new text of an edit are shown.
const EDIT_LINES: usize = 12;
/// How much is shown of what the tool is to do.
const TOLD_LINES: usize = 12;
const TOLD_CHARS: usize = 2000;
/// How many characters of the other fields of the tool's input are shown.
const REST_CHARS: usize = 1000;
/// The fields whose text is shown in a form of its own.
const TEXTS: [(&str, Style, &str); 3] =
    [("old_string", Style::Bad, "- "), ("new_string", Style::Good, "+ "), ("content", Style::Good, "+ ")];
/// The fields of a tool's input that say alone what the tool is to do. The first that is there is shown.
const TELLING_FIELDS: [&str; 8] =
    ["command", "file_path", "path", "notebook_path", "question", "url", "query", "pattern"];

/// A permission request: the parts that are shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    pub(crate) request_id: String,
    tool_name: String,
    /// Absent if it is too long for a list.
    #[serde(default)]
    input: Option<Value>,
    options: Vec<Offered>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offered {
    option_id: String,
    name: String,
}

impl Asked {
    /// Shows what the agent wants to do, with all of the tool's input as far as it fits, and the numbered options.
    pub(crate) fn show(&self, screen: &mut Screen) {
        let (telling, text) = match (self.field("question"), &self.input) {
            (Some(question), _) => (Some("question"), question.to_owned()),
            (None, Some(input)) => match telling_field(input) {
                None if input.is_object() => (None, self.rest(None).unwrap_or_default()),
                telling => (telling, told(input)),
            },
            (None, None) => (None, String::new()),
        };
        let question = passage(&text, TOLD_LINES, TOLD_CHARS);
        let mut lines = question.lines();
        let first = lines.next().unwrap_or_default();
        screen.line(
            Style::Bold,
            &match telling {
                Some("question") => format!("? {first}"),
                _ => format!("? Allow {}? {first}", self.tool_name),
            },
        );
        for line in lines {
            screen.line(Style::Bold, &format!("  {line}"));
        }
        for (field, style, sign) in TEXTS {
            for line in self.field(field).map(|text| excerpt(text, EDIT_LINES)).unwrap_or_default().lines() {
                screen.line(style, &format!("  {sign}{line}"));
            }
        }
        if let Some(plan) = self.field("plan") {
            screen.line(Style::Plain, plan);
        }
        if let Some(rest) = telling.and_then(|_| self.rest(telling)) {
            for line in passage(&rest, 1, REST_CHARS).lines() {
                screen.line(Style::Plain, &format!("  {line}"));
            }
        }
        for (number, option) in (1..).zip(&self.options) {
            let Offered { option_id, name } = option;
            screen.line(Style::Plain, &format!("  {number}  {name}  ({option_id})"));
        }
    }

    /// The ids of the options, as a usage text has them.
    pub(crate) fn choices(&self) -> String {
        self.options.iter().map(|option| &*option.option_id).collect::<Vec<_>>().join("|")
    }

    /// What may be typed, for a prompt.
    pub(crate) fn numbers(&self) -> String {
        match self.options.len() {
            0 | 1 => "1".to_owned(),
            count => format!("1 to {count}"),
        }
    }

    /// The option that a user means with this text: its number, its id, or its label.
    pub(crate) fn option(&self, typed: &str) -> Option<&str> {
        let typed = typed.trim();
        let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let numbered = number.and_then(|index| self.options.get(index));
        let named = || {
            let is_meant = |text: &str| text.eq_ignore_ascii_case(typed);
            self.options.iter().find(|option| is_meant(&option.option_id) || is_meant(&option.name))
        };
        numbered.or_else(named).map(|option| &*option.option_id)
    }

    /// The fields of the input that are not shown in a form of their own, as JSON. `None` if there are none.
    fn rest(&self, telling: Option<&str>) -> Option<String> {
        let is_shown = |name: &str| {
            let is_text = name == "plan" || TEXTS.iter().any(|(text, _, _)| *text == name);
            telling == Some(name) || is_text && self.field(name).is_some()
        };
        let fields = self.input.as_ref()?.as_object()?.iter().filter(|(name, _)| !is_shown(name));
        let rest: Map<_, _> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        (!rest.is_empty()).then(|| Value::Object(rest).to_string())
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.input.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty())
    }
}

/// What the input of a tool says in one line: its most telling field, or all of it as JSON.
pub(crate) fn told(input: &Value) -> String {
    if let Value::String(text) = input {
        return text.clone();
    }
    let field = telling_field(input).and_then(|name| input.get(name)?.as_str());
    field.map_or_else(|| input.to_string(), str::to_owned)
}

fn telling_field(input: &Value) -> Option<&'static str> {
    TELLING_FIELDS.into_iter().find(|name| input.get(*name).is_some_and(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_meant_by_its_number_its_id_or_its_label() {
        let asked: Asked = serde_json::from_str(
            r#"{"requestId":"1-1","toolName":"Bash","options":[{"optionId":"allow","name":"Allow once"},{"optionId":"2","name":"Reject"}]}"#,
        )
        .unwrap();
        let meant = |typed| asked.option(typed);
        assert_eq!([meant("1\n"), meant(" Allow"), meant("allow once")], [Some("allow"); 3]);
        assert_eq!([meant("2"), meant("reject")], [Some("2"); 2]);
        assert_eq!([meant(""), meant("0"), meant("3"), meant("yes")], [None; 4]);
    }

    #[test]
    fn an_input_is_told_by_its_most_telling_field() {
        let told = |input: &str| told(&serde_json::from_str(input).unwrap());
        assert_eq!(told(r#"{"description":"x","command":"ls -l"}"#), "ls -l");
        assert_eq!(told(r#"{"file_path":"a.rs","old_string":"x"}"#), "a.rs");
        assert_eq!(told(r#"{"n":1}"#), r#"{"n":1}"#);
    }
}
