//! The CORS headers for pages from other origins.

use std::collections::BTreeSet;

use actix_web::http::Method;
use actix_web::test::TestRequest;

use super::harness::{Answer, HOST, Harness, TOKEN};

const PAGE: &str = "https://app.example";

fn harness() -> Harness {
    Harness::with(|config, _| config.allowed_origins = vec!["http://other.example".into(), PAGE.into()])
}

fn bearer() -> (&'static str, String) {
    ("authorization", format!("Bearer {TOKEN}"))
}

fn words(list: &str) -> BTreeSet<String> {
    list.split(',').map(|word| word.trim().to_ascii_lowercase()).collect()
}

/// The headers of every response to a page of a listed origin.
fn assert_readable(answer: &Answer, what: &str) {
    let of =
        |name: &str| answer.headers.get_all(name).map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("access-control-allow-origin"), [PAGE], "{what}: {answer:?}");
    assert_eq!(of("access-control-allow-credentials"), [""; 0], "{what}");
    assert!(of("vary").iter().any(|vary| words(vary).contains("origin")), "{what}");
    assert!(words(of("access-control-expose-headers")[0]).contains("tokenrail-head"), "{what}");
    for (name, value) in &answer.headers {
        let about = name.as_str().starts_with("access-control-");
        assert!(!(about && value.to_str().unwrap().contains('*')), "{what}: {name}: {value:?}");
    }
}

fn assert_says_nothing(answer: &Answer, what: &str) {
    let about = answer.headers.keys().find(|name| name.as_str().starts_with("access-control-"));
    assert_eq!(about, None, "{what}: {answer:?}");
}

/// A preflight request of an origin for some headers.
fn preflight(origin: &str, headers: &str) -> TestRequest {
    TestRequest::with_uri("/api/agents")
        .method(Method::OPTIONS)
        .insert_header(("host", HOST))
        .insert_header(("origin", origin))
        .insert_header(("access-control-request-method", "POST"))
        .insert_header(("access-control-request-headers", headers))
}

#[actix_web::test]
async fn a_page_of_a_listed_origin_reads_answers_and_refusals() {
    let harness = harness();
    let id = harness.launch_to_end("say a b").await;
    let events = format!("/api/agents/{id}/events?since=1");
    let large = "x".repeat(2 << 20);
    let json = ("content-type", "application/json".to_owned());
    let cases: [(&str, TestRequest, u16); 12] = [
        ("a list", TestRequest::get().uri("/api/agents").insert_header(bearer()), 200),
        (
            "an event stream",
            TestRequest::get()
                .uri(&events)
                .insert_header(("accept", "text/event-stream"))
                .insert_header(bearer()),
            200,
        ),
        (
            "a launch",
            TestRequest::post()
                .uri("/api/agents")
                .insert_header(json.clone())
                .insert_header(bearer())
                .set_payload(r#"{"type":"script","prompt":"say x"}"#),
            201,
        ),
        ("no token", TestRequest::get().uri("/api/agents"), 401),
        ("a ticket of nobody", TestRequest::get().uri("/ws?ticket=x"), 401),
        ("nothing there", TestRequest::get().uri("/nowhere").insert_header(bearer()), 404),
        ("nothing of Letta's there", TestRequest::get().uri("/v1/nowhere").insert_header(bearer()), 404),
        ("another method", TestRequest::delete().uri("/api/agents").insert_header(bearer()), 405),
        (
            "too large",
            TestRequest::post()
                .uri("/api/tickets")
                .insert_header(json.clone())
                .insert_header(bearer())
                .set_payload(large),
            413,
        ),
        (
            "encoded",
            TestRequest::get()
                .uri("/api/agents")
                .insert_header(("content-encoding", "gzip"))
                .insert_header(bearer()),
            415,
        ),
        (
            "a wrong body",
            TestRequest::post()
                .uri("/api/agents")
                .insert_header(json)
                .insert_header(bearer())
                .set_payload("{}"),
            422,
        ),
        (
            "a preflight of nothing",
            TestRequest::with_uri("/api/agents").method(Method::OPTIONS).insert_header(bearer()),
            405,
        ),
    ];
    for (what, request, status) in cases {
        let request = request.insert_header(("host", HOST)).insert_header(("origin", PAGE));
        let answer = harness.call_raw(request).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert_readable(&answer, what);
    }
    let elsewhere = TestRequest::get().uri("/api/agents").insert_header(("host", "evil.example"));
    let answer = harness.call_raw(elsewhere.insert_header(("origin", PAGE))).await;
    assert_eq!(answer.status, 421);
    assert_readable(&answer, "a wrong host");
    let large_head =
        TestRequest::get().uri("/api/agents").insert_header(("host", HOST)).insert_header(("origin", PAGE));
    let answer = harness.call_raw(large_head.insert_header(("x-large", "x".repeat(40 << 10)))).await;
    assert_eq!(answer.status, 431);
    assert_readable(&answer, "a large head");
}

#[actix_web::test]
async fn a_ticket_of_another_page_is_refused_readably() {
    let harness = harness();
    let asked = TestRequest::post().uri("/api/tickets").insert_header(("origin", "http://other.example"));
    let ticket = harness.call(asked).await.json()["ticket"].as_str().unwrap().to_owned();
    let request = TestRequest::get().uri(&format!("/ws?ticket={ticket}")).insert_header(("host", HOST));
    let answer = harness.call_raw(request.insert_header(("origin", PAGE))).await;
    assert_eq!(answer.problem(), "origin_not_allowed");
    assert_readable(&answer, "the ticket of another origin");
}

#[actix_web::test]
async fn a_preflight_of_a_listed_origin_is_answered_without_a_token() {
    let harness = harness();
    let sent = "accept, authorization, cache-control, content-type, idempotency-key, if-none-match, \
                last-event-id, mcp-protocol-version, user-agent, \
                x-api-key, x-letta-source, x-project, x-project-id, x-stainless-lang, X-Stainless-Retry-Count, \
                x-stainless-of-a-later-version";
    let answer = harness.call_raw(preflight(PAGE, sent)).await;
    assert_eq!(answer.status, 204);
    assert_readable(&answer, "a preflight");
    let allowed = words(answer.header("access-control-allow-headers"));
    assert!(words(sent).is_subset(&allowed), "{allowed:?}");
    let methods = words(answer.header("access-control-allow-methods"));
    assert!(words("GET, POST, PATCH, DELETE").is_subset(&methods));
    assert_eq!(answer.header("access-control-max-age"), "600");

    let answer = harness.call_raw(preflight(PAGE, "x-forwarded-host, x-other, x-stainless-a b")).await;
    let allowed = words(answer.header("access-control-allow-headers"));
    assert!(
        allowed
            .iter()
            .all(|name| !name.starts_with("x-forwarded") && name != "x-other" && !name.contains(' ')),
        "{allowed:?}"
    );
}

#[actix_web::test]
async fn other_origins_are_told_nothing() {
    let harness = harness();
    for origin in
        ["http://evil.example", "null", "https://app.example.evil.example", "https://APP.example", ""]
    {
        let answer = harness.call_raw(preflight(origin, "authorization")).await;
        assert_eq!(answer.problem(), "origin_not_allowed", "{origin}");
        assert_says_nothing(&answer, origin);
        let get = TestRequest::get().uri("/api/agents").insert_header(("origin", origin));
        assert_says_nothing(&harness.call(get).await, origin);
    }
    let twice = preflight(PAGE, "authorization").append_header(("origin", "http://evil.example"));
    let answer = harness.call_raw(twice).await;
    assert_eq!(answer.problem(), "origin_not_allowed");
    assert_says_nothing(&answer, "two origins");

    // The server's own page needs no CORS, so its preflight is a normal request without a token.
    let own = "http://localhost:7117";
    let answer = harness.call_raw(preflight(own, "authorization")).await;
    assert_eq!(answer.problem(), "unauthenticated");
    assert_says_nothing(&answer, own);
    let get = TestRequest::get().uri("/api/agents").insert_header(("origin", own));
    let answer = harness.call(get).await;
    assert_says_nothing(&answer, own);
    assert_eq!(answer.header("vary"), "Origin", "a cache must not give it to another origin");
    let nobody_listed = Harness::new().get("/api/agents").await;
    assert_eq!(nobody_listed.header("vary"), "");
}

#[actix_web::test]
async fn a_preflight_for_another_host_is_refused_like_everything_else() {
    let answer =
        harness().call_raw(preflight(PAGE, "authorization").insert_header(("host", "evil.example"))).await;
    assert_eq!(answer.problem(), "host_not_allowed");
}

/// Headers that a page may always read, and headers for the browser itself.
const NOT_LISTED: &str = "cache-control, content-type, content-length, x-content-type-options, referrer-policy, \
    content-security-policy, cross-origin-resource-policy, cross-origin-opener-policy, vary, x-accel-buffering, \
    access-control-allow-origin, access-control-expose-headers, connection, upgrade, sec-websocket-version";

#[actix_web::test]
async fn every_header_with_something_to_say_can_be_read() {
    let harness =
        Harness::build(|config, _| config.allowed_origins = vec![PAGE.into()], Some("script".to_owned()));
    let first = harness.launch("say a").await;
    harness.launch("say b").await;
    harness.ended(&first).await;
    let launch = r#"{"type":"script","prompt":"say a"}"#;
    let chat = r#"{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"say a"}]}]}"#;
    let calls = [
        ("GET", "/api/agents?limit=1".to_owned(), ""),
        ("POST", "/api/agents".to_owned(), launch),
        ("POST", "/api/agents".to_owned(), launch),
        ("GET", format!("/api/agents/{first}/messages?last=1"), ""),
        ("GET", format!("/api/agents/{first}/export"), ""),
        ("POST", "/api/chat".to_owned(), chat),
        ("GET", "/api/chat/c/stream?startIndex=-1".to_owned(), ""),
        ("PUT", "/api/agents".to_owned(), ""),
        ("GET", "/ws".to_owned(), ""),
        ("GET", "/v1/agents/x".to_owned(), ""),
        ("GET", format!("/v1/stream/agents/{first}/events?offset=-1&live=long-poll"), ""),
    ];
    let mut seen = BTreeSet::new();
    let mut exposed = BTreeSet::new();
    for (method, uri, body) in calls {
        let method: Method = method.parse().unwrap();
        let mut request = TestRequest::with_uri(&uri).method(method).insert_header(("origin", PAGE));
        if !body.is_empty() {
            request = request.insert_header(("content-type", "application/json"));
            request = request.insert_header(("idempotency-key", "key")).set_payload(body);
        }
        let answer = harness.call(request).await;
        assert_readable(&answer, &uri);
        seen.extend(answer.headers.keys().map(|name| name.as_str().to_owned()));
        exposed = words(answer.header("access-control-expose-headers"));
    }
    let no_token =
        TestRequest::get().uri("/api/agents").insert_header(("host", HOST)).insert_header(("origin", PAGE));
    seen.extend(harness.call_raw(no_token).await.headers.keys().map(|name| name.as_str().to_owned()));
    for name in [
        "link",
        "location",
        "idempotent-replayed",
        "tokenrail-since",
        "x-workflow-stream-tail-index",
        "x-should-retry",
        "stream-next-offset",
        "stream-cursor",
    ] {
        assert!(seen.contains(name), "{name} was provoked");
    }
    let hidden: Vec<_> =
        seen.difference(&exposed).filter(|name| !words(NOT_LISTED).contains(*name)).collect();
    assert_eq!(hidden, [""; 0], "a page cannot read these");
}

#[actix_web::test]
async fn a_refusal_says_which_setting_lets_a_page_come() {
    let harness = harness();
    let detail = async |host: &str, name: &str, value: &str, path: &str| {
        let request = TestRequest::get().uri(path).insert_header(("host", host)).insert_header(bearer());
        harness.call_raw(request.insert_header((name.to_owned(), value))).await.json()["detail"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let said = detail("localhost:5173", "x-a", "", "/api/agents").await;
    assert!(
        said.contains("\"localhost:5173\"")
            && said.contains("server.allowed_hosts")
            && said.contains("changeOrigin"),
        "{said}"
    );
    let said = detail(HOST, "origin", "http://localhost:5173", "/api/agents").await;
    assert!(said.contains("\"http://localhost:5173\"") && said.contains("server.allowed_origins"), "{said}");
    let said = detail(HOST, "origin", "null", "/api/agents").await;
    assert!(said.contains("serve the page over http"), "{said}");
    let said = detail(HOST, "sec-fetch-site", "cross-site", "/api/agents").await;
    assert!(said.contains("server.allowed_origins"), "{said}");
    let said = detail(HOST, "x-a", "", "/agents").await;
    assert!(said.contains("configure it to keep the prefix"), "{said}");
    for behind in
        ["api/agents", "ws", "mcp", "ag-ui/threads/x", "openai/v1/models", "v1/agents", "socket.io/"]
    {
        let said = detail(HOST, "x-a", "", &format!("/tokenrail/{behind}")).await;
        assert!(said.contains("set server.public_url"), "{behind}: {said}");
    }
    for nowhere in ["/api/nowhere", "/api/nowhere/ws", "/nowhere"] {
        assert_eq!(detail(HOST, "x-a", "", nowhere).await, "no such path", "{nowhere}");
    }
    // Invalid names are not repeated in the response.
    for strange in ["<script>", "a b", "\u{e9}"] {
        assert!(!detail(strange, "x-a", "", "/api/agents").await.contains(strange));
        assert!(!detail(HOST, "origin", strange, "/api/agents").await.contains(strange));
    }
}
