//! Tickets and login codes on several nodes of one store: each is accepted once, at any node.

use std::time::Duration;

use actix_web::test::TestRequest;
use serde_json::json;
use tokenrail_application::Limits;
use tokenrail_domain::NodeId;
use tokenrail_ports::testing::{MemoryBus, MemoryStore, PretendRepository};

use super::harness::{Answer, HOST, Harness};
use crate::PresentationConfig;

const OWN: &str = "http://localhost:7117";
const PAGE: &str = "https://app.example";
const REFUSED: &str = "unauthenticated";

/// Two nodes of one store.
async fn two_nodes(change: impl Fn(&mut PresentationConfig)) -> [Harness; 2] {
    let (first, bus) = (MemoryStore::shared(1), MemoryBus::new(1));
    let second = (first.as_node(NodeId(2)), bus.another());
    let start = async |outside| {
        let quiet = |config: &mut PresentationConfig, limits: &mut Limits| {
            limits.nodes.lost_after = Duration::from_hours(1);
            config.allowed_origins = vec![PAGE.into()];
            config.failed_logins_per_minute = 100;
            change(config);
        };
        let harness = Harness::on(outside, quiet, None, PretendRepository::default(), true);
        harness.service.recover().await.unwrap();
        harness
    };
    [start((first, bus)).await, start(second).await]
}

/// The code of the problem, or "" for success.
fn code(answer: &Answer) -> String {
    if answer.status.is_success() { String::new() } else { answer.problem() }
}

async fn ticket(harness: &Harness, path: Option<&str>, origin: Option<&str>) -> Answer {
    let mut request = TestRequest::post().uri("/api/tickets");
    if let Some(origin) = origin {
        request = request.insert_header(("origin", origin));
    }
    if let Some(path) = path {
        let body = json!({ "path": path }).to_string();
        request = request.insert_header(("content-type", "application/json")).set_payload(body);
    }
    harness.call(request).await
}

/// Opens the stream at this path with a ticket. Returns the code of the problem, or "" for success.
async fn open(harness: &Harness, path: &str, ticket: &Answer, headers: &[(&str, &str)]) -> String {
    let uri = format!("{path}?ticket={}", ticket.json()["ticket"].as_str().unwrap());
    let mut request = TestRequest::get().uri(&uri).insert_header(("host", HOST));
    request = request.insert_header(("accept", "text/event-stream"));
    for header in headers {
        request = request.insert_header(*header);
    }
    code(&harness.call_raw(request).await)
}

#[actix_web::test]
async fn a_ticket_of_one_node_opens_one_stream_at_another() {
    let [first, second] = &two_nodes(|_| {}).await;
    let id = first.launch_to_end("say a").await;
    let events = format!("/api/agents/{id}/events");
    // The ticket for a socket is accepted: the request only fails because it is not a handshake.
    for (path, accepted) in [("/ws", "upgrade_required"), (&*events, "")] {
        for bound in [Some(path), None] {
            let made = ticket(first, bound, None).await;
            assert_eq!(open(second, path, &made, &[]).await, accepted, "{path} {bound:?}");
            for node in [first, second] {
                assert_eq!(open(node, path, &made, &[]).await, REFUSED, "{path} {bound:?}: it is used");
            }
        }
    }
    let made = ticket(first, Some("/ws"), None).await;
    assert_eq!(open(second, &events, &made, &[]).await, REFUSED, "it is for another path");
    assert_eq!(open(second, "/ws", &made, &[]).await, REFUSED, "and that try has used it up");
}

#[actix_web::test]
async fn of_two_nodes_that_are_shown_a_ticket_at_once_one_accepts_it() {
    let [first, second] = &two_nodes(|_| {}).await;
    for _ in 0..9 {
        let made = ticket(first, None, None).await;
        let mut codes: [String; 2] =
            futures_util::future::join(open(first, "/ws", &made, &[]), open(second, "/ws", &made, &[]))
                .await
                .into();
        codes.sort();
        assert_eq!(codes, [REFUSED, "upgrade_required"]);
    }
}

#[actix_web::test]
async fn an_event_source_comes_back_to_another_node() {
    let [first, second] = &two_nodes(|config| config.ticket_resume = Duration::from_mins(1)).await;
    let id = first.launch_to_end("say a b").await;
    let other = first.launch_to_end("say a b").await;
    let [events, others] = [&id, &other].map(|id| format!("/api/agents/{id}/events"));
    for bound in [Some(&*events), None] {
        let made = ticket(first, bound, Some(PAGE)).await;
        let back = [("last-event-id", "2"), ("origin", PAGE)];
        assert_eq!(open(second, &events, &made, &back).await, "", "{bound:?}: the first use");
        for node in [first, second] {
            assert_eq!(open(node, &events, &made, &back).await, "", "{bound:?}: it comes back");
            assert_eq!(open(node, &events, &made, &back[..1]).await, "", "its browser names no origin");
            assert_eq!(open(node, &events, &made, &back[1..]).await, REFUSED, "{bound:?}: anew");
            assert_eq!(open(node, &others, &made, &back).await, REFUSED, "{bound:?}: another agent");
            assert_eq!(open(node, "/ws", &made, &back).await, REFUSED, "{bound:?}: a socket");
            let elsewhere = [back[0], ("origin", OWN)];
            assert_eq!(open(node, &events, &made, &elsewhere).await, "origin_not_allowed", "{bound:?}");
        }
    }
    let unused = ticket(first, Some(&events), None).await;
    let wrong = open(first, &others, &unused, &[]).await;
    let late = open(second, &events, &unused, &[("last-event-id", "2")]).await;
    assert_eq!((&*wrong, &*late), (REFUSED, REFUSED), "it has opened nothing");
}

#[actix_web::test]
async fn a_ticket_that_was_given_to_a_page_is_for_that_page_at_every_node() {
    let [first, second] = &two_nodes(|_| {}).await;
    let cases =
        [(OWN, OWN, "upgrade_required"), (OWN, PAGE, "origin_not_allowed"), (PAGE, PAGE, "upgrade_required")];
    for (given_to, shown_by, expected) in cases {
        let made = ticket(first, None, Some(given_to)).await;
        assert_eq!(
            open(second, "/ws", &made, &[("origin", shown_by)]).await,
            expected,
            "{given_to} {shown_by}"
        );
    }
}

#[actix_web::test]
async fn the_nodes_have_so_many_unused_tickets_together() {
    let [first, second] = &two_nodes(|config| config.tickets = 2).await;
    let made = ticket(first, None, None).await;
    assert_eq!(ticket(first, None, None).await.status, 201);
    for node in [first, second] {
        assert_eq!(code(&ticket(node, None, None).await), "capacity_exhausted");
    }
    assert_eq!(open(second, "/ws", &made, &[]).await, "upgrade_required");
    assert_eq!(ticket(second, None, None).await.status, 201);
}

async fn log_in(harness: &Harness, login_code: &str) -> String {
    let request = TestRequest::post().uri("/api/session").insert_header(("host", HOST));
    let request = request.insert_header(("content-type", "application/json")).insert_header(("origin", OWN));
    code(&harness.call_raw(request.set_payload(json!({ "code": login_code }).to_string())).await)
}

#[actix_web::test]
async fn a_login_code_of_one_node_starts_one_session_at_another() {
    let [first, second] = &two_nodes(|_| {}).await;
    for _ in 0..9 {
        let made = first.call(TestRequest::post().uri("/api/session/codes")).await;
        assert_eq!(made.status, 201, "{made:?}");
        let login_code = made.json()["code"].as_str().unwrap().to_owned();
        let mut codes: [String; 2] =
            futures_util::future::join(log_in(first, &login_code), log_in(second, &login_code)).await.into();
        codes.sort();
        assert_eq!(codes, ["", REFUSED], "one of two that are shown it at once accepts it");
        assert_eq!(log_in(second, &login_code).await, REFUSED, "it is used");
    }
    let made = ticket(first, None, None).await.json();
    assert_eq!(log_in(second, made["ticket"].as_str().unwrap()).await, REFUSED, "a ticket is no login code");
}

/// What a server has not signed is no reason to ask the database.
#[actix_web::test]
async fn a_guess_is_refused_by_its_signature() {
    let [first, second] = &two_nodes(|_| {}).await;
    let name = ticket(first, None, None).await.json()["ticket"].as_str().unwrap().to_owned();
    let mut guesses =
        vec![String::new(), "00".into(), "zz".repeat(64), name[2..].into(), name.to_uppercase()];
    guesses.extend((0..name.len()).step_by(9).map(|at| {
        let digit = if name.as_bytes()[at] == b'0' { "1" } else { "0" };
        format!("{}{digit}{}", &name[..at], &name[at + 1..])
    }));
    for guess in guesses {
        let request = TestRequest::get().uri(&format!("/ws?ticket={guess}")).insert_header(("host", HOST));
        assert_eq!(code(&second.call_raw(request).await), REFUSED, "{guess}");
    }
    let request = TestRequest::get().uri(&format!("/ws?ticket={name}")).insert_header(("host", HOST));
    assert_eq!(code(&second.call_raw(request).await), "upgrade_required", "it was not used up");
}
