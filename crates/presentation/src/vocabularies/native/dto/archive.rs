//! The file of an exported agent. It contains everything that cannot be computed, and all of it can be read back
//! unchanged.

mod event;
mod image;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tokenrail_application::{Imported, NewTurn};
use tokenrail_domain::{
    Agent, AgentId, JsonText, Sequence, SessionId, SessionIdError, Timestamp, Turn, TurnImage, TurnNumber,
    TurnOutcome, TurnState,
};

use crate::json::readable::stumble;
use crate::json::{IdText, IsoTime, Json};
use crate::vocabularies::prompts::prompt_images::ImageLimits;

use self::image::ArchivedImage;
pub(crate) use event::ArchivedEvent;

/// The version of the file format.
pub(crate) const VERSION: u64 = 1;

/// Foreign JSON, unchanged.
#[derive(Debug, Clone)]
pub(crate) struct GivenJson(pub(crate) JsonText);

impl Serialize for GivenJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Json(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GivenJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        // An export would write such a value as a string, which is a different value.
        if let Some(stumble) = stumble(value.get()) {
            return Err(serde::de::Error::custom(format_args!("the field's value {stumble}")));
        }
        Ok(Self(JsonText::new_unchecked(value.get())))
    }
}

/// Checks that foreign JSON is an object.
fn object(text: Option<GivenJson>, name: &str) -> Result<Option<JsonText>, String> {
    match text {
        Some(GivenJson(text)) if !text.as_str().starts_with('{') => Err(format!("{name} must be an object")),
        text => Ok(text.map(|GivenJson(text)| text)),
    }
}

/// A time with milliseconds, to write and to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(pub(crate) Timestamp);

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        IsoTime(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(Timestamp(time.as_millisecond())))
    }
}

/// The agent of a file. Fields that follow from its events are only for human readers; an import ignores them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArchivedAgent<'a> {
    id: IdText,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    status: &'static str,
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    head: u64,
    created_at: At,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Json<'a>>,
}

impl<'a> From<&'a Agent> for ArchivedAgent<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self {
            id: agent.id.into(),
            kind: &agent.kind,
            name: agent.name.as_deref(),
            status: agent.status.as_str(),
            prompt: &agent.prompt,
            model: agent.model.as_deref(),
            cwd: &agent.cwd,
            // An older version may have stored an id that an import would refuse.
            session_id: agent.session.as_deref().filter(|session| SessionId::new(session).is_ok()),
            head: agent.head.0,
            created_at: At(agent.created_at),
            metadata: agent.metadata.as_ref().map(Json),
            options: agent.options.as_ref().map(Json),
        }
    }
}

/// The agent of a file, as an import reads it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadAgent {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    prompt: String,
    model: Option<String>,
    cwd: String,
    session_id: Option<String>,
    created_at: At,
    metadata: Option<GivenJson>,
    options: Option<GivenJson>,
}

impl ReadAgent {
    pub(crate) fn into_imported(self) -> Result<Imported, String> {
        let Self { kind, name, prompt, model, cwd, session_id, created_at, metadata, options } = self;
        if kind.is_empty() {
            return Err("type must not be empty".to_owned());
        }
        let session = session_id.as_deref().map(SessionId::new).transpose();
        Ok(Imported {
            kind,
            name,
            prompt,
            model,
            cwd,
            session: session.map_err(|_| format!("sessionId {}", SessionIdError::RULE))?,
            created_at: created_at.0,
            metadata: object(metadata, "metadata")?,
            options: object(options, "options")?,
        })
    }
}

/// A turn of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArchivedTurn {
    number: u32,
    run: u32,
    outcome: String,
    prompt: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    images: Vec<ArchivedImage>,
    asked_at: At,
    first_sequence: u64,
    last_sequence: u64,
}

impl ArchivedTurn {
    /// The turn of a file, with its images. `None` if the turn has not ended.
    pub(crate) fn of(turn: &Turn, images: &[TurnImage]) -> Option<Self> {
        let TurnState::Ended(outcome) = turn.state else { return None };
        Some(Self {
            number: turn.number.0,
            run: turn.run.0,
            outcome: outcome.as_str().to_owned(),
            prompt: turn.prompt.clone(),
            images: images.iter().map(ArchivedImage::of).collect(),
            asked_at: At(turn.asked_at),
            first_sequence: turn.first_sequence?.0,
            last_sequence: turn.last_sequence?.0,
        })
    }

    /// The turn, with a nil agent id, because the agent is not known yet.
    pub(crate) fn into_turn(self, limits: ImageLimits) -> Result<NewTurn, String> {
        let Self { number, run, outcome, prompt, images, asked_at, first_sequence, last_sequence } = self;
        let outcome = TurnOutcome::from_name(&outcome).ok_or("unknown outcome")?;
        limits.check_count(images.len()).map_err(|wrong| format!("images {wrong}"))?;
        let images =
            images.into_iter().map(|image| image.into_image(limits)).collect::<Result<Vec<_>, _>>()?;
        limits
            .check_sum(images.iter().filter_map(TurnImage::file))
            .map_err(|wrong| format!("images {wrong}"))?;
        let turn = Turn {
            agent: AgentId::from_uuid(uuid::Uuid::nil()),
            number: TurnNumber(number),
            run: TurnNumber(run),
            prompt,
            images: Vec::new(),
            state: TurnState::Ended(outcome),
            asked_at: asked_at.0,
            first_sequence: Some(Sequence(first_sequence)),
            last_sequence: Some(Sequence(last_sequence)),
            spool_offset: 0,
            stop: None,
            base: None,
        };
        Ok(NewTurn::with_lost(turn, images))
    }
}
