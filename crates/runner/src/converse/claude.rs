//! `claude -p --input-format stream-json`: messages and control requests, one JSON object per line.

mod suggestion;
mod survey;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use tokenrail_domain::Accepts;
use tokenrail_ports::{Choosable, OptionKind};

use suggestion::suggested;
use survey::Survey;

use super::conversation::{Choice, Conversation, NewRequest, Outbox};
use super::prompt::{EncodedImage, EncodedPrompt};
use super::raw_object::raw_objects;
use super::rpc::{read, text};

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT: &str = "reject";

/// The turns of Claude Code. When its standard input is closed, it exits after its result.
#[derive(Debug)]
pub(super) struct ClaudeConversation {
    prompt: EncodedPrompt,
    /// The open permission requests, by the id of the request.
    asked: BTreeMap<String, Asked>,
    /// The open requests of `AskUserQuestion`, by the key of the question that is open.
    surveys: BTreeMap<String, Survey>,
    /// The turn has ended, and the program is idle.
    idle: bool,
    /// The program has, or had, work in the background. It reports that work without being asked.
    in_background: bool,
}

#[derive(Debug)]
struct Asked {
    input: Box<RawValue>,
    /// The permission updates that the program suggests, so that it need not ask again.
    suggestions: Option<Box<RawValue>>,
}

raw_objects! {
    struct ClaudeLine<'a> {
        #[serde(rename = "type")]
        kind,
        request_id,
        request,
        subtype,
        is_error,
        tasks,
        is_backgrounded,
        patch,
    }

    /// The fields of a task that have changed.
    struct TaskPatch<'a> { is_backgrounded }

    struct ControlRequest<'a> { subtype, tool_name, tool_use_id, input, permission_suggestions }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message<'a> {
    User { message: UserMessage<'a>, parent_tool_use_id: Option<()>, session_id: &'a str },
    ControlRequest { request_id: &'a str, request: Interrupt },
    ControlResponse { response: Response<'a> },
}

#[derive(Serialize)]
struct UserMessage<'a> {
    role: &'static str,
    content: Content<'a>,
}

/// A text alone is sent as a string, as before images existed.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Image { source: Source<'a> },
    Text { text: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct Source<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl<'a> From<&'a EncodedPrompt> for Content<'a> {
    fn from(prompt: &'a EncodedPrompt) -> Self {
        let EncodedPrompt { text, images } = prompt;
        if images.is_empty() {
            return Self::Text(text);
        }
        let image = |EncodedImage { media_type, data }: &'a EncodedImage| Block::Image {
            source: Source { media_type, data },
        };
        // Models understand a text about images best if it comes after them.
        Self::Blocks(images.iter().map(image).chain([Block::Text { text }]).collect())
    }
}

#[derive(Serialize)]
#[serde(tag = "subtype", rename = "interrupt")]
struct Interrupt {}

#[derive(Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum Response<'a> {
    Success { request_id: &'a str, response: Decision<'a> },
    Error { request_id: &'a str, error: &'static str },
}

#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Decision<'a> {
    Allow {
        updated_input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_permissions: Option<&'a RawValue>,
    },
    Deny {
        /// The model receives it as the result of its tool call.
        message: Cow<'a, str>,
    },
}

impl ClaudeConversation {
    pub(super) fn new(prompt: impl Into<EncodedPrompt>) -> Self {
        Self {
            prompt: prompt.into(),
            asked: BTreeMap::new(),
            surveys: BTreeMap::new(),
            idle: false,
            in_background: false,
        }
    }

    /// Handles the result of a turn. If the program has failed, or will continue by itself, the conversation is over:
    /// the program's input is closed, and the program exits when it has said everything.
    fn result(&mut self, line: &ClaudeLine<'_>, out: &mut Outbox) {
        let failed = line.is_error.is_some_and(|failed| failed.get() != "false");
        let succeeded = !failed && text(line.subtype).as_deref() == Some("success");
        // A program that is idle reports the result of something that it was not asked to do.
        if !succeeded || self.in_background || self.idle {
            out.over = true;
        } else {
            (self.idle, out.idle) = (true, true);
        }
    }

    fn system(&mut self, line: &ClaudeLine<'_>, out: &mut Outbox) {
        match text(line.subtype).as_deref() {
            Some("background_tasks_changed") => {
                self.in_background |= line.tasks.is_none_or(|tasks| tasks.get() != "[]");
            }
            // A tool that only takes long is reported as a task too.
            Some("task_started" | "task_updated") => {
                let patch: TaskPatch<'_> = read(line.patch);
                self.in_background |= is_true(line.is_backgrounded) || is_true(patch.is_backgrounded);
            }
            Some("init") => self.spoken(out),
            _ => {}
        }
    }

    /// Handles output of the program. If the program is idle, no run reads that output, so the conversation ends
    /// before the program begins anything more.
    fn spoken(&mut self, out: &mut Outbox) {
        out.over |= self.idle;
    }

    fn control_request(&mut self, id: String, request: &ControlRequest<'_>, out: &mut Outbox) {
        if text(request.subtype).as_deref() != Some("can_use_tool") {
            // This client offers no other requests. Without an answer, the program would wait forever.
            let response =
                Response::Error { request_id: &id, error: "this client does not support this request" };
            return out.say(&Message::ControlResponse { response });
        }
        let input = request.input.map_or_else(empty_object, ToOwned::to_owned);
        let (call, tool_name) = (text(request.tool_use_id), text(request.tool_name).unwrap_or_default());
        if tool_name == survey::TOOL
            && let Some(survey) = Survey::read(&id, call.clone(), &input)
        {
            return self.go_on(survey, out);
        }
        let mut options = vec![Choosable::new(ALLOW, "Allow", OptionKind::AllowOnce)];
        let mut suggestions = None;
        if let Some(name) = suggested(request.permission_suggestions) {
            options.push(Choosable::new(ALLOW_ALWAYS, &name, OptionKind::AllowAlways));
            suggestions = request.permission_suggestions;
        }
        options.push(Choosable::new(REJECT, "Reject", OptionKind::RejectOnce));
        out.asked.push(NewRequest {
            key: id.clone(),
            tool_call_id: call,
            tool_name,
            input: input.clone(),
            options,
            accepts: Accepts { note: true, ..Accepts::default() },
        });
        self.asked.insert(id, Asked { input, suggestions: suggestions.map(ToOwned::to_owned) });
    }

    /// Asks the next question, or sends all answers to the program.
    fn go_on(&mut self, survey: Survey, out: &mut Outbox) {
        if let Some(request) = survey.next() {
            out.asked.push(request);
            self.surveys.insert(survey.key(), survey);
        } else if let Some(answered) = survey.answered() {
            let response = Decision::Allow { updated_input: &answered, updated_permissions: None };
            decide(&survey.request, response, out);
        }
    }

    fn survey_answered(&mut self, mut survey: Survey, choice: &Choice, out: &mut Outbox) {
        let taken = match choice {
            Choice::TurnCancelled => return,
            Choice::Option(option) => survey.take(std::slice::from_ref(option), None),
            Choice::Composed { options, text } => survey.take(options, text.as_deref()),
            Choice::OptionWithNote { .. } | Choice::Dismissed => false,
        };
        if taken {
            return self.go_on(survey, out);
        }
        let message = match choice {
            Choice::Dismissed => "The question was not answered.".into(),
            Choice::OptionWithNote { note, .. } => with_note("The user declined to answer", note),
            _ => "The user declined to answer.".into(),
        };
        decide(&survey.request, Decision::Deny { message }, out);
    }
}

impl Conversation for ClaudeConversation {
    fn open(&mut self, out: &mut Outbox) {
        // It is sent once, and may be large.
        let prompt = std::mem::take(&mut self.prompt);
        let message = UserMessage { role: "user", content: (&prompt).into() };
        out.say(&Message::User { message, parent_tool_use_id: None, session_id: "" });
    }

    fn line(&mut self, line: &[u8], out: &mut Outbox) {
        let Ok(line) = serde_json::from_slice::<ClaudeLine<'_>>(line) else { return };
        match (text(line.kind).as_deref(), text(line.request_id)) {
            (Some("result"), _) => self.result(&line, out),
            (Some("system"), _) => self.system(&line, out),
            (Some("stream_event" | "assistant" | "user"), _) => self.spoken(out),
            (Some("control_request"), Some(id)) => {
                self.spoken(out);
                self.control_request(id, &read(line.request), out);
            }
            (Some("control_cancel_request"), Some(id)) => {
                self.asked.remove(&id);
                let survey = self.surveys.extract_if(.., |_, survey| survey.request == id).next();
                out.withdrawn.push(survey.map_or(id, |(key, _)| key));
            }
            _ => {}
        }
    }

    fn answer(&mut self, key: &str, choice: &Choice, out: &mut Outbox) {
        if let Some(survey) = self.surveys.remove(key) {
            return self.survey_answered(survey, choice, out);
        }
        let Some(asked) = self.asked.remove(key) else { return };
        let response = match choice {
            // The interrupt that follows withdraws the request.
            Choice::TurnCancelled => return,
            Choice::Option(option) if option == ALLOW => {
                Decision::Allow { updated_input: &asked.input, updated_permissions: None }
            }
            Choice::Option(option) if option == ALLOW_ALWAYS => Decision::Allow {
                updated_input: &asked.input,
                updated_permissions: asked.suggestions.as_deref(),
            },
            Choice::OptionWithNote { note, .. } => {
                Decision::Deny { message: with_note("The user rejected this action", note) }
            }
            Choice::Option(_) | Choice::Composed { .. } => {
                Decision::Deny { message: "The user rejected this action.".into() }
            }
            Choice::Dismissed => {
                Decision::Deny { message: "The permission request was not answered.".into() }
            }
        };
        decide(key, response, out);
    }

    fn cancel(&mut self, out: &mut Outbox) {
        out.say(&Message::ControlRequest { request_id: "interrupt", request: Interrupt {} });
    }

    fn further_turn(&mut self, prompt: EncodedPrompt, out: &mut Outbox) {
        self.idle = false;
        self.prompt = prompt;
        self.open(out);
    }
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

fn with_note(what: &str, note: &str) -> Cow<'static, str> {
    format!("{what} and says: {note}").into()
}

fn decide(request_id: &str, response: Decision<'_>, out: &mut Outbox) {
    out.say(&Message::ControlResponse { response: Response::Success { request_id, response } });
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests;
