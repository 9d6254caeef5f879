//! A request for a chat completion, as OpenAI's clients send it.

use serde_json::{Value, json};
use tokenrail_application::Prompt;
use tokenrail_domain::JsonText;
use utoipa::ToSchema;

use super::messages::Messages;
use super::requests::{ModelChoice, flag, joined, refuse_everywhere, refuse_if};
use crate::error::Problem;
use crate::json::fields::Fields;
use crate::vocabularies::prompts::conversation_limits::ConversationLimits;

/// A request for a chat completion.
#[derive(Debug)]
pub(crate) struct CreateCompletion {
    pub(crate) model: Option<ModelChoice>,
    pub(crate) prompt: Prompt,
    /// With what the first prompt of the conversation begins.
    pub(crate) instructions: Option<String>,
    /// The conversation so far, for an agent that does not know it.
    pub(crate) earlier: Option<String>,
    /// The newest answer that the client has.
    pub(crate) answer: Option<String>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) metadata: Option<JsonText>,
}

/// The body of a request for a chat completion. Other parameters are ignored, or refused if they would change its
/// meaning.
#[derive(ToSchema)]
#[schema(as = OpenAiCreateCompletion)]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
pub(crate) struct CreateCompletionBody {
    /// The agent type, or `type/model`. Default: the configured type.
    model: Option<String>,
    /// The conversation, with the new message at its end.
    #[schema(value_type = Vec<serde_json::Value>)]
    messages: (),
    stream: Option<bool>,
    /// `include_usage` adds a chunk with the usage.
    #[schema(value_type = Option<Object>)]
    stream_options: (),
    #[schema(value_type = Option<Object>)]
    metadata: (),
}

/// Reads a request for a chat completion.
pub(crate) fn create_completion(
    body: &[u8],
    limits: ConversationLimits,
) -> Result<CreateCompletion, Problem> {
    let mut fields = Fields::read(body, limits.depth)?;
    fields.forget_nulls();
    refuse_everywhere(&mut fields);
    refuse_unsupported(&mut fields);
    let model = ModelChoice::take(&mut fields);
    let stream = flag(&mut fields, "stream");
    let options = fields.optional::<Value>("stream_options", "cannot be read");
    let include_usage = options.is_some_and(|options| options["include_usage"] == Value::Bool(true));
    let metadata = fields.object("metadata");
    let Messages { prompt, instructions, earlier, answer } = read_messages(&mut fields, limits);
    fields.finish()?;
    let (instructions, earlier) = (joined(instructions), joined([earlier]));
    limits.check_prompt(&[Some(&prompt.text)])?;
    Ok(CreateCompletion { model, prompt, instructions, earlier, answer, stream, include_usage, metadata })
}

fn read_messages(fields: &mut Fields, limits: ConversationLimits) -> Messages {
    let was_good = fields.are_good();
    let Some(messages) = fields.given("messages", "must be a list of messages") else {
        // A malformed field is not reported as missing too.
        if was_good {
            fields.refuse("messages", "must be present");
        }
        return Messages::default();
    };
    Messages::read(&messages, limits.images).unwrap_or_else(|(place, detail)| {
        fields.refuse(&place, detail);
        Messages::default()
    })
}

/// Refuses parameters that would change the meaning of the request.
fn refuse_unsupported(fields: &mut Fields) {
    refuse_if(fields, "n", "must be 1: each request has one answer", |given| *given != json!(1));
    refuse_if(fields, "functions", "not supported: agents use only their own tools", |given| {
        *given != json!([])
    });
    refuse_if(fields, "function_call", "must be auto or none: agents use only their own tools", |given| {
        !matches!(given.as_str(), Some("auto" | "none"))
    });
    refuse_if(fields, "response_format", "must be of the type text", |given| given["type"] != "text");
    refuse_if(fields, "modalities", "must be text", |given| *given != json!(["text"]));
}
