//! Who has access.

use actix_web::http::{Method, Version};
use actix_web::test::TestRequest;

use super::harness::{HOST, Harness, TOKEN};
use crate::PresentationConfig;

const HOST_REFUSED: &str = "host_not_allowed";
const ORIGIN_REFUSED: &str = "origin_not_allowed";

/// `headers` change a good request or are added to it. `expected` is the code of the problem, or "" for success.
async fn check(headers: &[(&str, &str)], uri: &str, expected: &str) {
    let harness = Harness::with(|config, _| config.allowed_origins = vec!["https://app.example".into()]);
    let mut request = TestRequest::get().uri(uri);
    let given = |name: &str| headers.iter().any(|(given, _)| *given == name);
    if !given("host") {
        request = request.insert_header(("host", HOST));
    }
    if !given("authorization") {
        request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
    }
    for (name, value) in headers.iter().filter(|(_, value)| *value != "(none)") {
        request = request.append_header((*name, *value));
    }
    let answer = harness.call_raw(request).await;
    let code = if answer.status.is_success() { String::new() } else { answer.problem() };
    assert_eq!(code, expected, "{headers:?} {uri}");
    assert!(!answer.header("x-request-id").is_empty());
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
}

#[actix_web::test]
async fn only_the_servers_own_names_are_hosts() {
    for good in ["localhost:7117", "127.0.0.1:7117", "[::1]:7117", "LocalHost:7117"] {
        check(&[("host", good)], "/api/agents", "").await;
    }
    for bad in ["evil.example", "localhost", "localhost:7118", "localhost:7117.evil.example", "(none)", ""] {
        check(&[("host", bad)], "/api/agents", HOST_REFUSED).await;
        check(&[("host", bad)], "/healthz", HOST_REFUSED).await;
    }
    check(&[("host", HOST), ("host", HOST)], "/api/agents", HOST_REFUSED).await;
    check(&[("x-forwarded-host", "evil.example")], "/api/agents", "").await;
    check(&[], "http://localhost:7117/api/agents", "").await;
    check(&[], "http://evil.example/api/agents", HOST_REFUSED).await;
}

#[actix_web::test]
async fn below_a_path_the_host_of_a_target_is_checked_too() {
    let harness = Harness::with(|config, _| config.base_path = "/agents".to_owned());
    for (uri, expected) in [
        ("/agents/api/agents", 200),
        ("/api/agents", 200),
        ("http://localhost:7117/agents/api/agents", 200),
        ("http://evil.example/agents/api/agents", 421),
    ] {
        let request = TestRequest::get().uri(uri).insert_header(("host", HOST));
        let request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
        assert_eq!(harness.call_raw(request).await.status, expected, "{uri}");
    }
}

#[actix_web::test]
async fn below_a_path_the_type_of_a_problem_is_there_too() {
    let harness = Harness::with(|config, _| config.base_path = "/agents".to_owned());
    let problem = harness.get("/agents/api/nothing").await.json();
    assert_eq!(problem["type"], "/agents/problems/not_found");
    assert_eq!(harness.get("/agents/problems/not_found").await.status, 200);
}

#[actix_web::test]
async fn an_old_client_without_a_host_is_refused() {
    let harness = Harness::new();
    let request = TestRequest::get().uri("/healthz").version(Version::HTTP_10);
    assert_eq!(harness.call_raw(request).await.problem(), HOST_REFUSED);
}

#[actix_web::test]
async fn other_sites_pages_are_refused() {
    for good in ["http://localhost:7117", "https://127.0.0.1:7117", "https://app.example"] {
        check(&[("origin", good)], "/api/agents", "").await;
    }
    for bad in [
        "null",
        "http://evil.example",
        "http://localhost:3000",
        "http://localhost",
        "",
        "https://app.example.evil.example",
    ] {
        check(&[("origin", bad)], "/api/agents", ORIGIN_REFUSED).await;
    }
    check(&[("origin", "http://localhost:7117"), ("origin", "null")], "/api/agents", ORIGIN_REFUSED).await;
    for good in ["same-origin", "none"] {
        check(&[("sec-fetch-site", good)], "/api/agents", "").await;
    }
    for bad in ["cross-site", "same-site", "x"] {
        check(&[("sec-fetch-site", bad)], "/api/agents", ORIGIN_REFUSED).await;
        check(&[("sec-fetch-site", bad)], "/healthz", ORIGIN_REFUSED).await;
    }
}

#[actix_web::test]
async fn only_the_token_opens_the_api() {
    check(&[("authorization", "bearer 0123456789abcdef")], "/api/agents", "").await;
    let wrong = [
        "(none)",
        "",
        "Bearer",
        "Bearer ",
        "Bearer 0123456789abcde",
        "Bearer 0123456789abcdef0",
        "Basic 0123456789abcdef",
        "0123456789abcdef",
    ];
    for wrong in wrong {
        for uri in ["/api/agents", "/metrics", "/openapi.json", "/ws", "/nowhere"] {
            check(&[("authorization", wrong)], uri, "unauthenticated").await;
        }
        check(&[("authorization", wrong)], "/healthz", "").await;
        check(&[("authorization", wrong)], "/readyz", "").await;
    }
    let token = format!("/api/agents?ticket={TOKEN}&token={TOKEN}");
    check(&[("authorization", "(none)")], &token, "unauthenticated").await;
    let twice = [("authorization", "Bearer 0123456789abcdef"), ("authorization", "Bearer x")];
    check(&twice, "/api/agents", "unauthenticated").await;
}

#[actix_web::test]
async fn the_token_in_x_api_key_counts_if_there_is_no_authorization() {
    let [bearer, wrong_bearer] =
        ["Bearer 0123456789abcdef", "Bearer x"].map(|value| ("authorization", value));
    let [key, wrong_key] = [TOKEN, "x"].map(|value| ("x-api-key", value));
    let nothing = ("authorization", "(none)");
    for uri in ["/api/agents", "/metrics"] {
        check(&[nothing, key], uri, "").await;
        check(&[nothing, wrong_key], uri, "unauthenticated").await;
        check(&[nothing, key, wrong_key], uri, "unauthenticated").await;
        check(&[bearer, wrong_key], uri, "").await;
        check(&[wrong_bearer, key], uri, "unauthenticated").await;
    }
}

#[actix_web::test]
async fn a_key_that_is_not_the_token_disturbs_no_other_credential_and_starts_no_session() {
    let key = ("x-api-key", "of-a-gateway");
    let harness = Harness::with(|config, _| config.failed_logins_per_minute = 1);
    let start = |headers: &[(&'static str, &'static str)]| {
        let request = TestRequest::post().uri("/api/session").insert_header(("host", HOST));
        headers.iter().fold(request, |request, header| request.insert_header(*header))
    };
    let started = harness.call_raw(start(&[("x-api-key", TOKEN)])).await;
    assert_eq!(started.status, 204);
    let cookie = started.header("set-cookie").split(';').next().unwrap().to_owned();
    let request = TestRequest::get().uri("/api/agents").insert_header(("host", HOST));
    let request = request.insert_header(key).insert_header(("cookie", cookie));
    assert_eq!(harness.call_raw(request).await.status, 200);
    assert_eq!(harness.call_raw(start(&[key])).await.problem(), "unauthenticated");
    assert_eq!(harness.call_raw(start(&[key])).await.problem(), "rate_limited", "it is a failed login");
}

#[actix_web::test]
async fn one_answer_to_every_wrong_token() {
    let harness = Harness::new();
    let mut seen = Vec::new();
    for header in [None, Some("Bearer wrong"), Some("Basic x")] {
        let mut request = TestRequest::get().uri("/api/agents").insert_header(("host", HOST));
        if let Some(header) = header {
            request = request.insert_header(("authorization", header));
        }
        let answer = harness.call_raw(request).await;
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"tokenrail\"");
        let mut problem = answer.json();
        problem["requestId"] = "".into();
        seen.push(problem);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}

#[actix_web::test]
async fn a_socket_takes_the_token_as_a_subprotocol() {
    // The token is accepted: the request only fails because it is not a handshake.
    let offer = format!("tokenrail.v1, bearer.{TOKEN}");
    check(&[("authorization", "(none)"), ("sec-websocket-protocol", &offer)], "/ws", "upgrade_required")
        .await;
    let wrong = [("authorization", "(none)"), ("sec-websocket-protocol", "tokenrail.v1, bearer.x")];
    check(&wrong, "/ws", "unauthenticated").await;
    check(
        &[("authorization", "(none)"), ("sec-websocket-protocol", &offer)],
        "/api/agents",
        "unauthenticated",
    )
    .await;
}

#[actix_web::test]
async fn open_paths_are_read_without_a_token() {
    let harness = Harness::with(|config, _| config.open_paths = vec!["/".into(), "/assets/*".into()]);
    let code = |method: Method, uri: &'static str| {
        let request = TestRequest::with_uri(uri).method(method).insert_header(("host", HOST));
        harness.call_raw(request)
    };
    assert_eq!(code(Method::GET, "/").await.problem(), "not_found", "it may come, but nothing is there");
    assert_eq!(code(Method::GET, "/assets/x.js").await.problem(), "not_found");
    assert_eq!(code(Method::POST, "/").await.problem(), "unauthenticated", "only for reading");
    assert_eq!(code(Method::GET, "/api/agents").await.problem(), "unauthenticated");
}

#[test]
fn a_configuration_that_is_printed_shows_no_token() {
    let config = PresentationConfig { token: Some(TOKEN.into()), ..PresentationConfig::new(7117) };
    assert!(!format!("{config:?}").contains(TOKEN));
}

#[actix_web::test]
async fn without_a_token_in_the_configuration_everybody_may_come() {
    let harness = Harness::with(|config, _| config.token = None);
    let answer = harness.call_raw(TestRequest::get().uri("/api/agents").insert_header(("host", HOST))).await;
    assert_eq!((answer.status.as_u16(), answer.header("tokenrail-auth")), (200, "none"), "and it shows");
    let origin = TestRequest::get().uri("/api/agents").insert_header(("host", HOST));
    let answer = harness.call_raw(origin.insert_header(("origin", "http://evil.example"))).await;
    assert_eq!(answer.problem(), ORIGIN_REFUSED, "but no other site's page");
}

#[actix_web::test]
async fn encoded_bodies_are_refused() {
    check(&[("content-encoding", "gzip")], "/api/agents", "content_encoding_refused").await;
}

/// A ticket for a page, as its browser requests it, or for a program, which sends no origin.
async fn ticket(harness: &Harness, origin: Option<&str>) -> String {
    let mut request = TestRequest::post().uri("/api/tickets");
    if let Some(origin) = origin {
        request = request.insert_header(("origin", origin));
    }
    harness.call(request).await.json()["ticket"].as_str().unwrap().to_owned()
}

#[actix_web::test]
async fn a_ticket_that_was_given_to_a_page_is_for_that_page() {
    let harness = Harness::with(|config, _| config.allowed_origins = vec!["https://app.example".into()]);
    let own = "http://localhost:7117";
    let id = harness.launch_to_end("say a").await;
    let events = format!("/api/agents/{id}/events");
    let cases = [
        // The ticket is accepted: the request only fails because it is not a handshake.
        ("/ws", Some(own), Some(own), "upgrade_required"),
        ("/ws", Some(own), Some("https://app.example"), ORIGIN_REFUSED),
        ("/ws", Some(own), None, ORIGIN_REFUSED),
        ("/ws", None, None, "upgrade_required"),
        // A browser names the origin of an event stream only if it is another origin.
        (&events, Some(own), None, ""),
        (&events, Some("https://app.example"), Some("https://app.example"), ""),
        (&events, Some("https://app.example"), Some(own), ORIGIN_REFUSED),
    ];
    for (path, given_to, origin, expected) in cases {
        let uri = format!("{path}?ticket={}", ticket(&harness, given_to).await);
        let mut request = TestRequest::get().uri(&uri).insert_header(("host", HOST));
        request = request.insert_header(("accept", "text/event-stream"));
        if let Some(origin) = origin {
            request = request.insert_header(("origin", origin));
        }
        let answer = harness.call_raw(request).await;
        let code = if answer.status.is_success() { String::new() } else { answer.problem() };
        assert_eq!(code, expected, "{path} {given_to:?} {origin:?}");
    }
}

/// Requests an agent's events. Returns the code of the problem, or "" for success.
async fn come(harness: &Harness, uri: &str, last_event_id: Option<&str>, origin: Option<&str>) -> String {
    let mut request = TestRequest::get().uri(uri).insert_header(("host", HOST));
    request = request.insert_header(("accept", "text/event-stream"));
    for (name, value) in [("last-event-id", last_event_id), ("origin", origin)] {
        if let Some(value) = value {
            request = request.insert_header((name, value));
        }
    }
    let answer = harness.call_raw(request).await;
    if answer.status.is_success() { String::new() } else { answer.problem() }
}

#[actix_web::test]
async fn an_event_source_comes_back_with_the_ticket_that_it_was_opened_with() {
    let harness = Harness::with(|config, _| {
        config.allowed_origins = vec!["https://app.example".into()];
        config.ticket_resume = std::time::Duration::from_mins(1);
        config.failed_logins_per_minute = 100;
    });
    let id = harness.launch_to_end("say a b").await;
    let other = harness.launch_to_end("say a b").await;
    let page = "https://app.example";
    for body in [format!(r#"{{"path":"/api/agents/{id}/events"}}"#), String::new()] {
        let mut asked = TestRequest::post().uri("/api/tickets").insert_header(("origin", page));
        if !body.is_empty() {
            asked = asked.insert_header(("content-type", "application/json")).set_payload(body.clone());
        }
        let ticket = harness.call(asked).await.json()["ticket"].as_str().unwrap().to_owned();
        let uri = format!("/api/agents/{id}/events?ticket={ticket}");
        assert_eq!(come(&harness, &uri, None, Some(page)).await, "", "{body}");
        for _ in 0..3 {
            assert_eq!(come(&harness, &uri, Some("2"), Some(page)).await, "", "{body}: it comes back");
        }
        assert_eq!(come(&harness, &uri, Some("2"), None).await, "", "{body}: its browser names no origin");
        assert_eq!(come(&harness, &uri, None, Some(page)).await, "unauthenticated", "{body}: anew");
        let own = "http://localhost:7117";
        assert_eq!(come(&harness, &uri, Some("2"), Some(own)).await, ORIGIN_REFUSED, "{body}");
        let elsewhere = format!("/api/agents/{other}/events?ticket={ticket}");
        assert_eq!(come(&harness, &elsewhere, Some("2"), None).await, "unauthenticated", "{body}");
        let list =
            TestRequest::get().uri(&uri).insert_header(("host", HOST)).insert_header(("last-event-id", "2"));
        assert_eq!(harness.call_raw(list).await.problem(), "unauthenticated", "{body}: as a list");
        let socket = format!("/ws?ticket={ticket}");
        assert_eq!(come(&harness, &socket, Some("2"), Some(page)).await, "unauthenticated", "{body}");
        harness.clock.advance_ms(60_000);
        assert_eq!(come(&harness, &uri, Some("2"), Some(page)).await, "unauthenticated", "{body}: too late");
    }
}

#[actix_web::test]
async fn a_ticket_that_has_opened_nothing_is_not_good_for_coming_back() {
    let harness = Harness::with(|config, _| config.failed_logins_per_minute = 100);
    let id = harness.launch_to_end("say a b").await;
    let events = format!("/api/agents/{id}/events");
    for wrong in ["/ws", "/api/agents/01a20817-20b2-7551-ac48-9455cfa56b41/events"] {
        let made = harness.post("/api/tickets", &format!(r#"{{"path":"{events}"}}"#)).await.json();
        let ticket = made["ticket"].as_str().unwrap();
        let uri = format!("{wrong}?ticket={ticket}");
        assert_eq!(come(&harness, &uri, None, None).await, "unauthenticated", "{wrong}");
        for query in ["", "&keep=true&raw=true"] {
            let uri = format!("{events}?ticket={ticket}{query}");
            assert_eq!(come(&harness, &uri, Some("0"), None).await, "unauthenticated", "{wrong} {query}");
            assert_eq!(come(&harness, &uri, None, None).await, "unauthenticated", "{wrong} {query}");
        }
    }
}

#[actix_web::test]
async fn who_comes_back_with_a_ticket_stays_until_its_time() {
    let harness = Harness::with(|config, _| config.ticket_resume = std::time::Duration::from_mins(1));
    let id = harness.launch_to_end("say a b").await;
    let made = harness.post("/api/tickets", &format!(r#"{{"path":"/api/agents/{id}/events"}}"#)).await.json();
    let uri = format!("/api/agents/{id}/events?ticket={}", made["ticket"].as_str().unwrap());
    assert_eq!(come(&harness, &uri, None, None).await, "");
    harness.clock.advance_ms(59_500);
    let keep = format!("{uri}&keep=true");
    let stays = come(&harness, &keep, Some("0"), None);
    // This request reads the stream to its end.
    let read = tokio::time::timeout(std::time::Duration::from_mins(1), stays).await;
    assert_eq!(read.expect("the stream ends with the ticket"), "");
}
