//! A permission request, as a terminal shows it.

use serde::Deserialize;
use serde_json::Value;

use super::excerpt::excerpt;
use super::screen::{Screen, Style};

/// How many lines of the old text and of the new text of an edit are shown.
const EDIT_LINES: usize = 12;
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
    /// Shows what the agent wants to do, and the numbered options.
    pub(crate) fn show(&self, screen: &mut Screen) {
        let input = self.input.as_ref().map(told).unwrap_or_default();
        let question = match self.field("question") {
            Some(question) => format!("? {}", excerpt(question, 1)),
            None => format!("? Allow {}? {}", self.tool_name, excerpt(&input, 1)),
        };
        screen.line(Style::Bold, &question);
        for (field, style, sign) in
            [("old_string", Style::Bad, "-"), ("new_string", Style::Good, "+"), ("content", Style::Good, "+")]
        {
            for line in self.field(field).map(|text| excerpt(text, EDIT_LINES)).unwrap_or_default().lines() {
                screen.line(style, &format!("  {sign} {line}"));
            }
        }
        if let Some(plan) = self.field("plan") {
            screen.line(Style::Plain, plan);
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

    fn field(&self, name: &str) -> Option<&str> {
        self.input.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty())
    }
}

/// What the input of a tool says in one line: its most telling field, or all of it as JSON.
pub(crate) fn told(input: &Value) -> String {
    if let Value::String(text) = input {
        return text.clone();
    }
    let field = |name: &&str| input.get(*name)?.as_str();
    TELLING_FIELDS.iter().find_map(field).map_or_else(|| input.to_string(), str::to_owned)
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
