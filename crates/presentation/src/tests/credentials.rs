//! Which credentials each vocabulary accepts, as `docs/reference/protocol/README.md` lists them.

use actix_web::http::Method;
use actix_web::test::TestRequest;

use super::harness::{HOST, Harness, TOKEN};

const PAGE: &str = include_str!("../../../../docs/reference/protocol/README.md");
const BEARER: &str = "Bearer 0123456789abcdef";
const POLLING: &str = "/socket.io/?EIO=4&transport=polling";
const OWN: &str = "http://localhost:7117";

/// A row of the page's table, and a request of that vocabulary.
struct Vocabulary {
    row: &'static str,
    method: Method,
    path: &'static str,
    /// Whether a WebSocket can send the token as a subprotocol.
    subprotocol: bool,
    ticket: bool,
    /// Whether the request gets through without a credential, because the first packet may have the token.
    later: bool,
}

fn vocabulary(row: &'static str, method: Method, path: &'static str) -> Vocabulary {
    Vocabulary { row, method, path, subprotocol: false, ticket: false, later: false }
}

fn vocabularies() -> [Vocabulary; 12] {
    let (get, post) = (|| Method::GET, || Method::POST);
    [
        vocabulary("REST: `/api`", get(), "/api/agents"),
        Vocabulary {
            ticket: true,
            ..vocabulary("event streams: `/api/agents/{id}/events`", get(), "/api/agents/$ID/events")
        },
        Vocabulary { ticket: true, subprotocol: true, ..vocabulary("WebSocket: `/ws`", get(), "/ws") },
        Vocabulary { later: true, ..vocabulary("Socket.IO: `/socket.io/`", get(), POLLING) },
        vocabulary("AI SDK: `POST /api/chat`", post(), "/api/chat"),
        Vocabulary {
            ticket: true,
            subprotocol: true,
            ..vocabulary("AI SDK, WebSocket: `GET /api/chat`", get(), "/api/chat")
        },
        vocabulary("AG-UI: `/ag-ui`", post(), "/ag-ui"),
        vocabulary("Durable Streams: `/v1/stream`", get(), "/v1/stream/agents/$ID/events"),
        vocabulary("Letta and Kelpie: `/v1`", get(), "/v1/agents"),
        vocabulary("OpenAI: `/openai/v1`", post(), "/openai/v1/responses"),
        vocabulary("MCP: `/mcp`", post(), "/mcp"),
        vocabulary("metrics: `/metrics`", get(), "/metrics"),
    ]
}

impl Vocabulary {
    /// The status of a request with these headers.
    async fn status(&self, harness: &Harness, id: &str, query: &str, headers: &[(&str, &str)]) -> u16 {
        let uri = format!("{}{query}", self.path.replace("$ID", id));
        let request = TestRequest::with_uri(&uri).method(self.method.clone());
        let request = request.insert_header(("host", HOST)).insert_header(("accept", "text/event-stream"));
        let request = headers.iter().fold(request, |request, header| request.append_header(*header));
        harness.call_raw(request.insert_header(("content-type", "application/json"))).await.status.as_u16()
    }

    fn line(&self) -> String {
        let yes = |accepted: bool| if accepted { "yes" } else { "no" };
        let also = match (self.subprotocol, self.later) {
            (true, _) => "a subprotocol",
            (_, true) => "the first packet",
            (false, false) => "",
        };
        format!("| {} | yes | yes | {} | {also} |", self.row, yes(self.ticket)).replace("|  |", "| |")
    }
}

async fn harness() -> (Harness, String) {
    let harness = Harness::with(|config, _| config.failed_logins_per_minute = u32::MAX);
    let id = harness.launch_to_end("say a").await;
    (harness, id)
}

/// The cookie of a new session.
async fn cookie(harness: &Harness) -> String {
    let started = harness.call(TestRequest::post().uri("/api/session").insert_header(("origin", OWN))).await;
    started.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[actix_web::test]
async fn each_vocabulary_accepts_the_credentials_that_the_page_lists() {
    let (harness, id) = harness().await;
    let cookie = cookie(&harness).await;
    let subprotocols = format!("tokenrail.v1, bearer.{TOKEN}");
    for one in vocabularies() {
        let row = one.row;
        assert!(PAGE.contains(&one.line()), "the page has no line {}", one.line());
        let refused = if one.later { 200 } else { 401 };
        assert_eq!(one.status(&harness, &id, "", &[]).await, refused, "{row}, with nothing");
        let accepts = async |query: &str, headers: &[(&str, &str)]| {
            !matches!(one.status(&harness, &id, query, headers).await, 401 | 403)
        };
        assert!(accepts("", &[("authorization", BEARER)]).await, "{row}");
        assert!(accepts("", &[("x-api-key", TOKEN)]).await, "{row}, with x-api-key");
        let page = [("cookie", &*cookie), ("origin", OWN), ("tokenrail-csrf", "1")];
        assert!(accepts("", &page).await, "{row}, with a session");
        for wrong in [TOKEN, "Basic 0123456789abcdef", "Bearer wrong"] {
            assert!(!accepts("", &[("authorization", wrong)]).await, "{row}, with {wrong}");
        }
        for wrong in [BEARER, "wrong", ""] {
            assert!(!accepts("", &[("x-api-key", wrong)]).await, "{row}, with x-api-key {wrong}");
        }
        if one.later {
            continue;
        }
        for name in ["api-key", "x-auth-token", "proxy-authorization"] {
            for value in [TOKEN, BEARER] {
                assert!(!accepts("", &[(name, value)]).await, "{row}, with {name}");
            }
        }
        for name in ["token", "access_token", "api_key"] {
            assert!(!accepts(&format!("?{name}={TOKEN}"), &[]).await, "{row}, with {name} in the query");
        }
        let offers = [("sec-websocket-protocol", &*subprotocols)];
        assert_eq!(accepts("", &offers).await, one.subprotocol, "{row}, with a subprotocol");
        let path = if one.path == "/api/chat" { "/api/chat" } else { "/ws" };
        let path =
            if one.path.starts_with("/api/agents/") { one.path.replace("$ID", &id) } else { path.into() };
        let made = harness.post("/api/tickets", &format!(r#"{{"path":"{path}"}}"#)).await.json();
        let ticket = format!("?ticket={}", made["ticket"].as_str().unwrap());
        assert_eq!(accepts(&ticket, &[]).await, one.ticket, "{row}, with a ticket");
    }
}

#[test]
fn the_page_lists_no_other_vocabulary() {
    let (_, table) = PAGE.split_once("| Requests | the token in a header |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    assert!(rows.eq(vocabularies().iter().map(Vocabulary::line)));
}
