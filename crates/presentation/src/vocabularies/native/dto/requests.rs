//! The requests of clients. They are read field by field, so that an error names every invalid field.

mod images;

#[cfg(test)]
use super::declarations::Declarations;
use tokenrail_application::{Launch, Prompt};
use tokenrail_domain::{AgentEdit, ImageFile, NewName, SessionId, SessionIdError};
use utoipa::ToSchema;

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};
use crate::json::fields::Fields;
use crate::query;
use crate::vocabularies::prompts::prompt_images::ImageLimits;

use self::images::{ImageBody, images};

/// The maximum length of a name, in characters.
const NAME_CHARS: usize = 200;
/// The maximum length of a model name, in characters.
const WORD_CHARS: usize = 128;

/// The maximum speed of a replay. 1 is the original speed.
const SPEED_MAX: f64 = 1000.0;

/// The file of an exported agent.
#[derive(ToSchema)]
#[schema(as = Archive)]
#[expect(
    dead_code,
    reason = "it describes the body in the OpenAPI document; the reading is done piece by piece"
)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Archive"))]
pub(crate) struct ImportBody {
    /// The version of the file format: 1.
    #[schema(minimum = 1, maximum = 1)]
    #[cfg_attr(test, ts(type = "1"))]
    tokenrail: u8,
    #[schema(value_type = Object)]
    #[cfg_attr(test, ts(type = "Json"))]
    agent: (),
    #[schema(value_type = Vec<Object>)]
    #[cfg_attr(test, ts(type = "Json[]"))]
    turns: (),
    #[schema(value_type = Vec<Object>)]
    #[cfg_attr(test, ts(type = "Json[]"))]
    events: (),
}

/// The body of a launch.
#[derive(ToSchema)]
#[schema(as = Launch, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Launch", rename_all = "camelCase", optional_fields))]
pub(crate) struct LaunchBody {
    /// The agent type; without it the configured default.
    #[schema(rename = "type", nullable = false)]
    #[cfg_attr(test, ts(rename = "type"))]
    kind: Option<String>,
    #[schema(min_length = 1, pattern = r"\S")]
    prompt: String,
    /// The images of the prompt: at most `limits.prompt_images` of them, with at most `limits.prompt_image_bytes` bytes
    /// in total. Only if the agent type has `can.images`.
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional, type = "NewImage[]"))]
    images: Option<Vec<ImageBody>>,
    #[schema(pattern = "^[A-Za-z0-9._:/][A-Za-z0-9._:/-]{0,127}$", nullable = false)]
    model: Option<String>,
    /// The working directory. It must be inside one of the type's `cwd_roots` or inside an allowed folder. Default: a
    /// new folder for this agent.
    #[schema(min_length = 1, nullable = false)]
    cwd: Option<String>,
    /// The name or the id of the server that runs the agent, if several servers share one database. It cannot be
    /// combined with `cwd` or `sessionId`, unless it is the server that receives the request.
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    node: Option<String>,
    /// A session of the agent program to resume.
    #[schema(max_length = 128, pattern = r"^[!-$&-,0-\[\]-~](\.?[!-$&-\-0-\[\]-~])*\.?$", nullable = false)]
    session_id: Option<String>,
    #[schema(max_length = 200, nullable = false)]
    name: Option<String>,
    #[schema(value_type = Object, required = false)]
    #[cfg_attr(test, ts(optional, type = "Record<string, unknown>"))]
    metadata: Option<()>,
    #[schema(value_type = Object, required = false)]
    #[cfg_attr(test, ts(optional, type = "Record<string, unknown>"))]
    options: Option<()>,
    /// Cancel the agent when its last follower leaves.
    #[schema(nullable = false)]
    cancel_on_disconnect: Option<bool>,
}

/// The body of a change of an agent, as a JSON merge patch: fields that are absent stay as they are.
#[derive(ToSchema)]
#[schema(as = AgentEdit)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentEdit", optional_fields = nullable))]
pub(crate) struct EditBody {
    /// `null` removes the name.
    #[schema(max_length = 200)]
    name: Option<String>,
    /// Whether the agent is pinned: the page shows it before the others.
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pinned: Option<bool>,
    /// Whether lists leave the agent out.
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    archived: Option<bool>,
}

/// The body of a message to an agent.
#[derive(ToSchema)]
#[schema(as = Message)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "NewMessage", optional_fields))]
pub(crate) struct SendBody {
    #[schema(min_length = 1, pattern = r"\S")]
    content: String,
    /// The images of the message, as in a launch.
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional, type = "NewImage[]"))]
    images: Option<Vec<ImageBody>>,
}

/// The body of a replay; it may be left out.
#[derive(ToSchema)]
#[schema(as = ReplayRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ReplayRequest", optional_fields))]
pub(crate) struct ReplayBody {
    /// 1 is the original speed, 2 is twice as fast, 0 is as fast as possible.
    #[schema(minimum = 0, maximum = 1000, nullable = false)]
    speed: Option<f64>,
}

/// The body of a request for a ticket; it may be left out.
#[derive(ToSchema)]
#[schema(as = TicketRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "TicketRequest", optional_fields))]
pub(crate) struct TicketBody {
    /// The only path for which the ticket is valid: `/ws`, `/api/chat` or an agent's `/events`.
    #[schema(
        nullable = false,
        pattern = "^(/ws|/api/chat|/api/agents/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/events)$"
    )]
    path: Option<String>,
}

/// The body of a request for a session. It may be left out if the request has the token.
#[derive(ToSchema)]
#[schema(as = SessionRequest)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct SessionBody {
    /// A one-time login code.
    #[schema(nullable = false)]
    code: Option<String>,
}

/// The limits of a request with a prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptLimits {
    /// Of the body without its images.
    request_bytes: usize,
    depth: usize,
    images: ImageLimits,
}

impl From<&PresentationConfig> for PromptLimits {
    fn from(config: &PresentationConfig) -> Self {
        Self { request_bytes: config.request_bytes, depth: config.json_depth, images: config.into() }
    }
}

impl PromptLimits {
    /// The longest body.
    pub(crate) fn body_bytes(self) -> usize {
        self.request_bytes.saturating_add(self.images.json_bytes())
    }

    fn read(self, body: &[u8]) -> Result<(Fields, Vec<ImageFile>), Problem> {
        let mut fields = Fields::read(body, self.depth)?;
        let besides = body.len() - fields.bytes_of("images");
        if self.request_bytes < besides {
            let most = self.request_bytes;
            let detail = format!("the body must be at most {most} bytes, without its images");
            return Err(Problem::new(Code::PayloadTooLarge, detail));
        }
        let images = images(&mut fields, self.images, self.depth)?;
        Ok((fields, images))
    }
}

/// Reads a launch.
pub(crate) fn launch(body: &[u8], limits: PromptLimits) -> Result<Launch, Problem> {
    let (mut fields, images) = limits.read(body)?;
    let launch = Launch {
        images,
        kind: fields.text("type", |_| None),
        prompt: fields.required_text("prompt", not_blank),
        model: fields.text("model", is_model),
        cwd: fields.text("cwd", is_path),
        node: fields.text("node", is_node),
        session: fields
            .text("sessionId", |session| SessionId::new(session).err().map(|_| SessionIdError::RULE))
            .and_then(|session| SessionId::new(&session).ok()),
        name: fields.text("name", is_name),
        chat: None,
        parent: None,
        metadata: fields.object("metadata"),
        options: fields.object("options"),
        cancel_on_disconnect: fields.flag("cancelOnDisconnect").unwrap_or(false),
        idempotency: None,
    };
    fields.finish()?;
    Ok(launch)
}

/// Reads a change of an agent.
pub(crate) fn edit(body: &[u8], depth: usize) -> Result<AgentEdit, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let edit = AgentEdit {
        name: if fields.take_null("name") {
            Some(NewName::Removed)
        } else {
            fields.text("name", is_name).map(NewName::Text)
        },
        pinned: fields.flag("pinned"),
        archived: fields.flag("archived"),
    };
    fields.finish()?;
    Ok(edit)
}

/// Reads a message to an agent.
pub(crate) fn send(body: &[u8], limits: PromptLimits) -> Result<Prompt, Problem> {
    let (mut fields, images) = limits.read(body)?;
    let text = fields.required_text("content", not_blank);
    fields.finish()?;
    Ok(Prompt { text, images })
}

/// Reads the speed of a replay: 1 if the request does not name it.
pub(crate) fn replay_speed(body: &[u8], depth: usize) -> Result<f64, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let speed = fields.real("speed", |speed| {
        (!(0.0..=SPEED_MAX).contains(&speed)).then_some("must be a number from 0 to 1000")
    });
    fields.finish()?;
    Ok(speed.unwrap_or(1.0))
}

/// Reads a request for a ticket.
pub(crate) fn ticket_path(body: &[u8], depth: usize) -> Result<Option<String>, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let path = fields.text("path", |path| {
        (!query::is_ticket_path(path))
            .then_some("must be /ws, /api/chat, or /api/agents/ followed by an agent's id and /events")
    });
    fields.finish()?;
    Ok(path)
}

/// Reads the login code of a request for a session.
pub(crate) fn login_code(body: &[u8], depth: usize) -> Result<Option<String>, Problem> {
    let mut fields = Fields::read(body, depth)?;
    let code = fields.text("code", |_| None);
    fields.finish()?;
    Ok(code)
}

fn not_blank(text: &str) -> Option<&'static str> {
    text.trim().is_empty().then_some("must not be blank")
}

fn is_node(node: &str) -> Option<&'static str> {
    let is_named = (1..=NAME_CHARS).contains(&node.chars().count());
    (!is_named).then_some("must have 1 to 200 characters")
}

fn is_model(model: &str) -> Option<&'static str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '/' | '-');
    let good = !model.is_empty() && model.len() <= WORD_CHARS && !model.starts_with('-');
    (!(good && model.chars().all(legal))).then_some("must match ^[A-Za-z0-9._:/][A-Za-z0-9._:/-]{0,127}$")
}

fn is_path(path: &str) -> Option<&'static str> {
    (path.is_empty() || path.chars().any(char::is_control))
        .then_some("must not be empty or contain control characters")
}

fn is_name(name: &str) -> Option<&'static str> {
    (NAME_CHARS < name.chars().count()).then_some("must be at most 200 characters long")
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<ImageBody>();
    out.of::<LaunchBody>();
    out.of::<EditBody>();
    out.of::<SendBody>();
    out.of::<ReplayBody>();
    out.of::<TicketBody>();
    out.of::<ImportBody>();
}
