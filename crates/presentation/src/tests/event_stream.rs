//! Server-sent events.

use actix_web::test::TestRequest;

use super::harness::{Answer, Harness};

async fn stream(harness: &Harness, id: &str, query: &str, last_event_id: Option<&str>) -> Answer {
    let request = TestRequest::get().uri(&format!("/api/agents/{id}/events{query}"));
    let request = request.insert_header(("accept", "text/event-stream"));
    harness
        .call(match last_event_id {
            Some(cursor) => request.insert_header(("last-event-id", cursor)),
            None => request,
        })
        .await
}

/// The ids of the events. The block before them contains the cursor.
fn ids(answer: &Answer) -> Vec<&str> {
    let blocks = answer.text.split("\n\n").filter(|block| block.contains("\ndata: "));
    blocks.map(|block| block.strip_prefix("id: ").unwrap().split('\n').next().unwrap()).collect()
}

#[actix_web::test]
async fn a_stream_gives_every_event_and_ends_with_the_agent() {
    let harness = Harness::new();
    let id = harness.launch("say a b").await;
    let answer = stream(&harness, &id, "", None).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("cache-control"), "no-cache, no-transform");
    assert_eq!(answer.header("x-accel-buffering"), "no");
    assert!(
        answer.text.starts_with("retry: 1000\nid: 0\n:\n\nid: 1\nevent: user_message\ndata: {\"id\":"),
        "{answer:?}"
    );
    assert_eq!(ids(&answer), ["1", "2", "3", "4", "5"]);
    let names: Vec<_> = answer.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["user_message", "content_delta", "content_delta", "message", "result"]);
    assert!(!answer.text.contains('\r'));
}

#[actix_web::test]
async fn a_stream_goes_on_after_the_last_event_id() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b").await;
    assert_eq!(ids(&stream(&harness, &id, "?since=3", None).await), ["4", "5"]);
    assert_eq!(ids(&stream(&harness, &id, "?since=1", Some("4")).await), ["5"], "Last-Event-ID wins");
    let end = stream(&harness, &id, "", Some("5")).await;
    assert_eq!((end.status.as_u16(), &end.text[..]), (204, ""), "an EventSource stops only then");
}

#[actix_web::test]
async fn the_first_block_has_the_cursor_so_that_who_hears_no_event_comes_back_there() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b").await;
    for (query, last_event_id, cursor) in
        [("", None, "0"), ("?since=3", None, "3"), ("?since=3", Some("4"), "4")]
    {
        let answer = stream(&harness, &id, query, last_event_id).await;
        assert!(answer.text.starts_with(&format!("retry: 1000\nid: {cursor}\n:\n\n")), "{answer:?}");
    }
}

#[actix_web::test]
async fn an_unnamed_stream_is_the_same_without_names() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b").await;
    for raw in ["", "&raw=true"] {
        let named = stream(&harness, &id, &format!("?since=0{raw}"), None).await;
        let unnamed = stream(&harness, &id, &format!("?unnamed=true{raw}"), None).await;
        let without: Vec<_> = named.text.lines().filter(|line| !line.starts_with("event: ")).collect();
        assert_eq!(unnamed.text.lines().collect::<Vec<_>>(), without);
        assert_eq!(ids(&unnamed), ["1", "2", "3", "4", "5"]);
        assert!(named.text.contains("\nevent: result\n"));
    }
    assert_eq!(stream(&harness, &id, "?unnamed=off", None).await.problem(), "validation_failed");
}

#[actix_web::test]
async fn a_bad_cursor_is_refused_before_the_stream_begins() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    for cursor in ["", "x", "-1", "+1", "1.5", "18446744073709551616"] {
        let answer = stream(&harness, &id, "", Some(cursor)).await;
        assert_eq!(answer.problem(), "cursor_malformed", "{cursor}");
    }
    let ahead = stream(&harness, &id, "?since=5", None).await;
    assert_eq!((ahead.problem(), &ahead.json()["head"]), ("cursor_ahead".to_owned(), &4.into()));
}

#[actix_web::test]
async fn packed_deltas_have_the_number_of_the_last_one_and_can_be_resumed_within() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b c").await;
    let packed = stream(&harness, &id, "?packed=true", None).await;
    assert_eq!(ids(&packed), ["1", "4", "5", "6"]);
    assert!(packed.text.contains("\nevent: deltas\ndata: {\"agentId\":"), "{packed:?}");
    assert!(packed.text.contains("\"from\":2,\"to\":4,"), "{packed:?}");
    for (query, last_event_id) in [("?packed=true&since=2", None), ("?packed=true", Some("2"))] {
        let rest = stream(&harness, &id, query, last_event_id).await;
        assert_eq!(ids(&rest), ["4", "5", "6"]);
        assert!(rest.text.contains("\"from\":3,\"to\":4,"), "{rest:?}");
    }
    let unnamed = stream(&harness, &id, "?packed=true&unnamed=true", None).await;
    assert!(unnamed.text.contains("id: 4\ndata: {\"agentId\":"), "{unnamed:?}");
    let raw = stream(&harness, &id, "?packed=true&raw=true", None).await;
    assert_eq!(ids(&raw), ["1", "2", "3", "4", "5", "6"], "raw lines belong to one event each");
}

#[actix_web::test]
async fn packed_pages_have_the_same_cursors() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b c").await;
    let numbers = async |query: &str| {
        let answer = harness.get(&format!("/api/agents/{id}/events?packed=true{query}")).await;
        let items = answer.json();
        let number = |item: &serde_json::Value| match item["to"].as_u64() {
            Some(to) => (item["from"].as_u64().unwrap(), to),
            None => (item["sequenceNumber"].as_u64().unwrap(), item["sequenceNumber"].as_u64().unwrap()),
        };
        let numbers: Vec<_> = items.as_array().unwrap().iter().map(number).collect();
        (numbers, answer.header("tokenrail-up-to").to_owned())
    };
    assert_eq!(numbers("").await, (vec![(1, 1), (2, 4), (5, 5), (6, 6)], "6".into()));
    assert_eq!(numbers("&since=2").await, (vec![(3, 4), (5, 5), (6, 6)], "6".into()));
    assert_eq!(numbers("&limit=3").await, (vec![(1, 1), (2, 3)], "3".into()), "a limit counts events");
    assert_eq!(numbers("&raw=true").await.0.len(), 6);
    let wrong = harness.get(&format!("/api/agents/{id}/events?packed=1")).await;
    assert_eq!(wrong.status, 422);
}

#[actix_web::test]
async fn a_stream_whose_journal_cannot_be_read_breaks_off_instead_of_ending() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let path = format!("/api/agents/{id}/events");
    harness.store.refuse_reads(1);
    assert!(harness.breaks_off(&path).await);
    assert!(!harness.breaks_off(&path).await);
}
