//! Whatever an MCP client posts, it gets a valid JSON-RPC response or none, and the server has no error.

use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;
use serde_json::Value;

use super::world::{self, Answer, HOST};

pub(crate) const WORDS: &[&str] = &[
    "!2026-07-28|tools/list|\n",
    "!2026-07-28|tools/call|wait_for_agent\n",
    "!2026-07-28|resources/read|=?base64?dA==?=\n",
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}",
    "\"server/discover\"",
    "!2026-07-28|subscriptions/listen|\n",
    "\"subscriptions/listen\"",
    "\"notifications\":{\"resourceSubscriptions\":[\"tokenrail://agents/$ID/transcript\"]}",
    "\"inputResponses\":{\"1-1\":{\"action\":\"accept\",\"content\":{\"option_id\":\"yes\"}}}",
    "\"requestState\":\"e30\"",
    "\"_meta\":{",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":\"\\ud800\"",
    "\"method\":",
    "\"initialize\"",
    "\"protocolVersion\":\"2025-11-25\"",
    "\"tools/list\"",
    "\"tools/call\"",
    "\"resources/list\"",
    "\"resources/read\"",
    "\"prompts/get\"",
    "\"delegate\"",
    "\"task\":\"x\"",
    "\"catch_up\"",
    "\"completion/complete\"",
    "\"ref\":{\"type\":\"ref/prompt\",",
    "\"argument\":{\"name\":\"agent_id\",\"value\":\"\"}",
    "\"params\":{",
    "\"name\":",
    "\"arguments\":{",
    "\"list_agents\"",
    "\"list_agent_types\"",
    "\"launch_agent\"",
    "\"send_message\"",
    "\"wait_for_agent\"",
    "\"read_agent\"",
    "\"read_entry\"",
    "\"seq\":1",
    "\"offset\":1",
    "\"answer_permission\"",
    "\"cancel_agent\"",
    "\"agent_id\":\"$ID\"",
    "\"since\":1",
    "\"max_bytes\":18446744073709551616",
    "\"timeout_ms\":0",
    "\"prompt\":\"x\"",
    "\"_meta\":{\"progressToken\":",
    "\"uri\":\"tokenrail://agents/$ID/transcript\"",
];

/// The headers that repeat parts of a message.
const MIRRORS: [&str; 3] = ["mcp-protocol-version", "mcp-method", "mcp-name"];

/// A body. `$ID` stands for an existing agent. Before it may be a line with `!` and the values of the headers.
pub(crate) fn run(data: &[u8]) {
    world::with(async |world, agent| {
        let (mirrors, body) = split(data);
        let body = match std::str::from_utf8(body) {
            Ok(text) => text.replace("$ID", &agent.to_string()).into_bytes(),
            Err(_) => body.to_vec(),
        };
        let mut request = TestRequest::post().uri("/mcp").insert_header(("host", HOST));
        let values = mirrors.into_iter().flat_map(|line| line.split(|byte| *byte == b'|'));
        for (name, value) in MIRRORS.into_iter().zip(values) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                request = request.insert_header((name, value));
            }
        }
        let request = request.insert_header(("content-type", "application/json"));
        let request = request.insert_header(("accept", "application/json, text/event-stream"));
        check(&world.call(request.set_payload(body)).await);
    });
}

fn split(data: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let rest = data.strip_prefix(b"!").unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n');
    end.map_or((None, data), |end| (Some(&rest[..end]), &rest[end + 1..]))
}

fn check(answer: &Answer) {
    let said = String::from_utf8_lossy(&answer.body);
    assert!(matches!(answer.status, 200 | 202 | 400 | 404 | 413), "{answer:?}");
    if answer.status == 202 {
        assert!(answer.body.is_empty(), "{said}");
        return;
    }
    let kind = answer.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap_or("?"));
    if kind == "text/event-stream" {
        said.lines().filter_map(|line| line.strip_prefix("data: ")).for_each(message);
    } else {
        assert_eq!(kind, "application/json", "{said}");
        message(&said);
    }
}

/// Checks a message of the server.
fn message(text: &str) {
    let message: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(message["jsonrpc"], "2.0", "{text}");
    if message["method"].is_string() {
        return;
    }
    let id = message.get("id").expect("an id");
    let failed = message.get("error");
    assert!(message.get("result").is_some() != failed.is_some(), "{text}");
    assert!(
        failed.is_none_or(|error| error["code"].is_i64()) && (failed.is_some() || !id.is_null()),
        "{text}"
    );
}
