//! Whatever one of OpenAI's clients posts, it gets a response, a chat completion or an error in OpenAI's format.

use actix_web::test::TestRequest;
use serde_json::Value;

use super::world::{self, Answer, HOST};

pub(crate) const WORDS: &[&str] = &[
    "\"model\":\"printer\"",
    "\"model\":\"printer/m\"",
    "\"input\":",
    "\"previous_response_id\":\"$RESPONSE\"",
    "\"id\":\"$ITEM\"",
    "\"messages\":[",
    "\"role\":\"user\"",
    "\"role\":\"assistant\"",
    "\"role\":\"system\"",
    "\"content\":",
    "\"type\":\"input_text\"",
    "\"type\":\"image_url\"",
    "\"image_url\":{\"url\":\"data:image/png;base64,iVBORw0KGgo=\"}",
    "\"text\":\"x\"",
    "\"stream\":true",
    "\"background\":true",
    "\"stream_options\":{\"include_usage\":true}",
    "\"instructions\":\"x\"",
    "\"metadata\":{}",
    "\"tools\":[]",
];

/// The first byte says which API the body is for, and which headers the request has. `$RESPONSE` stands for an existing
/// response, `$ITEM` for its item.
pub(crate) fn run(data: &[u8]) {
    let Some((api, body)) = data.split_first() else { return };
    let path = if api % 2 == 0 { "/openai/v1/responses" } else { "/openai/v1/chat/completions" };
    world::with(async |world, agent| {
        let turn = format!("{}00000001", agent.as_uuid().simple());
        let body = match std::str::from_utf8(body) {
            Ok(text) => {
                let text = text.replace("$RESPONSE", &format!("resp_{turn}"));
                text.replace("$ITEM", &format!("msg_{turn}_0")).into_bytes()
            }
            Err(_) => body.to_vec(),
        };
        let request = TestRequest::post().uri(path).insert_header(("host", HOST));
        let request = request.insert_header(("content-type", "application/json"));
        let headers = [(2, ("x-conversation-id", "c")), (4, ("x-stainless-retry-count", "1"))];
        let given = headers.into_iter().filter(|(bit, _)| api & bit != 0);
        let request = given.fold(request, |request, (_, header)| request.insert_header(header));
        check(&world.call(request.set_payload(body)).await);
    });
}

fn check(answer: &Answer) {
    let said = String::from_utf8_lossy(&answer.body);
    let kind = answer.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap_or("?"));
    match (answer.status, kind) {
        (200, "text/event-stream") => {
            // What comes later does not come here.
            let blocks = said.rfind("\n\n").map_or("", |end| &said[..end]);
            blocks.split("\n\n").filter(|block| !block.is_empty()).for_each(block);
        }
        // The rest of a response that is still being made does not come here.
        (200, "application/json") if !answer.whole => assert!(said.trim().is_empty(), "{said}"),
        (200, "application/json") => {
            let whole: Value = json(&said);
            assert!(
                ["response", "chat.completion"].contains(&whole["object"].as_str().unwrap_or("")),
                "{said}"
            );
        }
        (400 | 404 | 409 | 413 | 429 | 503, "application/json") => {
            let error = &json(&said)["error"];
            let texts = ["message", "type", "code"].map(|name| error[name].is_string());
            assert_eq!(texts, [true; 3], "{said}");
        }
        _ => panic!("{answer:?}"),
    }
}

/// Checks a block of an event stream.
fn block(block: &str) {
    if block.starts_with(':') {
        return;
    }
    let data = block.lines().find_map(|line| line.strip_prefix("data: "));
    let data = data.unwrap_or_else(|| panic!("{block}"));
    if data != "[DONE]" {
        assert!(json(data).is_object(), "{block}");
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
