//! `AskUserQuestion`: the agent lets the user choose. Each of its questions becomes a permission request, one after
//! the other, and the possible answers are its options. The program receives all answers together: for each question
//! one string, in which several labels are separated by a comma.
//!
//! Source of the shapes: the Agent SDK's page on user input, `code.claude.com/docs/en/agent-sdk/user-input`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_domain::Accepts;
use tokenrail_ports::{Choosable, OptionKind};

use super::REJECT;
use crate::converse::conversation::NewRequest;

/// The name of the tool.
pub(super) const TOOL: &str = "AskUserQuestion";
/// The ids of options that are answers begin with this. The number of the answer follows, from 1.
const ANSWER: &str = "answer_";

/// The questions of one request, and the answers so far.
#[derive(Debug)]
pub(super) struct Survey {
    /// The id of the request.
    pub(super) request: String,
    call: Option<String>,
    questions: Box<RawValue>,
    asked: Vec<Asked>,
    /// The answers so far, in the order of the questions.
    answers: Vec<String>,
}

/// One question: its text, its complete JSON, the labels of its answers, and whether several can be chosen.
#[derive(Debug)]
struct Asked {
    text: String,
    whole: Box<RawValue>,
    labels: Vec<String>,
    takes_several: bool,
}

#[derive(Deserialize)]
struct Input {
    questions: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    question: String,
    options: Vec<Label>,
    multi_select: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Label {
    label: String,
}

/// What the program receives as the input of its tool.
#[derive(Serialize)]
struct Answered<'a> {
    questions: &'a RawValue,
    answers: BTreeMap<&'a str, &'a str>,
}

impl Survey {
    /// Reads the input of the tool. `None` if there are no questions, or one of them has no answers to choose from.
    pub(super) fn read(request: &str, call: Option<String>, input: &RawValue) -> Option<Self> {
        let Input { questions } = serde_json::from_str(input.get()).ok()?;
        let items: Vec<Box<RawValue>> = serde_json::from_str(questions.get()).ok()?;
        let asked = items.into_iter().map(Asked::read).collect::<Option<Vec<_>>>()?;
        let request = request.to_owned();
        (!asked.is_empty()).then(|| Self { request, call, questions, asked, answers: Vec::new() })
    }

    /// The next question; `None` if all are answered.
    pub(super) fn next(&self) -> Option<NewRequest> {
        let asked = self.asked.get(self.answers.len())?;
        let labels = (1..).zip(&asked.labels);
        let answers = labels.map(|(number, label)| {
            Choosable::new(&format!("{ANSWER}{number}"), label, OptionKind::AllowOnce)
        });
        let options =
            answers.chain([Choosable::new(REJECT, "Decline to answer", OptionKind::RejectOnce)]).collect();
        Some(NewRequest {
            key: self.key(),
            tool_call_id: self.call.clone(),
            tool_name: TOOL.to_owned(),
            input: asked.whole.clone(),
            options,
            // Claude Code itself always offers an answer in the user's own words.
            accepts: Accepts { note: true, text: true, several: asked.takes_several },
        })
    }

    /// The key of the question that is open.
    pub(super) fn key(&self) -> String {
        format!("{}#{}", self.request, self.answers.len())
    }

    /// Takes an answer to the question that is open: options, a text of the user, or both. Returns false if there is
    /// none, or if one of the options is not an answer.
    pub(super) fn take(&mut self, options: &[String], text: Option<&str>) -> bool {
        let Some(asked) = self.asked.get(self.answers.len()) else { return false };
        let labels = options.iter().map(|option| asked.label(option));
        let parts: Option<Vec<_>> = labels.chain(text.map(Some)).collect();
        let answer = parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join(", "));
        let is_answered = answer.is_some();
        self.answers.extend(answer);
        is_answered
    }

    /// The questions with their answers.
    pub(super) fn answered(&self) -> Option<Box<RawValue>> {
        let answers = self.asked.iter().zip(&self.answers).map(|(asked, answer)| (&*asked.text, &**answer));
        let answered = Answered { questions: &self.questions, answers: answers.collect() };
        serde_json::value::to_raw_value(&answered).ok()
    }
}

impl Asked {
    fn read(whole: Box<RawValue>) -> Option<Self> {
        let Item { question, options, multi_select } = serde_json::from_str(whole.get()).ok()?;
        let labels: Vec<_> = options.into_iter().map(|option| option.label).collect();
        let takes_several = multi_select.is_some_and(|several| several.get() == "true");
        (!labels.is_empty()).then_some(Self { text: question, whole, labels, takes_several })
    }

    /// The label of the answer with this option id.
    fn label(&self, option: &str) -> Option<&str> {
        let number: usize = option.strip_prefix(ANSWER)?.parse().ok()?;
        self.labels.get(number.checked_sub(1)?).map(String::as_str)
    }
}
