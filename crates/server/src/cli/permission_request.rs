//! A permission request, as a terminal shows it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::excerpt::{excerpt, passage};
use super::screen::{Screen, Style};
use super::tool_input::{in_lines, is_known, telling_field, told};

/// How many lines of the old text and of the new text of an edit are shown.
const EDIT_LINES: usize = 12;
/// How much of the most important field of the input is shown: a command, for example.
const TOLD_LINES: usize = 12;
const TOLD_CHARS: usize = 2000;
/// How much of the other fields of the tool's input is shown.
const REST_LINES: usize = 12;
const REST_CHARS: usize = 1000;
/// The fields whose text is shown in a form of its own.
const TEXTS: [(&str, Style, &str); 3] =
    [("old_string", Style::Bad, "- "), ("new_string", Style::Good, "+ "), ("content", Style::Good, "+ ")];
/// A permission request: the parts that are shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownRequest {
    pub(crate) request_id: String,
    tool_name: String,
    /// Absent if it is too long for a list.
    #[serde(default)]
    input: Option<Value>,
    options: Vec<Offered>,
    /// Absent if the request accepts only one option.
    #[serde(default)]
    accepts: AnswerForms,
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
struct AnswerForms {
    note: bool,
    text: bool,
    several: bool,
}

impl ShownRequest {
    /// Shows what the agent wants to do, with all of the tool's input as far as it fits, and the numbered options.
    pub(crate) fn show(&self, screen: &mut Screen) {
        let is_known = is_known(&self.tool_name);
        let (telling, text) = match (self.field("question"), &self.input) {
            (Some(question), _) => (Some("question"), question.to_owned()),
            (None, Some(input)) => match telling_field(input) {
                None if input.is_object() && is_known => (None, String::new()),
                None if input.is_object() => (None, self.rest(None).join(" ")),
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
        if telling.is_some() || is_known {
            for line in passage(&self.rest(telling).join("\n"), REST_LINES, REST_CHARS).lines() {
                screen.line(Style::Plain, &format!("  {line}"));
            }
        }
        for (number, option) in (1..).zip(&self.options) {
            let Offered { option_id, name, kind: _ } = option;
            let description = self.description(name).map(|text| format!("  {text}")).unwrap_or_default();
            screen.line(Style::Plain, &format!("  {number}  {name}  ({option_id}){description}"));
        }
    }

    /// Shows what can be typed besides the number of an option.
    pub(crate) fn show_more_answers(&self, screen: &mut Screen) {
        let AnswerForms { note, text, several } = self.accepts;
        let rejecting = self.options.iter().position(Offered::rejects);
        if several {
            screen.line(Style::Dim, "  several answers: their numbers, such as 1,2");
        }
        if text {
            screen.line(Style::Dim, "  another answer: your own words");
        }
        if let Some(index) = rejecting.filter(|_| note) {
            let number = index + 1;
            screen.line(
                Style::Dim,
                &format!(
                    "  to reject with a reason: {number} and the reason, such as: {number} use the other file"
                ),
            );
        }
    }

    /// The answer that a user means with this line, as the body of a request: an option; several of them, separated by
    /// commas; an option that rejects and a note; or a text in the user's own words.
    pub(crate) fn answer(&self, line: &str) -> Option<Value> {
        let AnswerForms { note, text, several } = self.accepts;
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

    /// What the request is about, in one line.
    pub(crate) fn title(&self) -> String {
        match (self.field("question"), &self.input) {
            (Some(question), _) => excerpt(question, 1),
            (None, Some(input)) => format!("{} {}", self.tool_name, excerpt(&told(input), 1)),
            (None, None) => self.tool_name.clone(),
        }
    }

    /// The command that answers the request.
    pub(crate) fn command(&self, client: &Client, agent: &str) -> String {
        client.command(&format!("answer {agent} {} {}", self.request_id, self.choices()))
    }

    /// The ids of the options, as a usage text has them.
    fn choices(&self) -> String {
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

    /// The fields of the input that are not shown in a form of their own, in lines.
    fn rest(&self, telling: Option<&str>) -> Vec<String> {
        let is_shown = |name: &str| {
            let is_text = name == "plan" || TEXTS.iter().any(|(text, _, _)| *text == name);
            telling == Some(name) || is_text && self.field(name).is_some()
        };
        let Some(input) = self.input.as_ref().and_then(Value::as_object) else { return Vec::new() };
        let fields = input.iter().filter(|(name, _)| !is_shown(name));
        let fields: Map<_, _> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        in_lines(&self.tool_name, &fields)
    }

    /// What a question of the agent says about the answer with this label, in one line.
    fn description(&self, label: &str) -> Option<String> {
        let answers = self.input.as_ref()?.get("options")?.as_array()?;
        let text = |answer: &Value, field: &str| Some(answer.get(field)?.as_str()?.to_owned());
        let answer = answers.iter().find(|answer| text(answer, "label").as_deref() == Some(label))?;
        let line = text(answer, "description")?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(excerpt(&line, 1)).filter(|line| !line.is_empty())
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.input.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_meant_by_its_number_its_id_or_its_label() {
        let asked: ShownRequest = serde_json::from_str(
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
        let asked = |accepts: &str| -> ShownRequest {
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
}
