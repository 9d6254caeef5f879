//! What AG-UI's clients send.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_application::Prompt;
use tokenrail_domain::PermissionReply;
use utoipa::ToSchema;

use super::content;
use crate::error::Problem;
use crate::json::fields::Fields;
use crate::vocabularies::ag_ui::interrupt_id::InterruptId;
use crate::vocabularies::prompts::conversation_limits::ConversationLimits;

/// The maximum length of the id of a thread or a run, in characters.
const ID_CHARS: usize = 255;

/// The maximum number of answers in one request.
const ANSWERS: usize = 16;

/// A request for a run.
#[derive(Debug)]
pub(crate) struct RunRequest {
    pub(crate) thread: String,
    pub(crate) run: String,
    /// The client names no version of the protocol, so it is older than 1.0.
    pub(crate) is_before_v1: bool,
    pub(crate) wish: Wish,
}

/// What a run is to do.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Send a message.
    Say(Prompt),
    /// Go on after these answers to permission requests. There is at least one.
    Resume(Vec<Answer>),
}

/// The answer to an interrupt.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) interrupt: InterruptId,
    pub(crate) choice: Choice,
}

#[derive(Debug)]
pub(crate) enum Choice {
    Reply(PermissionReply),
    /// Any option that allows or rejects.
    Approve {
        approved: bool,
        note: Option<String>,
    },
}

/// The body of a request for a run. Other fields are ignored.
#[derive(ToSchema)]
#[schema(as = AgUiRunInput, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct RunInputBody {
    /// The id of the conversation. For an unknown id, the server launches an agent. An agent's id also identifies its
    /// conversation.
    #[schema(min_length = 1, max_length = 255)]
    thread_id: String,
    /// A new id for a new run. A repeated id returns the same run.
    #[schema(min_length = 1, max_length = 255)]
    run_id: String,
    /// The version of the protocol.
    #[schema(nullable = false)]
    protocol_version: Option<String>,
    /// The conversation so far. The newest message is sent to the agent, and it must have the role `user`.
    #[schema(value_type = Vec<Object>)]
    messages: (),
    /// Answers to the interrupts of the previous run. With them, no message is sent.
    #[schema(value_type = Option<Vec<Object>>)]
    resume: (),
}

/// Reads a request for a run. The conversation may be nested to any depth, because all of it is skipped but its end.
pub(crate) fn run_request(body: &[u8], limits: ConversationLimits) -> Result<RunRequest, Problem> {
    let (mut fields, messages) =
        Fields::pick(body, &["threadId", "runId", "protocolVersion", "resume"], "messages")?;
    let thread = fields.required_text("threadId", is_id);
    let run = fields.required_text("runId", is_id);
    let is_before_v1 = fields.optional::<String>("protocolVersion", "must be a string").is_none();
    let entries: Option<Vec<Box<RawValue>>> = fields.optional("resume", "must be a list");
    fields.check()?;
    let entries = entries.filter(|entries| !entries.is_empty());
    let wish = match entries {
        Some(entries) => Wish::Resume(answers(&entries, limits)?),
        None => Wish::Say(newest(messages, limits)?),
    };
    Ok(RunRequest { thread, run, is_before_v1, wish })
}

fn is_id(id: &str) -> Option<&'static str> {
    let good = (1..=ID_CHARS).contains(&id.chars().count());
    (!good).then_some("must be 1 to 255 characters long")
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The newest message of the conversation, which must be of the user.
fn newest(messages: Option<&RawValue>, limits: ConversationLimits) -> Result<Prompt, Problem> {
    let wrong = |detail: &str| Problem::field("messages", detail);
    let listed = messages.ok_or_else(|| wrong("must be present"))?;
    let listed: Vec<&RawValue> = serde_json::from_str(listed.get()).map_err(|_| wrong("must be a list"))?;
    for (index, raw) in listed.iter().enumerate().rev() {
        let place = format!("messages/{index}");
        let read = serde_json::from_str::<Message<'_>>(raw.get());
        let Message { role, content } =
            read.map_err(|_| Problem::field(&place, "must be a message with a role"))?;
        match role.as_str() {
            "user" => {
                let place = format!("{place}/content");
                let content = content.ok_or_else(|| Problem::field(&place, "must be present"))?;
                let prompt = content::prompt(content, &place, limits.images)?;
                limits.check_prompt(&[Some(&prompt.text)])?;
                return Ok(prompt);
            }
            // They may follow what the user said.
            "system" | "developer" | "activity" | "reasoning" => {}
            _ => break,
        }
    }
    Err(wrong(
        "the newest message must have the role user; tool results are not accepted, because agents of this server \
         call their own tools",
    ))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    interrupt_id: String,
    status: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

fn answers(entries: &[Box<RawValue>], limits: ConversationLimits) -> Result<Vec<Answer>, Problem> {
    if ANSWERS < entries.len() {
        return Err(Problem::field("resume", format!("must contain at most {ANSWERS} answers")));
    }
    let answers = entries.iter().enumerate().map(|(index, raw)| {
        let place = format!("resume/{index}");
        let Ok(entry) = serde_json::from_str::<Entry<'_>>(raw.get()) else {
            return Err(Problem::field(&place, "must have an interruptId and a status"));
        };
        let unknown = || Problem::field(&format!("{place}/interruptId"), "no such interrupt");
        let interrupt = entry.interrupt_id.parse().map_err(|_| unknown())?;
        let choice = match entry.status.as_str() {
            "cancelled" => Choice::Reply(PermissionReply::default()),
            "resolved" => choice(entry.payload, &format!("{place}/payload"), limits.depth)?,
            _ => {
                let detail = "must be \"resolved\" or \"cancelled\"";
                return Err(Problem::field(&format!("{place}/status"), detail));
            }
        };
        Ok(Answer { interrupt, choice })
    });
    answers.collect()
}

/// Reads a payload: `true` or `false`, the id of an option, or an object.
fn choice(payload: Option<&RawValue>, place: &str, depth: usize) -> Result<Choice, Problem> {
    let missing = || {
        let detail = "must be true, false, the id of an option, or an object with approved, optionId, optionIds or \
                      text";
        Problem::field(place, detail)
    };
    let payload = payload.ok_or_else(missing)?.get();
    if let Ok(approved) = serde_json::from_str(payload) {
        return Ok(Choice::Approve { approved, note: None });
    }
    if let Ok(option) = serde_json::from_str(payload) {
        return Ok(Choice::Reply(PermissionReply::of(Some(option))));
    }
    if !payload.starts_with('{') {
        return Err(missing());
    }
    let mut outer = Fields::read(b"{}", depth)?;
    let mut fields = Fields::read(payload.as_bytes(), depth)?;
    fields.forget_nulls();
    let approved = fields.flag("approved");
    let (option, text) = (fields.text("optionId", |_| None), fields.text("text", |_| None));
    let note = fields.text("note", |_| None);
    let several = |options: &[String]| (64 < options.len()).then_some("must contain at most 64 options");
    let options = fields.texts("optionIds", several);
    outer.refuse_all(place, fields);
    outer.finish()?;
    match (approved, &option, &options, &text) {
        (Some(approved), None, None, None) => Ok(Choice::Approve { approved, note }),
        (None, None, None, None) | (Some(_), ..) => Err(missing()),
        _ => Ok(Choice::Reply(PermissionReply::from_parts(option, options, text, note))),
    }
}
