//! The arguments of tools. The schemas in `tools.json` describe them.

use std::time::Duration;

use serde::Serialize;
use tokenrail_application::PermissionAnswer;
use tokenrail_domain::{AgentId, AgentStatus, PermissionReply, Sequence, TurnNumber};

use super::rpc::Params;
use crate::error::{Code, Problem};
use crate::json::fields::Fields;

/// The number of agents in one page, if the client does not choose it, and at most.
const LISTED: (u64, u64) = (20, 100);
/// How long a wait takes, if the client does not choose it, and at most. Clients give up on a tool after a minute.
const WAIT_MS: (u64, u64) = (30_000, 50_000);
/// The size of entries, if the client does not choose it, and at most. A model has to read them.
const READ_BYTES: (u64, u64) = (40_000, 200_000);
/// The least size of entries that a client can choose.
const READ_BYTES_MIN: u64 = 1_000;

/// The maximum length of an agent's name, in characters.
const NAME_CHARS: usize = 200;
/// The maximum length of a model's name, in bytes.
const MODEL_BYTES: usize = 128;
/// The maximum length of an idempotency key, in bytes.
const KEY_BYTES: usize = 255;
/// The maximum number of options in one answer.
pub(super) const ANSWER_OPTIONS: usize = 64;

/// Which agents to list.
pub(crate) struct ListWish {
    pub(crate) status: Option<AgentStatus>,
    pub(crate) limit: usize,
    pub(crate) before: Option<AgentId>,
}

/// An agent to launch. Written as JSON, it is what an idempotency key belongs to.
#[derive(Serialize)]
pub(crate) struct NewAgent {
    pub(crate) agent_type: Option<String>,
    pub(crate) prompt: String,
    pub(crate) cwd: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) name: Option<String>,
    #[serde(skip)]
    pub(crate) key: Option<String>,
}

/// A message to an agent.
pub(crate) struct MessageWish {
    pub(crate) agent: AgentId,
    pub(crate) content: String,
    pub(crate) key: Option<String>,
}

/// What to read of an agent.
#[derive(Clone, Copy)]
pub(crate) struct ReadWish {
    pub(crate) agent: AgentId,
    pub(crate) since: Sequence,
    pub(crate) bytes: usize,
}

/// Which part of an entry to read.
#[derive(Clone, Copy)]
pub(crate) struct PartWish {
    pub(crate) agent: AgentId,
    pub(crate) seq: Sequence,
    /// Where the part begins, in bytes.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// What to wait for, and how long.
#[derive(Clone, Copy)]
pub(crate) struct WaitWish {
    pub(crate) read: ReadWish,
    pub(crate) limit: Duration,
}

/// An answer to a request of an agent.
pub(crate) struct AnswerWish {
    pub(crate) agent: AgentId,
    pub(crate) answer: PermissionAnswer,
}

/// What to cancel.
pub(crate) struct CancelWish {
    pub(crate) agent: AgentId,
    pub(crate) turn: Option<TurnNumber>,
}

fn arguments(params: &Params) -> Result<Fields, Problem> {
    let mut fields = params.object("arguments")?;
    // Models send null for what they leave out.
    fields.forget_nulls();
    Ok(fields)
}

/// The agent. `None` if the id is malformed: no agent has it.
pub(super) fn agent(fields: &mut Fields) -> Option<AgentId> {
    fields.required_text("agent_id", |_| None).parse().ok()
}

/// The agent, if all other arguments are good too.
pub(super) fn checked(fields: Fields, agent: Option<AgentId>) -> Result<AgentId, Problem> {
    fields.finish()?;
    agent.ok_or_else(|| Problem::new(Code::NotFound, "no such agent"))
}

fn number(fields: &mut Fields, name: &str, (default, most): (u64, u64)) -> u64 {
    fields.number(name).unwrap_or(default).min(most)
}

fn key(fields: &mut Fields) -> Option<String> {
    fields.text("idempotency_key", |key| {
        let is_legal =
            (1..=KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        (!is_legal).then_some("must be 1 to 255 visible ASCII characters")
    })
}

pub(super) fn not_blank(text: &str) -> Option<&'static str> {
    text.trim().is_empty().then_some("must not be blank")
}

fn is_model(model: &str) -> Option<&'static str> {
    let is_legal = (1..=MODEL_BYTES).contains(&model.len())
        && !model.starts_with('-')
        && model.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte));
    (!is_legal).then_some(
        "must have 1 to 128 letters, digits, or any of . _ : / -, and must not begin with a hyphen",
    )
}

fn is_path(path: &str) -> Option<&'static str> {
    (path.is_empty() || path.chars().any(char::is_control))
        .then_some("must not be empty or contain control characters")
}

pub(crate) fn list(params: &Params) -> Result<ListWish, Problem> {
    let mut fields = arguments(params)?;
    let status = fields.text("status", |_| None);
    let known = status.as_deref().and_then(AgentStatus::from_name);
    if status.is_some() && known.is_none() {
        fields.refuse(
            "status",
            "must be a status: initializing, running, completed, failed, cancelled or interrupted",
        );
    }
    let limit = number(&mut fields, "limit", LISTED).max(1) as usize;
    let before = page_cursor(&mut fields);
    fields.finish()?;
    Ok(ListWish { status: known, limit, before })
}

/// The cursor of a list: the last agent of the previous page.
pub(super) fn page_cursor(fields: &mut Fields) -> Option<AgentId> {
    let cursor = fields.text("cursor", |_| None)?;
    let before = cursor.parse().ok();
    if before.is_none() {
        fields.refuse("cursor", "must be from an earlier page");
    }
    before
}

pub(crate) fn launch(params: &Params) -> Result<NewAgent, Problem> {
    let mut fields = arguments(params)?;
    let agent = NewAgent {
        agent_type: fields.text("agent_type", |_| None),
        prompt: fields.required_text("prompt", not_blank),
        cwd: fields.text("cwd", is_path),
        model: fields.text("model", is_model),
        name: fields.text("name", |name| {
            (NAME_CHARS < name.chars().count()).then_some("must be at most 200 characters long")
        }),
        key: key(&mut fields),
    };
    fields.finish()?;
    Ok(agent)
}

pub(crate) fn message(params: &Params) -> Result<MessageWish, Problem> {
    let mut fields = arguments(params)?;
    let agent = agent(&mut fields);
    let (content, key) = (fields.required_text("content", not_blank), key(&mut fields));
    Ok(MessageWish { agent: checked(fields, agent)?, content, key })
}

/// Reads what to read, and the time to wait for it.
pub(crate) fn wait(params: &Params) -> Result<WaitWish, Problem> {
    let mut fields = arguments(params)?;
    let agent = agent(&mut fields);
    let since = Sequence(fields.number("since").unwrap_or_default());
    let bytes = number(&mut fields, "max_bytes", READ_BYTES).max(READ_BYTES_MIN) as usize;
    let limit = Duration::from_millis(number(&mut fields, "timeout_ms", WAIT_MS));
    let read = ReadWish { agent: checked(fields, agent)?, since, bytes };
    Ok(WaitWish { read, limit })
}

pub(crate) fn read(params: &Params) -> Result<ReadWish, Problem> {
    Ok(wait(params)?.read)
}

pub(crate) fn part(params: &Params) -> Result<PartWish, Problem> {
    let mut fields = arguments(params)?;
    let agent = agent(&mut fields);
    let seq = Sequence(fields.number("seq").unwrap_or_default());
    let offset = usize::try_from(fields.number("offset").unwrap_or_default()).unwrap_or(usize::MAX);
    let bytes = number(&mut fields, "max_bytes", READ_BYTES).max(READ_BYTES_MIN) as usize;
    Ok(PartWish { agent: checked(fields, agent)?, seq, offset, bytes })
}

pub(crate) fn answer(params: &Params) -> Result<AnswerWish, Problem> {
    let mut fields = arguments(params)?;
    let agent = agent(&mut fields);
    let request_id = fields.required_text("request_id", |_| None);
    let option = fields.text("option_id", |_| None);
    let options = fields.texts("option_ids", |options| {
        (!(1..=ANSWER_OPTIONS).contains(&options.len())).then_some("must contain 1 to 64 options")
    });
    let (text, note) = (fields.text("text", not_blank), fields.text("note", not_blank));
    let cancelled = fields.flag("cancelled").unwrap_or(false);
    let answers = option.is_some() || options.is_some() || text.is_some();
    if option.is_some() && options.is_some() {
        fields.refuse("option_ids", "must not be sent together with option_id");
    } else if fields.are_good() && answers == cancelled {
        fields.refuse(
            "option_id",
            "must be one of the request's options; to choose none, send cancelled: true",
        );
    }
    let agent = checked(fields, agent)?;
    let reply = PermissionReply::from_parts(option, options, text, note);
    Ok(AnswerWish { agent, answer: PermissionAnswer { request_id, reply } })
}

pub(crate) fn cancel(params: &Params) -> Result<CancelWish, Problem> {
    let mut fields = arguments(params)?;
    let agent = agent(&mut fields);
    let turn = fields.number("turn").map(|turn| TurnNumber(u32::try_from(turn).unwrap_or(u32::MAX)));
    Ok(CancelWish { agent: checked(fields, agent)?, turn })
}

/// The name of an argument, which other vocabularies call by another name.
pub(crate) fn argument(field: &str) -> &str {
    match field {
        "type" => "agent_type",
        "optionId" => "option_id",
        "optionIds" => "option_ids",
        field => field,
    }
}
