//! `AskUserQuestion`: the agent lets the user choose. Each of its questions becomes a permission request, one after
//! the other, and the possible answers are its options. The program receives all answers together.
//!
//! Source of the shapes: the Agent SDK's page on user input, `code.claude.com/docs/en/agent-sdk/user-input`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_ports::{Choosable, OptionKind};

use super::REJECT;
use crate::converse::conversation::Question;

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
    /// The indexes of the answers so far, in the order of the questions.
    answers: Vec<usize>,
}

/// One question: its text, its complete JSON, and the labels of its answers.
#[derive(Debug)]
struct Asked {
    text: String,
    whole: Box<RawValue>,
    labels: Vec<String>,
}

#[derive(Deserialize)]
struct Input {
    questions: Box<RawValue>,
}

#[derive(Deserialize)]
struct Item {
    question: String,
    options: Vec<Label>,
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
    pub(super) fn next(&self) -> Option<Question> {
        let asked = self.asked.get(self.answers.len())?;
        let labels = (1..).zip(&asked.labels);
        let answers = labels.map(|(number, label)| {
            Choosable::new(&format!("{ANSWER}{number}"), label, OptionKind::AllowOnce)
        });
        let options =
            answers.chain([Choosable::new(REJECT, "Decline to answer", OptionKind::RejectOnce)]).collect();
        Some(Question {
            key: self.key(),
            tool_call_id: self.call.clone(),
            tool_name: TOOL.to_owned(),
            input: asked.whole.clone(),
            options,
        })
    }

    /// The key of the question that is open.
    pub(super) fn key(&self) -> String {
        format!("{}#{}", self.request, self.answers.len())
    }

    /// Takes an answer to the question that is open. Returns false if the option is not one of its answers.
    pub(super) fn take(&mut self, option: &str) -> bool {
        let number = option.strip_prefix(ANSWER).and_then(|number| number.parse::<usize>().ok());
        let asked = self.asked.get(self.answers.len());
        let answer = number.and_then(|number| number.checked_sub(1));
        let answer = answer.filter(|answer| asked.is_some_and(|asked| *answer < asked.labels.len()));
        self.answers.extend(answer);
        answer.is_some()
    }

    /// The questions with their answers.
    pub(super) fn answered(&self) -> Option<Box<RawValue>> {
        let answers = self.asked.iter().zip(&self.answers);
        let answers =
            answers.filter_map(|(asked, answer)| Some((&*asked.text, &**asked.labels.get(*answer)?)));
        let answered = Answered { questions: &self.questions, answers: answers.collect() };
        serde_json::value::to_raw_value(&answered).ok()
    }
}

impl Asked {
    fn read(whole: Box<RawValue>) -> Option<Self> {
        let Item { question, options } = serde_json::from_str(whole.get()).ok()?;
        let labels: Vec<_> = options.into_iter().map(|option| option.label).collect();
        (!labels.is_empty()).then_some(Self { text: question, whole, labels })
    }
}
