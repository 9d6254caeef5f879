//! No request causes a server error, and every problem has the documented form.

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, Uri};
use actix_web::test::TestRequest;
use serde_json::Value;
use tokenrail_domain::AgentId;

use super::world::{self, Answer, HOST};

pub(crate) const WORDS: &[&str] = &[
    "GET ",
    "POST ",
    "DELETE ",
    "HEAD ",
    "OPTIONS ",
    "/api/agents",
    "/api/agents/",
    "$ID",
    "/events",
    "/messages",
    "/status",
    "/cancel",
    "/api/agent-types",
    "/api/tickets",
    "/ag-ui",
    "/ag-ui/threads/$ID",
    "\"threadId\":\"$ID\"",
    "\"runId\":\"r\"",
    "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]",
    "\"resume\":[{\"interruptId\":\"1:1-1\",\"status\":\"resolved\",\"payload\":true}]",
    "?after=1.1",
    "/ws",
    "/healthz",
    "/metrics",
    "/problems/",
    "?since=",
    "&limit=",
    "&raw=true",
    "&keep=true",
    "&status=",
    "?ticket=",
    "%00",
    "%ff",
    "..",
    "%2f",
    "\n",
    "\n\n",
    "accept: text/event-stream",
    "content-type: application/json",
    "last-event-id: 1",
    "idempotency-key: k",
    "host: evil.test",
    "origin: null",
    "authorization: Bearer x",
    "sec-fetch-site: cross-site",
    "\"prompt\":\"x\"",
    "\"cwd\":\"/\"",
    "\"metadata\":{}",
    "\"content\":\"\"",
    "\\ud800",
    "\"cancelOnDisconnect\":true",
    "content-encoding: gzip",
    "accept: */*;q=0",
];

/// Paths below which errors have the form of another API. Other targets and tests check these forms.
const OTHER_FORMS: [&str; 4] = ["/openai", "/mcp", "/socket.io", "/v1"];

/// A line `METHOD TARGET`, lines `name: value`, an empty line, and a body. `$ID` stands for an existing agent.
pub(crate) fn run(data: &[u8]) {
    world::with(async |world, agent| {
        let Some((request, path)) = request(data, agent) else { return };
        let answer = world.call(request).await;
        check(&answer, &path);
        let kept = world.service.get(agent).await.is_ok_and(|agent| agent.deleted_at.is_none());
        if !kept {
            world::forget();
        }
    });
}

/// The request, and its path.
fn request(data: &[u8], agent: AgentId) -> Option<(TestRequest, String)> {
    let end = data.windows(2).position(|two| two == b"\n\n");
    let (head, body) = end.map_or((data, &b""[..]), |end| (&data[..end], &data[end + 2..]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let space = first.iter().position(|byte| *byte == b' ')?;
    let target = std::str::from_utf8(&first[space + 1..]).ok()?.replace("$ID", &agent.to_string());
    // The web server itself refuses invalid targets and headers before Tokenrail's code sees them.
    let target: Uri = target.parse().ok().filter(|target: &Uri| target.path().starts_with('/'))?;
    let method = Method::from_bytes(&first[..space]).ok()?;
    let mut request = TestRequest::with_uri(&target.to_string()).method(method).insert_header(("host", HOST));
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request = request.append_header((name, value));
    }
    Some((request.set_payload(body.to_vec()), target.path().to_owned()))
}

fn check(answer: &Answer, path: &str) {
    let said = String::from_utf8_lossy(&answer.body);
    let kind = answer.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap_or("?"));
    assert!(answer.status < 500, "{answer:?}");
    assert!(answer.headers.contains_key("x-request-id"), "{answer:?}");
    let below =
        |other: &str| path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if (400..500).contains(&answer.status) && !answer.body.is_empty() {
        let problem: Value = serde_json::from_slice(&answer.body).expect("an error is JSON");
        if OTHER_FORMS.into_iter().any(below) {
            assert!(["application/json", "application/problem+json"].contains(&kind), "{kind}: {said}");
            assert!(problem.is_object(), "{said}");
        } else {
            assert_eq!(kind, "application/problem+json", "{said}");
            assert_eq!(problem["status"], answer.status);
            assert!(problem["code"].is_string() && problem["detail"].is_string(), "{said}");
        }
    }
    assert!(!said.contains("panicked"), "{said}");
}
