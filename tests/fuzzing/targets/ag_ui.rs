//! Whatever one of AG-UI's clients posts, it gets the events of a run, the same ones if it asks again, or a problem.

use actix_web::test::TestRequest;
use serde_json::Value;

use super::world::{self, Answer, HOST, World};

pub(crate) const WORDS: &[&str] = &[
    "\"threadId\":\"t\"",
    "\"threadId\":\"$ID\"",
    "\"runId\":\"r\"",
    "\"protocolVersion\":\"1.0\"",
    "\"messages\":[",
    "\"id\":\"m\"",
    "\"role\":\"user\"",
    "\"role\":\"assistant\"",
    "\"role\":\"system\"",
    "\"role\":\"tool\"",
    "\"content\":",
    "\"type\":\"text\"",
    "\"type\":\"image\"",
    "\"source\":{\"type\":\"data\",\"value\":\"iVBORw0KGgo=\",\"mimeType\":\"image/png\"}",
    "\"text\":\"x\"",
    "\"resume\":[",
    "\"interruptId\":\"1:q1\"",
    "\"status\":\"resolved\"",
    "\"status\":\"cancelled\"",
    "\"payload\":",
    "\"approved\":true",
    "\"tools\":[],\"context\":[]",
];

/// The cursors with which a client resumes.
const CURSORS: [&str; 4] = ["1.1", "2.1", "4.999", "9223372036854775807.1"];

/// The first byte says whether the path names an agent type, and with which cursor the client resumes. `$ID` stands for
/// an existing agent.
pub(crate) fn run(data: &[u8]) {
    let Some((way, body)) = data.split_first() else { return };
    let path = if way & 1 == 0 { "/ag-ui" } else { "/ag-ui/printer" };
    let after =
        CURSORS.get(usize::from(way >> 1 & 7)).map_or(String::new(), |cursor| format!("?after={cursor}"));
    let uri = format!("{path}{after}");
    world::with(async |world, agent| {
        let body = match std::str::from_utf8(body) {
            Ok(text) => text.replace("$ID", &agent.to_string()).into_bytes(),
            Err(_) => body.to_vec(),
        };
        let first = post(&world, &uri, &body).await;
        if check(&first, after.is_empty()) {
            let again = post(&world, &uri, &body).await;
            assert!(check(&again, after.is_empty()), "{again:?}");
            assert!(!first.whole || first.body == again.body, "a repeated run is the same run: {again:?}");
        }
    });
}

async fn post(world: &World, uri: &str, body: &[u8]) -> Answer {
    let request = TestRequest::post().uri(uri).insert_header(("host", HOST));
    world.call(request.insert_header(("content-type", "application/json")).set_payload(body.to_vec())).await
}

/// Returns whether the response has the events of a run.
fn check(answer: &Answer, is_from_start: bool) -> bool {
    let Some(kinds) = kinds(answer) else { return false };
    if is_from_start {
        assert!(kinds.first().is_none_or(|first| first == "RUN_STARTED"), "{kinds:?}");
    }
    let ends = kinds.iter().filter(|kind| is_end(kind)).count();
    assert!(answer.whole == (0 < ends) || !is_from_start, "{kinds:?}");
    true
}

pub(super) fn is_end(kind: &str) -> bool {
    ["RUN_FINISHED", "RUN_ERROR"].contains(&kind)
}

/// The types of the events of a response. `None` if it is a problem.
pub(super) fn kinds(answer: &Answer) -> Option<Vec<String>> {
    let said = String::from_utf8_lossy(&answer.body);
    let kind = answer.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap_or("?"));
    match (answer.status, kind) {
        (200, "text/event-stream") => {
            // What comes later does not come here.
            let blocks = said.rfind("\n\n").map_or("", |end| &said[..end]);
            let blocks = blocks.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
            Some(blocks.map(kind_of).collect())
        }
        (400 | 404 | 409 | 413 | 422 | 429 | 503, "application/problem+json") => {
            let problem: Value =
                serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
            assert!(problem["code"].is_string() && problem["detail"].is_string(), "{said}");
            None
        }
        _ => panic!("{answer:?}"),
    }
}

/// The type of an event. Each has the thread and a cursor.
fn kind_of(block: &str) -> String {
    let data = block.strip_prefix("data: ").unwrap_or_else(|| panic!("{block}"));
    let event: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {block}"));
    assert!(event["metadata"]["tokenrail"]["cursor"].is_string(), "{block}");
    event["type"].as_str().unwrap_or_else(|| panic!("{block}")).to_owned()
}
