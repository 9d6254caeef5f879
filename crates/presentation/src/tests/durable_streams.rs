//! What clients of Durable Streams see.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use tokenrail_application::{AfterLastTurn, AtStop};
use tokio::join;

use super::harness::{Answer, Harness};

fn stream(id: &str, query: &str) -> String {
    format!("/v1/stream/agents/{id}/events{query}")
}

fn offset(number: u64) -> String {
    format!("{number:020}")
}

async fn read(harness: &Harness, id: &str, query: &str) -> Answer {
    harness.get(&stream(id, query)).await
}

async fn head(harness: &Harness, id: &str) -> Answer {
    harness.call(TestRequest::default().method(Method::HEAD).uri(&stream(id, ""))).await
}

/// Where an answer ends: the offset, and the words that say what follows.
fn reached(answer: &Answer) -> (String, &str, &str) {
    let offset = answer.header("stream-next-offset").to_owned();
    (offset, answer.header("stream-up-to-date"), answer.header("stream-closed"))
}

async fn delete(harness: &Harness, id: &str, query: &str) {
    let answer = harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}{query}"))).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

/// The events of an agent, as the native API returns them.
async fn native(harness: &Harness, id: &str) -> Vec<Value> {
    harness.get(&format!("/api/agents/{id}/events")).await.json().as_array().unwrap().clone()
}

/// The events of an event stream: the messages of each `data`, and the `control` after it. A control alone follows no
/// messages.
fn blocks(answer: &Answer) -> Vec<(Vec<Value>, Value)> {
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    let (mut all, mut messages) = (Vec::new(), Vec::new());
    for block in answer.text.split_terminator("\n\n").filter(|block| *block != ":") {
        let (name, data) = block.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        match name {
            "event: data" => messages.extend(data.as_array().unwrap().clone()),
            "event: control" => all.push((std::mem::take(&mut messages), data)),
            _ => panic!("{name}"),
        }
    }
    assert!(messages.is_empty(), "a control follows them: {answer:?}");
    all
}

fn messages(blocks: &[(Vec<Value>, Value)]) -> Vec<Value> {
    blocks.iter().flat_map(|(messages, _)| messages.clone()).collect()
}

#[actix_web::test]
async fn a_journal_is_a_stream_of_the_native_events_and_resumes_after_each() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b 🦀").await;
    let all = native(&harness, &id).await;
    let whole = read(&harness, &id, "").await;
    assert_eq!((whole.status.as_u16(), whole.header("content-type")), (200, "application/json"));
    assert_eq!(whole.json(), json!(all));
    assert_eq!(reached(&whole), (offset(6), "true", ""), "an agent that has ended may go on");
    assert_eq!(read(&harness, &id, "?offset=-1").await.text, whole.text);
    for number in 0..=all.len() {
        let rest = read(&harness, &id, &format!("?offset={}", offset(number as u64))).await;
        assert_eq!(rest.json(), json!(all[number..]), "after {number}");
        assert_eq!(reached(&rest), (offset(6), "true", ""));
    }
    let now = read(&harness, &id, "?offset=now").await;
    assert_eq!((&*now.text, reached(&now)), ("[]", (offset(6), "true", "")));
    assert_eq!((now.header("cache-control"), now.header("etag")), ("no-store", ""));
    let metadata = head(&harness, &id).await;
    assert_eq!((metadata.status.as_u16(), metadata.header("content-type")), (200, "application/json"));
    assert_eq!((reached(&metadata), &*metadata.text), ((offset(6), "", ""), ""));
    assert_eq!(metadata.header("cache-control"), "no-store");
}

#[actix_web::test]
async fn a_client_may_keep_each_page_and_asks_whether_it_has_changed() {
    let harness = Harness::with(|_, limits| limits.reading.page_events = 2);
    let id = harness.launch_to_end("say a b").await;
    let all = native(&harness, &id).await;
    assert_eq!(all.len(), 2, "a page");
    let ask = async |query: &str, known: &str| {
        let request = TestRequest::get().uri(&stream(&id, query)).insert_header(("if-none-match", known));
        harness.call(request).await
    };
    let (mut from, mut numbers) = ("-1".to_owned(), Vec::new());
    loop {
        let query = format!("?offset={from}");
        let page = read(&harness, &id, &query).await;
        numbers.extend(page.json().as_array().unwrap().iter().map(|event| event["sequenceNumber"].clone()));
        let is_last = page.header("stream-up-to-date") == "true";
        let keep = "private, no-cache";
        assert_eq!(
            (page.header("cache-control"), page.header("vary")),
            (keep, "Authorization, X-Api-Key, Cookie")
        );
        let tag = page.header("etag").to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let again = ask(&query, &known).await;
            assert_eq!((again.status.as_u16(), &*again.text), (304, ""), "{known}");
            assert_eq!((reached(&again), again.header("etag")), (reached(&page), &*tag));
            assert_eq!(again.header("cache-control"), keep);
        }
        assert_eq!(ask(&query, "\"x\"").await.text, page.text);
        from = page.header("stream-next-offset").to_owned();
        if is_last {
            break;
        }
    }
    assert_eq!(json!(numbers), json!([1, 2, 3, 4, 5]));

    let last = format!("?offset={}", offset(4));
    let before = read(&harness, &id, &last).await.header("etag").to_owned();
    harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say c"}"#).await;
    harness.ended(&id).await;
    let more = ask(&last, &before).await;
    assert_eq!((more.status.as_u16(), reached(&more)), (200, (offset(6), "", "")), "it has changed");
    delete(&harness, &id, "").await;
    let end = format!("?offset={}", offset(8));
    let open = ask(&end, &before).await;
    assert_eq!(
        (reached(&open), open.header("cache-control")),
        ((offset(9), "true", "true"), "private, no-cache")
    );
}

#[actix_web::test]
async fn a_read_that_cannot_be_served_says_why_and_a_write_is_refused() {
    let harness = Harness::with(|config, _| config.heartbeat = Duration::from_millis(10));
    let id = harness.launch_to_end("say a").await;
    for wrong in ["", "x", "4", "-2", "+1", "00000000000000000001x", "99999999999999999999", "%00", "1%2C2"] {
        for live in ["", "&live=long-poll", "&live=sse"] {
            let answer = read(&harness, &id, &format!("?offset={wrong}{live}")).await;
            assert_eq!(
                (answer.status.as_u16(), answer.problem()),
                (400, "cursor_malformed".into()),
                "{wrong}"
            );
        }
    }
    for query in ["?live=sse", "?live=long-poll", "?offset=-1&offset=now"] {
        assert_eq!(read(&harness, &id, query).await.problem(), "cursor_malformed", "{query}");
    }
    for query in ["?live=", "?live=true", "?offset=-1&live=SSE"] {
        let answer = read(&harness, &id, query).await;
        assert_eq!((answer.status.as_u16(), answer.problem()), (400, "bad_request".into()), "{query}");
    }
    for live in ["", "&live=long-poll", "&live=sse"] {
        for number in [5, u64::MAX] {
            let ahead = read(&harness, &id, &format!("?offset={}{live}", offset(number))).await;
            assert_eq!((ahead.problem(), &ahead.json()["head"]), ("cursor_ahead".into(), &json!(4)));
        }
        for unknown in ["x", "01890000-0000-7000-8000-000000000000"] {
            assert_eq!(read(&harness, unknown, &format!("?offset=-1{live}")).await.status, 404);
        }
    }
    for method in [Method::PUT, Method::POST, Method::PATCH, Method::DELETE] {
        let request = TestRequest::default().method(method.clone()).uri(&stream(&id, ""));
        let answer = harness.call(request.set_payload("[1]")).await;
        assert_eq!((answer.problem(), answer.header("allow")), ("method_not_allowed".into(), "GET, HEAD"));
    }
}

#[actix_web::test]
async fn a_stream_closes_when_its_agent_is_deleted_or_is_a_copy_that_has_ended() {
    let harness = Harness::with(|config, _| config.heartbeat = Duration::from_millis(10));
    let id = harness.launch_to_end("say a").await;
    let all = native(&harness, &id).await;
    let replayed = harness.post(&format!("/api/agents/{id}/replay"), r#"{"speed":0}"#).await.json();
    let copy = replayed["id"].as_str().unwrap().to_owned();
    harness.ended(&copy).await;
    delete(&harness, &id, "").await;
    let closed = (offset(4), "true", "true");
    for id in [&id, &copy] {
        assert_eq!(reached(&read(&harness, id, "").await), closed);
        assert_eq!(reached(&read(&harness, id, "?offset=now").await), closed);
        assert_eq!(reached(&head(&harness, id).await), (offset(4), "", "true"));
        let long = read(&harness, id, "?offset=-1&live=long-poll").await;
        assert_eq!((long.json().as_array().unwrap().len(), reached(&long)), (4, closed.clone()));
        let over = read(&harness, id, &format!("?offset={}&live=long-poll", offset(4))).await;
        assert_eq!((over.status.as_u16(), reached(&over)), (204, closed.clone()));
        for from in 0..=4 {
            let streamed = blocks(&read(&harness, id, &format!("?offset={}&live=sse", offset(from))).await);
            assert_eq!(messages(&streamed).len(), 4 - from as usize);
            let (_, last) = streamed.last().unwrap();
            assert_eq!(*last, json!({"streamNextOffset": offset(4), "upToDate": true, "streamClosed": true}));
        }
    }
    assert_eq!(messages(&blocks(&read(&harness, &id, "?offset=-1&live=sse").await)), all);
    delete(&harness, &id, "?purge=true").await;
    for query in ["", "?offset=-1&live=long-poll", "?offset=-1&live=sse"] {
        assert_eq!(read(&harness, &id, query).await.status, 404);
    }
    assert_eq!(head(&harness, &id).await.status, 404);
}

#[actix_web::test]
async fn a_long_poll_waits_for_events_but_not_for_ever() {
    let harness = Harness::with(|config, _| config.heartbeat = Duration::from_millis(50));
    let id = harness.launch_to_end("say a").await;
    let poll = async |query: &str| read(&harness, &id, &format!("?live=long-poll&{query}")).await;
    let at_end = format!("offset={}", offset(4));
    for query in [&*at_end, "offset=now"] {
        let nothing = poll(query).await;
        assert_eq!((nothing.status.as_u16(), reached(&nothing)), (204, (offset(4), "true", "")));
        let cursor: u64 = nothing.header("stream-cursor").parse().unwrap();
        let later = poll(&format!("{query}&cursor={cursor}")).await;
        assert!(cursor < later.header("stream-cursor").parse().unwrap(), "{later:?}");
    }
    let behind = poll("offset=-1").await;
    assert_eq!(
        (behind.json(), reached(&behind)),
        (json!(native(&harness, &id).await), (offset(4), "true", ""))
    );
    assert_eq!(behind.header("cache-control"), "no-store");
    assert!(!behind.header("stream-cursor").is_empty() && !behind.header("etag").is_empty());

    let patient = Harness::with(|config, _| config.heartbeat = Duration::from_hours(1));
    let id = patient.launch_to_end("say a").await;
    let (path, send) =
        (stream(&id, &format!("?live=long-poll&{at_end}")), format!("/api/agents/{id}/messages"));
    let (news, _) = join!(patient.get(&path), patient.post(&send, r#"{"content":"say b"}"#));
    assert_eq!(news.json()[0]["sequenceNumber"], 5, "{news:?}");
    patient.ended(&id).await;
    let path = stream(&id, "?live=long-poll&offset=now");
    let (end, ()) = join!(patient.get(&path), delete(&patient, &id, ""));
    assert_eq!((end.status.as_u16(), reached(&end)), (204, (offset(8), "true", "true")));

    let id = patient.launch_to_end("say a").await;
    let path = stream(&id, "?live=long-poll&offset=now");
    let stop = patient.service.shutdown(AtStop::Keep, Duration::from_secs(5));
    let (end, _) = join!(patient.get(&path), stop);
    assert_eq!((end.problem(), end.header("retry-after")), ("shutting_down".into(), "1"));
}

#[actix_web::test]
async fn an_event_stream_has_every_event_and_says_where_each_page_ends() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b").await;
    let follow = async |query: &str| {
        let path = stream(&id, &format!("?live=sse&{query}"));
        let (streamed, ()) = join!(harness.get(&path), async {
            harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say c"}"#).await;
            harness.ended(&id).await;
            harness.service.shutdown(AtStop::Keep, Duration::from_secs(5)).await;
        });
        streamed
    };
    let streamed = follow("offset=-1&cursor=999999999").await;
    assert_eq!(streamed.header("cache-control"), "no-cache, no-transform");
    assert!(!streamed.text.contains('\r'));
    let told = blocks(&streamed);
    assert_eq!(messages(&told), native(&harness, &id).await);
    let mut before = 999_999_999;
    for (messages, control) in &told {
        let last = messages.last().unwrap();
        assert_eq!(control["streamNextOffset"], offset(last["sequenceNumber"].as_u64().unwrap()));
        let cursor: u64 = control["streamCursor"].as_str().unwrap().parse().unwrap();
        assert!(before < cursor || messages[0]["sequenceNumber"] != 1, "{cursor}");
        before = cursor;
    }
    assert_eq!(told.last().unwrap().1["upToDate"], true);
    assert_eq!(
        told.last().unwrap().1.get("streamClosed"),
        None,
        "the server has stopped, the stream has not"
    );
}

#[actix_web::test]
async fn who_comes_into_the_middle_of_a_batch_gets_exactly_the_rest() {
    let harness = Harness::new();
    let id = harness.launch("say a b c d").await;
    // A follower keeps the newest batches in memory.
    let _keeper = harness.service.follow(id.parse().unwrap(), None, AfterLastTurn::Wait).await.unwrap();
    harness.ended(&id).await;
    let all = native(&harness, &id).await;
    for number in 0..all.len() {
        let (mut next, mut rest) = (offset(number as u64), Vec::new());
        while next != offset(all.len() as u64) {
            let page = read(&harness, &id, &format!("?offset={next}&live=long-poll")).await;
            rest.extend(page.json().as_array().unwrap().clone());
            next = reached(&page).0;
        }
        assert_eq!(rest, all[number..], "after {number}");
    }
}

#[actix_web::test]
async fn who_has_everything_is_told_so_at_once() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    for query in ["now".to_owned(), offset(4)] {
        let path = stream(&id, &format!("?live=sse&offset={query}"));
        let stop = harness.service.shutdown(AtStop::Keep, Duration::from_secs(5));
        let (streamed, _) = join!(harness.get(&path), stop);
        let told = blocks(&streamed);
        assert_eq!((told.len(), &told[0].0[..]), (1, &[][..]));
        assert_eq!(
            (&told[0].1["streamNextOffset"], &told[0].1["upToDate"]),
            (&json!(offset(4)), &json!(true))
        );
    }
}

#[actix_web::test]
async fn a_live_read_takes_a_place_of_a_stream() {
    let harness = Harness::with(|config, _| config.connections = 0);
    let id = harness.launch_to_end("say a").await;
    for live in ["sse", "long-poll"] {
        let full = read(&harness, &id, &format!("?offset=-1&live={live}")).await;
        assert_eq!(full.problem(), "capacity_exhausted");
    }
    assert_eq!(read(&harness, &id, "").await.status, 200);
}
