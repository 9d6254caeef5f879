//! A permission request, as a terminal shows it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::excerpt::{excerpt, passage};
use super::screen::{Screen, Style};

/// How many lines of the old text and of the new text of an edit are shown.
const EDIT_LINES: usize = 12;
/// How much of the most important field of the input is shown: a command, for example.
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
    /// Absent if the request accepts only one option.
    #[serde(default)]
    accepts: Accepted,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offered {
    option_id: String,
    name: String,
    #[serde(default)]
    kind: String,
}

impl Offered {
    fn rejects(&self) -> bool {
        self.kind.starts_with("reject")
    }
}

/// What a request accepts besides one option.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Accepted {
    note: bool,
    text: bool,
    several: bool,
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
            let Offered { option_id, name, kind: _ } = option;
            screen.line(Style::Plain, &format!("  {number}  {name}  ({option_id})"));
        }
    }

    /// Shows what can be typed besides the number of an option.
    pub(crate) fn show_more_answers(&self, screen: &mut Screen) {
        let Accepted { note, text, several } = self.accepts;
        let rejecting = self.options.iter().position(Offered::rejects);
        if several {
            screen.line(Style::Dim, "  several answers: their numbers, such as 1,2");
        }
        if text {
            screen.line(Style::Dim, "  another answer: your own words");
        }
        if let Some(index) = rejecting.filter(|_| note) {
            screen.line(Style::Dim, &format!("  to say why you reject: {} and your words", index + 1));
        }
    }

    /// The answer that a user means with this line, as the body of a request: an option; several of them, separated by
    /// commas; an option that rejects and a note; or a text in the user's own words.
    pub(crate) fn answer(&self, line: &str) -> Option<Value> {
        let Accepted { note, text, several } = self.accepts;
        let line = line.trim();
        if let Some(option) = self.option(line) {
            return Some(json!({ "optionId": option }));
        }
        let listed: Option<Vec<_>> = line.split(',').map(|part| self.option(part)).collect();
        if let Some(options) = listed.filter(|_| several) {
            return Some(json!({ "optionIds": options }));
        }
        let with_note = line.split_once(char::is_whitespace).filter(|_| note);
        let rejected = with_note.and_then(|(option, note)| Some((self.numbered(option)?, note.trim())));
        if let Some((option, note)) = rejected.filter(|(option, _)| option.rejects()) {
            return Some(json!({ "optionId": option.option_id, "note": note }));
        }
        // A number that is no option is a mistake.
        let is_text = text && line.contains(char::is_alphabetic);
        is_text.then(|| json!({ "text": line }))
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
    fn option(&self, typed: &str) -> Option<&str> {
        let typed = typed.trim();
        let named = || {
            let is_meant = |text: &str| text.eq_ignore_ascii_case(typed);
            self.options.iter().find(|option| is_meant(&option.option_id) || is_meant(&option.name))
        };
        self.numbered(typed).or_else(named).map(|option| &*option.option_id)
    }

    fn numbered(&self, typed: &str) -> Option<&Offered> {
        self.options.get(typed.parse::<usize>().ok()?.checked_sub(1)?)
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
    fn more_than_one_option_can_be_typed_if_the_request_accepts_it() {
        let asked = |accepts: &str| -> Asked {
            let options = r#"[{"optionId":"a","name":"Red","kind":"allow_once"},{"optionId":"b","name":"Blue","kind":"allow_once"},{"optionId":"no","name":"Decline","kind":"reject_once"}]"#;
            let request = format!(r#"{{"requestId":"1-1","toolName":"x","options":{options}{accepts}}}"#);
            serde_json::from_str(&request).unwrap()
        };
        let all = asked(r#","accepts":{"note":true,"text":true,"several":true}"#);
        for (typed, answer) in [
            ("1", json!({ "optionId": "a" })),
            ("2, 1", json!({ "optionIds": ["b", "a"] })),
            ("red,BLUE", json!({ "optionIds": ["a", "b"] })),
            ("3 use the  other file ", json!({ "optionId": "no", "note": "use the  other file" })),
            ("neither, really", json!({ "text": "neither, really" })),
            ("1 is best", json!({ "text": "1 is best" })),
        ] {
            assert_eq!(all.answer(typed), Some(answer), "{typed}");
        }
        for mistake in ["", "4", "1,4", "0 1"] {
            assert_eq!(all.answer(mistake), None, "{mistake}");
        }
        let plain = asked("");
        for typed in ["1,2", "3 why", "neither"] {
            assert_eq!(plain.answer(typed), None, "{typed}");
        }
        assert_eq!(plain.answer("decline"), Some(json!({ "optionId": "no" })));
    }

    #[test]
    fn an_input_is_told_by_its_most_telling_field() {
        let told = |input: &str| told(&serde_json::from_str(input).unwrap());
        assert_eq!(told(r#"{"description":"x","command":"ls -l"}"#), "ls -l");
        assert_eq!(told(r#"{"file_path":"a.rs","old_string":"x"}"#), "a.rs");
        assert_eq!(told(r#"{"n":1}"#), r#"{"n":1}"#);
    }
}
