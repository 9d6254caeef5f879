//! Tools and resources with the names and texts that the conformance suite of MCP requires. A server has them only with
//! `--test-routes`. They use the same messages as the real ones.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use crate::blocks::BlockWriter;
use crate::vocabularies::mcp::dto::{
    Done, Params, ProgressDto, ReadResource, RequestId, ToolList, ToolResult,
};

/// The tools with their descriptions.
const TOOLS: [(&str, &str); 3] = [
    ("test_simple_text", "Returns a text"),
    ("test_error_handling", "Returns an error"),
    ("test_tool_with_progress", "Reports progress"),
];

/// All tools: the real ones and these.
pub(super) fn list() -> Value {
    let mut list = json!(ToolList::new());
    let tools = TOOLS.map(|(name, description)| {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
    });
    if let Some(listed) = list.get_mut("tools").and_then(Value::as_array_mut) {
        listed.extend(tools);
    }
    list
}

/// Calls one of these tools. `None` if it is another one.
pub(super) fn call(id: &RequestId, name: &str, params: &Params) -> Option<HttpResponse> {
    let text = |text: &str| ToolResult::of_text(text.to_owned());
    let result = match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_error_handling" => {
            ToolResult::failed("This tool intentionally returns an error for testing".to_owned())
        }
        "test_tool_with_progress" => {
            let mut out = BlockWriter::default();
            if let Ok(Some(token)) = params.progress_token() {
                for done in [0, 50, 100] {
                    out.unnamed(&ProgressDto::new(&token, done, format!("{done} of 100")));
                }
            }
            out.unnamed(&Done::new(id, text("It is done.")));
            return Some(HttpResponse::Ok().content_type("text/event-stream").body(out.take()));
        }
        _ => return None,
    };
    Some(super::respond(id, Ok(result)))
}

/// Reads one of these resources. `None` if it is another one.
pub(super) fn resource(uri: &str) -> Option<ReadResource> {
    if uri == "test://static-text" {
        let text = "This is the content of the static text resource.";
        return Some(ReadResource::new(uri.to_owned(), "text/plain", text.to_owned()));
    }
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    Some(ReadResource::new(uri.to_owned(), "application/json", data.to_string()))
}
