//! A request for a response, as OpenAI's clients send it.

use serde_json::Value;
use tokenrail_application::Prompt;
use tokenrail_domain::JsonText;
use utoipa::ToSchema;

use super::input::Input;
use super::requests::{ModelChoice, flag, joined, refuse_everywhere, refuse_if};
use crate::error::Problem;
use crate::json::fields::Fields;
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::prompts::conversation_limits::ConversationLimits;

/// A request for a response.
#[derive(Debug)]
pub(crate) struct CreateResponse {
    pub(crate) model: Option<ModelChoice>,
    pub(crate) prompt: Prompt,
    /// With what the first prompt of the conversation begins.
    pub(crate) instructions: Option<String>,
    pub(crate) previous: Option<Previous>,
    pub(crate) stream: bool,
    pub(crate) background: bool,
    pub(crate) metadata: Option<JsonText>,
}

/// The body of a request for a response. Other parameters are ignored, or refused if they would change its meaning.
#[derive(ToSchema)]
#[schema(as = OpenAiCreateResponse)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct CreateResponseBody {
    /// The agent type, or `type/model`. Default: the configured type.
    model: Option<String>,
    /// A string, or messages with the role `user` and parts `input_text` and `input_image`. Items of earlier responses
    /// may precede them.
    #[schema(value_type = serde_json::Value)]
    input: (),
    /// The beginning of the first prompt of the conversation.
    instructions: Option<String>,
    /// The newest response of the conversation to continue.
    previous_response_id: Option<String>,
    stream: Option<bool>,
    /// Whether to return immediately. Every response continues if its client disconnects.
    background: Option<bool>,
    #[schema(value_type = Option<Object>)]
    metadata: (),
}

/// The response that the new one continues.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Previous {
    /// The client has named it.
    Named(ResponseId),
    /// It is the newest one of which the client has repeated an item.
    Repeated(ResponseId),
}

/// Reads a request for a response.
pub(crate) fn create_response(body: &[u8], limits: ConversationLimits) -> Result<CreateResponse, Problem> {
    let mut fields = Fields::read(body, limits.depth)?;
    fields.forget_nulls();
    refuse_everywhere(&mut fields);
    refuse_unsupported(&mut fields);
    let model = ModelChoice::take(&mut fields);
    let previous = fields.text("previous_response_id", |_| None);
    let named = previous.as_deref().and_then(|id| id.parse().ok());
    if previous.is_some() && named.is_none() {
        fields.refuse("previous_response_id", "no such response");
    }
    let (stream, background) = (flag(&mut fields, "stream"), flag(&mut fields, "background"));
    let metadata = fields.object("metadata");
    let instructions = fields.text("instructions", |_| None);
    let Input { prompt, instructions: said, previous } = read_input(&mut fields, limits);
    fields.finish()?;
    let instructions = joined(instructions.into_iter().chain(said));
    limits.check_prompt(&[Some(&prompt.text), instructions.as_deref()])?;
    let previous = named.map(Previous::Named).or(previous.map(Previous::Repeated));
    Ok(CreateResponse { model, prompt, instructions, previous, stream, background, metadata })
}

fn read_input(fields: &mut Fields, limits: ConversationLimits) -> Input {
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
    let text = fields.optional::<Value>("text", "cannot be read");
    let format = text.and_then(|text| Some(text.get("format")?.get("type")?.clone()));
    if format.is_some_and(|format| format != "text") {
        fields.refuse("text/format", "must be of the type text");
    }
    refuse_if(fields, "prompt", "not supported: send input", |_| true);
    refuse_if(fields, "conversation", "not supported: send previous_response_id", |_| true);
}
