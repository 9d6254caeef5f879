//! Tools, resources and prompts with the names and texts that the conformance suite of MCP requires. A server has them
//! only with `--test-routes`. They use the same messages as the real ones.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::test_inputs;
use crate::blocks::BlockWriter;
use crate::vocabularies::mcp::dto::{
    CallToolResult, Caller, Completed, Completion, CompletionWish, ContentDto, Done, Media, Params,
    ProgressDto, PromptCall, PromptList, ResourceContents, ToolList,
};

/// The tools with their descriptions.
const TOOLS: [(&str, &str); 7] = [
    ("test_simple_text", "Returns a text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns a sound"),
    ("test_embedded_resource", "Returns a resource"),
    ("test_multiple_content_types", "Returns a text, an image and a resource"),
    ("test_error_handling", "Returns an error"),
    ("test_tool_with_progress", "Reports progress"),
];

/// The prompts with their descriptions and arguments.
const PROMPTS: [(&str, &str, &[&str]); 4] = [
    ("test_simple_prompt", "Says a text", &[]),
    (WITH_ARGUMENTS, "Says its arguments", &["arg1", "arg2"]),
    ("test_prompt_with_embedded_resource", "Contains a resource", &["resourceUri"]),
    ("test_prompt_with_image", "Contains an image", &[]),
];
const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

/// A red dot.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\
    \xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";
/// A moment of silence.
const WAV: &[u8] =
    b"RIFF&\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x02\0\0\0\0\0";

/// All tools: the real ones and these.
pub(super) fn tools(caller: &Caller) -> Value {
    let tools = TOOLS.map(|(name, description)| {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
    });
    let asking = test_inputs::tools(caller).map(
        |name| json!({ "name": name, "description": "Asks for input", "inputSchema": { "type": "object" } }),
    );
    with(json!(ToolList::new()), "tools", tools.into_iter().chain(asking))
}

/// All prompts: the real ones and these.
pub(super) fn prompts(caller: &Caller) -> Value {
    let prompts = PROMPTS.map(|(name, description, arguments)| {
        let argument = |name: &&str| json!({ "name": name, "required": true });
        let arguments: Vec<_> = arguments.iter().map(argument).collect();
        json!({ "name": name, "description": description, "arguments": arguments })
    });
    let listed = |name| json!({ "name": name, "description": "Asks for input" });
    let asking = test_inputs::prompts(caller).map(listed);
    with(json!(PromptList::new()), "prompts", prompts.into_iter().chain(asking))
}

fn with(mut list: Value, field: &str, more: impl Iterator<Item = Value>) -> Value {
    if let Some(listed) = list.get_mut(field).and_then(Value::as_array_mut) {
        listed.extend(more);
    }
    list
}

/// Calls one of these tools. `None` if it is another one.
pub(super) fn call(caller: &Caller, name: &str, params: &Params) -> Option<HttpResponse> {
    let result = match name {
        "test_error_handling" => {
            CallToolResult::failed("This tool intentionally returns an error for testing".to_owned())
        }
        "test_tool_with_progress" => return Some(with_progress(caller, params)),
        name if test_inputs::has(caller, name) => return Some(test_inputs::call(caller, name, params)),
        name => CallToolResult::of_content(content(name)?),
    };
    Some(super::respond(caller, Ok(result)))
}

fn content(tool: &str) -> Option<Vec<ContentDto>> {
    Some(match tool {
        "test_simple_text" => vec![text("This is a simple text response for testing.".to_owned())],
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![ContentDto::Audio(Media::new("audio/wav", WAV))],
        "test_embedded_resource" => {
            let words = "This is an embedded resource content.".to_owned();
            vec![embedded("test://embedded-resource".to_owned(), "text/plain", words)]
        }
        "test_multiple_content_types" => {
            let data = json!({ "test": "data", "value": 123 }).to_string();
            let resource = embedded("test://mixed-content-resource".to_owned(), "application/json", data);
            vec![text("Multiple content types test:".to_owned()), image(), resource]
        }
        _ => return None,
    })
}

fn text(text: String) -> ContentDto {
    ContentDto::Text { text }
}

fn image() -> ContentDto {
    ContentDto::Image(Media::new("image/png", PNG))
}

fn embedded(uri: String, mime_type: &'static str, text: String) -> ContentDto {
    ContentDto::Resource { resource: ResourceContents::text(uri, mime_type, text) }
}

fn with_progress(caller: &Caller, params: &Params) -> HttpResponse {
    let mut out = BlockWriter::default();
    if let Ok(Some(token)) = params.progress_token() {
        for done in [0, 50, 100] {
            out.unnamed(&ProgressDto::new(&token, done, format!("{done} of 100")));
        }
    }
    out.unnamed(&Done::new(caller, CallToolResult::of_text("It is done.".to_owned())));
    HttpResponse::Ok().content_type("text/event-stream").body(out.take())
}

/// Reads one of these resources. `None` if it is another one.
pub(super) fn resource(uri: &str) -> Option<ResourceContents> {
    let uri = uri.to_owned();
    Some(match &*uri {
        "test://static-text" => {
            let text = "This is the content of the static text resource.".to_owned();
            ResourceContents::text(uri, "text/plain", text)
        }
        "test://static-binary" => ResourceContents::file(uri, "image/png", PNG),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(uri, "application/json", data.to_string())
        }
    })
}

/// What one of these prompts says. `None` if it is another one.
pub(super) fn prompt(call: &mut PromptCall) -> Option<Vec<ContentDto>> {
    let mut argument = |name: &str| call.arguments.required_text(name, |_| None);
    Some(match &*call.name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        WITH_ARGUMENTS => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let words = "Embedded resource content for testing.".to_owned();
            let resource = embedded(argument("resourceUri"), "text/plain", words);
            vec![resource, text("Please process the embedded resource above.".to_owned())]
        }
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.".to_owned())],
        _ => return None,
    })
}

/// Completes an argument of one of these prompts. `None` if it is that of another one.
pub(super) fn completion(wish: &CompletionWish) -> Option<Completion> {
    let known = ["paris", "park", "party", "testing"].map(str::to_owned);
    let is_mine = matches!(&wish.of, Completed::Prompt(name) if name == WITH_ARGUMENTS);
    is_mine.then(|| Completion::new(known, &wish.value, false))
}
