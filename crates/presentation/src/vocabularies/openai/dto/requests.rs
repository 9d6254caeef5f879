//! What OpenAI's clients send. A parameter that would change the meaning of the request, and that cannot be honoured,
//! is refused by its name. Other parameters are ignored.

use serde_json::Value;
use tokenrail_application::Prompt;
use tokenrail_domain::JsonText;
use utoipa::ToSchema;

use super::input::Input;
use crate::config::PresentationConfig;
use crate::error::{Code, Problem};
use crate::json::fields::Fields;
use crate::prompt_images::ImageLimits;
use crate::vocabularies::openai::response_id::ResponseId;

/// The maximum length of a model name, in bytes.
const MODEL_BYTES: usize = 128;

/// A request for a response.
#[derive(Debug)]
pub(crate) struct CreateResponse {
    pub(crate) model: Option<ModelChoice>,
    pub(crate) prompt: Prompt,
    pub(crate) previous: Option<ResponseId>,
    pub(crate) stream: bool,
    pub(crate) background: bool,
    pub(crate) metadata: Option<JsonText>,
}

/// An agent type, and the model of its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub(crate) kind: String,
    pub(crate) model: Option<String>,
}

impl ModelChoice {
    /// Reads `type` or `type/model`. `None` if the model cannot be the name of one.
    pub(crate) fn read(name: &str) -> Option<Self> {
        let (kind, model) = match name.split_once('/') {
            Some((kind, model)) => (kind, Some(model.to_owned())),
            None => (name, None),
        };
        let legal = |model: &String| {
            (1..=MODEL_BYTES).contains(&model.len())
                && !model.starts_with('-')
                && model.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte))
        };
        let is_legal = !kind.is_empty() && model.as_ref().is_none_or(legal);
        is_legal.then(|| Self { kind: kind.to_owned(), model })
    }
}

/// The body of a request for a response. Other parameters are ignored, or refused if they would change its meaning.
#[derive(ToSchema)]
#[schema(as = OpenAiCreateResponse)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct CreateResponseBody {
    /// The agent type, or `type/model`. Default: the configured type.
    model: Option<String>,
    /// A text, or messages of the role `user` with parts `input_text` and `input_image`. Items of earlier responses may
    /// precede them.
    #[schema(value_type = serde_json::Value)]
    input: (),
    /// The newest response of the conversation to continue.
    previous_response_id: Option<String>,
    stream: Option<bool>,
    /// Whether to return at once. Every response continues if its client disconnects.
    background: Option<bool>,
    #[schema(value_type = Option<Object>)]
    metadata: (),
}

/// The limits of a request for a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreateResponseLimits {
    /// Of the whole body, which may repeat a conversation.
    pub(crate) body_bytes: usize,
    text_bytes: usize,
    depth: usize,
    images: ImageLimits,
}

impl From<&PresentationConfig> for CreateResponseLimits {
    fn from(config: &PresentationConfig) -> Self {
        let images = ImageLimits::from(config);
        Self {
            body_bytes: config.chat_bytes.max(config.request_bytes.saturating_add(images.json_bytes())),
            text_bytes: config.request_bytes,
            depth: config.json_depth,
            images,
        }
    }
}

/// Reads a request for a response.
pub(crate) fn create_response(body: &[u8], limits: CreateResponseLimits) -> Result<CreateResponse, Problem> {
    let mut fields = Fields::read(body, limits.depth)?;
    fields.forget_nulls();
    refuse_unsupported(&mut fields);
    let model = fields.text("model", |_| None);
    let choice = model.as_deref().and_then(ModelChoice::read);
    if model.is_some() && choice.is_none() {
        fields.refuse("model", "must be an agent type, or an agent type, a slash and a model");
    }
    let previous = fields.text("previous_response_id", |_| None);
    let named = previous.as_deref().and_then(|id| id.parse().ok());
    if previous.is_some() && named.is_none() {
        fields.refuse("previous_response_id", "no such response");
    }
    let flag = "must be true or false";
    let stream = fields.optional("stream", flag).unwrap_or(false);
    let background = fields.optional("background", flag).unwrap_or(false);
    let metadata = fields.object("metadata");
    let input = read_input(&mut fields, limits);
    fields.finish()?;
    if limits.text_bytes < input.text.len() {
        let most = limits.text_bytes;
        return Err(Problem::new(
            Code::PayloadTooLarge,
            format!("the new input must be at most {most} bytes"),
        ));
    }
    let Input { text, images, previous } = input;
    let previous = named.or(previous);
    Ok(CreateResponse {
        model: choice,
        prompt: Prompt { text, images },
        previous,
        stream,
        background,
        metadata,
    })
}

fn read_input(fields: &mut Fields, limits: CreateResponseLimits) -> Input {
    let was_good = fields.are_good();
    let Some(input) = fields.given("input", "must be a string or a list of items") else {
        // A malformed field is not reported as missing too.
        if was_good {
            fields.refuse("input", "must be present");
        }
        return Input::default();
    };
    Input::read(&input, limits.images).unwrap_or_else(|(place, detail)| {
        fields.refuse(&place, detail);
        Input::default()
    })
}

/// Refuses parameters that would change the meaning of the request.
fn refuse_unsupported(fields: &mut Fields) {
    let mut value = |name: &str| fields.optional::<Value>(name, "cannot be read");
    let mut wrong = Vec::new();
    if value("instructions").is_some_and(|given| given.as_str().is_none_or(|text| !text.trim().is_empty())) {
        wrong.push(("instructions", "not supported: configure the agent type, or say it in the input"));
    }
    if value("tools").is_some_and(|given| given.as_array().is_none_or(|tools| !tools.is_empty())) {
        wrong.push(("tools", "not supported: agents call their own tools"));
    }
    if value("tool_choice").is_some_and(|given| !matches!(given.as_str(), Some("auto" | "none"))) {
        wrong.push(("tool_choice", "must be auto or none: agents call their own tools"));
    }
    let format = value("text").and_then(|text| Some(text.get("format")?.get("type")?.clone()));
    if format.is_some_and(|format| format != "text") {
        wrong.push(("text/format", "must be of the type text"));
    }
    if value("store").is_some_and(|given| given != Value::Bool(true)) {
        wrong.push(("store", "must be true: the server saves every response until its agent is deleted"));
    }
    for (name, instead) in [
        ("prompt", "not supported: send input"),
        ("conversation", "not supported: send previous_response_id"),
    ] {
        if value(name).is_some() {
            wrong.push((name, instead));
        }
    }
    for (name, detail) in wrong {
        fields.refuse(name, detail);
    }
}
