//! Sessions of browsers: how they start and end, and what their cookie opens.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::json;

use super::harness::{Answer, HOST, Harness, TOKEN};
use crate::{Api, PresentationConfig};

const OWN: &str = "http://localhost:7117";
const LISTED: &str = "https://app.example";
const OTHER_PORT: &str = "http://localhost:3000";
const UNKNOWN_AGENT: &str = "/api/agents/01900000-0000-7000-8000-000000000000";
const REFUSED: &str = "origin_not_allowed";

fn harness() -> Harness {
    Harness::with(|config, _| config.allowed_origins = vec![LISTED.into()])
}

/// Sends a request with these headers. Without a token, unless they contain it.
async fn send(harness: &Harness, method: Method, uri: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = TestRequest::default().method(method).uri(uri).insert_header(("host", HOST));
    for header in headers {
        request = request.append_header(*header);
    }
    harness.call_raw(request).await
}

/// The code of the problem, or "" for success.
fn code(answer: &Answer) -> String {
    if answer.status.is_success() { String::new() } else { answer.problem() }
}

async fn log_in(harness: &Harness, body: &str, origin: &str) -> Answer {
    let request = TestRequest::post().uri("/api/session").insert_header(("host", HOST));
    let request = request.insert_header(("content-type", "application/json"));
    harness.call_raw(request.insert_header(("origin", origin)).set_payload(body.to_owned())).await
}

/// What the browser sends in `Cookie` after this response.
fn cookie_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 204, "{answer:?}");
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

/// The cookie of a session that was started with the token.
async fn session(harness: &Harness) -> String {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("origin", OWN), ("authorization", &bearer)];
    cookie_of(&send(harness, Method::POST, "/api/session", &headers).await)
}

async fn login_code(harness: &Harness) -> String {
    let made = harness.call(TestRequest::post().uri("/api/session/codes")).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.json()["expiresAt"], "2026-11-21T22:20:00.000Z");
    made.json()["code"].as_str().unwrap().to_owned()
}

#[actix_web::test]
async fn a_login_code_starts_one_session() {
    let harness = harness();
    let body = json!({ "code": login_code(&harness).await }).to_string();
    let started = log_in(&harness, &body, OWN).await;
    let attributes = started.header("set-cookie").split_once("; ").unwrap().1.to_owned();
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
    assert!(!started.header("set-cookie").contains(TOKEN) && started.text.is_empty());
    let cookie = cookie_of(&started);
    let read = send(&harness, Method::GET, "/api/agents", &[("cookie", &cookie)]).await;
    assert_eq!(code(&read), "");
    assert_eq!(code(&log_in(&harness, &body, OWN).await), "unauthenticated", "the code is spent");
    for wrong in ["{}", "null", r#"{"code":"x"}"#, &format!(r#"{{"code":"{TOKEN}"}}"#)] {
        assert_eq!(code(&log_in(&harness, wrong, OWN).await), "unauthenticated", "{wrong}");
    }
    assert_eq!(code(&log_in(&harness, r#"{"code":1}"#, OWN).await), "validation_failed");
}

#[actix_web::test]
async fn below_a_path_other_pages_of_the_host_do_not_get_the_cookie() {
    let harness = Harness::with(|config, _| config.base_path = "/agents".to_owned());
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("origin", OWN), ("authorization", &*bearer)];
    let started = send(&harness, Method::POST, "/agents/api/session", &headers).await;
    assert!(started.header("set-cookie").contains("; Path=/agents;"), "{started:?}");
    let headers = [("cookie", &*cookie_of(&started)), ("origin", OWN), ("tokenrail-csrf", "1")];
    let ended = send(&harness, Method::DELETE, "/agents/api/session", &headers).await;
    assert!(ended.header("set-cookie").contains("; Path=/agents;"), "{ended:?}");
}

/// A client without a token may send one.
#[actix_web::test]
async fn the_body_that_starts_a_session_is_small() {
    let harness = harness();
    let body = json!({ "code": login_code(&harness).await }).to_string();
    let padded = |bytes: usize| format!("{body:bytes$}");
    assert_eq!(code(&log_in(&harness, &padded(1025), OWN).await), "payload_too_large");
    assert_eq!(code(&log_in(&harness, &padded(1024), OWN).await), "");
}

#[actix_web::test]
async fn guesses_of_login_codes_count_as_failed_logins() {
    let harness = Harness::with(|config, _| config.failed_logins_per_minute = 2);
    let guess = async || code(&log_in(&harness, r#"{"code":"guess"}"#, OWN).await);
    assert_eq!(
        [guess().await, guess().await, guess().await],
        ["unauthenticated", "unauthenticated", "rate_limited"]
    );
    // An expired session does not count: a browser sends its cookie with every request.
    for _ in 0..5 {
        let old =
            send(&harness, Method::GET, "/api/agents", &[("cookie", "tokenrail_session_7117=00")]).await;
        assert_eq!(code(&old), "unauthenticated");
    }
}

#[actix_web::test]
async fn a_cookie_over_tls_is_never_sent_without_it() {
    let harness = harness();
    let body = json!({ "code": login_code(&harness).await }).to_string();
    let started = log_in(&harness, &body, "https://localhost:7117").await;
    assert!(started.header("set-cookie").contains("; Secure;"), "{started:?}");
}

#[actix_web::test]
async fn only_a_page_of_the_server_starts_a_session() {
    let harness = harness();
    let body = json!({ "code": login_code(&harness).await }).to_string();
    for other in [LISTED, OTHER_PORT, "null"] {
        assert_eq!(code(&log_in(&harness, &body, other).await), REFUSED, "{other}");
    }
    assert_eq!(code(&log_in(&harness, &body, OWN).await), "", "and none of them has used the code up");
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("origin", LISTED), ("authorization", &*bearer)];
    assert_eq!(code(&send(&harness, Method::POST, "/api/session", &headers).await), REFUSED);
    let wrong = [("origin", OWN), ("authorization", "Bearer wrong")];
    assert_eq!(code(&send(&harness, Method::POST, "/api/session", &wrong).await), "unauthenticated");
}

#[actix_web::test]
async fn a_session_reads_for_pages_of_the_server_only() {
    let harness = harness();
    let cookie = session(&harness).await;
    let id = harness.launch_to_end("say a").await;
    let events = format!("/api/agents/{id}/events");
    for uri in ["/api/agents", &events, "/openapi.json"] {
        for (origin, expected) in
            [(None, ""), (Some(OWN), ""), (Some(LISTED), REFUSED), (Some(OTHER_PORT), REFUSED)]
        {
            let mut headers = vec![("cookie", &*cookie), ("accept", "text/event-stream, */*")];
            headers.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(code(&send(&harness, Method::GET, uri, &headers).await), expected, "{uri} {origin:?}");
        }
        for site in ["cross-site", "same-site"] {
            let headers = [("cookie", &*cookie), ("sec-fetch-site", site)];
            assert_eq!(code(&send(&harness, Method::GET, uri, &headers).await), REFUSED, "{uri} {site}");
        }
    }
}

#[actix_web::test]
async fn a_change_with_a_cookie_needs_proof_that_a_page_of_the_server_wants_it() {
    let harness = harness();
    let cookie = session(&harness).await;
    let csrf = Some("1");
    let cases = [
        (Some(OWN), csrf, "not_found"),
        (Some(OWN), None, REFUSED),
        (None, csrf, REFUSED),
        (None, None, REFUSED),
        (Some(LISTED), csrf, REFUSED),
        (Some(OTHER_PORT), csrf, REFUSED),
        (Some("null"), csrf, REFUSED),
    ];
    for method in [Method::POST, Method::DELETE, Method::PATCH] {
        let uri =
            if method == Method::POST { format!("{UNKNOWN_AGENT}/cancel") } else { UNKNOWN_AGENT.to_owned() };
        for (origin, csrf, expected) in cases {
            let mut headers = vec![("cookie", &*cookie)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            headers.extend(csrf.map(|csrf| ("tokenrail-csrf", csrf)));
            // A change of an agent needs a body, which is absent here.
            let expected = match (&method, expected) {
                (&Method::PATCH, "not_found") => "unsupported_media_type",
                (_, expected) => expected,
            };
            let answer = send(&harness, method.clone(), &uri, &headers).await;
            assert_eq!(code(&answer), expected, "{method} {origin:?} {csrf:?}");
        }
    }
}

#[actix_web::test]
async fn a_socket_with_a_cookie_needs_an_origin_of_the_server() {
    let harness = harness();
    let cookie = session(&harness).await;
    for uri in ["/ws", "/api/chat"] {
        // The cookie is accepted: the request only fails because it is not a handshake.
        let cases = [
            (Some(OWN), "upgrade_required"),
            (None, REFUSED),
            (Some(LISTED), REFUSED),
            (Some(OTHER_PORT), REFUSED),
        ];
        for (origin, expected) in cases {
            let mut headers = vec![("cookie", &*cookie)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(code(&send(&harness, Method::GET, uri, &headers).await), expected, "{uri} {origin:?}");
        }
    }
}

#[actix_web::test]
async fn a_session_ends_after_its_time_and_with_the_token() {
    let harness = Harness::with(|config, _| config.session = Duration::from_mins(1));
    let cookie = session(&harness).await;
    let reads = async |harness: &Harness| {
        code(&send(harness, Method::GET, "/api/agents", &[("cookie", &cookie)]).await)
    };
    assert_eq!(reads(&harness).await, "");
    let config = PresentationConfig { token: Some("rotated".into()), ..PresentationConfig::new(7117) };
    let rotated = Api::new(harness.service.clone(), config, Arc::new(|| [0; 32]));
    let rotated = Harness {
        api: rotated,
        clock: harness.clock.clone(),
        service: harness.service.clone(),
        store: harness.store.clone(),
        permits: harness.permits.clone(),
    };
    assert_eq!(reads(&rotated).await, "unauthenticated");
    harness.clock.advance_ms(60_000);
    assert_eq!(reads(&harness).await, "unauthenticated", "expired");
}

#[actix_web::test]
async fn a_session_ends_when_the_user_logs_out_and_makes_no_other() {
    let harness = harness();
    let cookie = session(&harness).await;
    let headers = [("cookie", &*cookie), ("origin", OWN), ("tokenrail-csrf", "1")];
    assert_eq!(code(&send(&harness, Method::POST, "/api/session/codes", &headers).await), "unauthenticated");
    assert_eq!(code(&send(&harness, Method::POST, "/api/session", &headers).await), "unauthenticated");
    assert_eq!(code(&send(&harness, Method::DELETE, "/api/session", &headers[..2]).await), REFUSED);
    let ended = send(&harness, Method::DELETE, "/api/session", &headers).await;
    assert_eq!(ended.status, 204);
    assert_eq!(
        ended.header("set-cookie"),
        "tokenrail_session_7117=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"
    );
}
