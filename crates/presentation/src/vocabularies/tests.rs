//! A small vocabulary. It proves that a vocabulary is a folder, here `telegraph/`, a `mod` line, and an entry in
//! [`FOREIGN`]. One with paths outside `/api/` or with a WebSocket is also listed in a few other places:
//! `docs/how-to/add-a-vocabulary.md` names them.
//!
//! [`FOREIGN`]: super::FOREIGN

pub(super) mod telegraph;

use std::sync::Arc;

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use tokenrail_application::{AfterLastTurn, Next, Page, Rendering};
use tokenrail_domain::Sequence;

use self::telegraph::fold::TelegraphFold;
use super::native::EventWriting;
use crate::blocks::BlockWriter;
use crate::fold::{Begins, Fold as _, written};
use crate::tests::harness::{HOST, Harness};
use crate::vocabularies::native::Detail;

#[actix_web::test]
async fn a_vocabulary_is_served_behind_the_guard() {
    let harness = Harness::new();
    let id = harness.launch("say a b").await;
    harness.ended(&id).await;
    let told = harness.get(&format!("/telegraph/{id}")).await;
    assert_eq!((told.status.as_u16(), told.header("content-type")), (200, "text/event-stream"));
    let blocks =
        ["id: 4\nevent: telegram\ndata: {\"text\":\"AB\"}", "id: 5\nevent: stop\ndata: {\"letters\":2}"];
    assert_eq!(told.text.trim_end().split("\n\n").collect::<Vec<_>>(), blocks);
    let stranger = TestRequest::get().uri(&format!("/telegraph/{id}")).insert_header(("host", HOST));
    assert_eq!(harness.call_raw(stranger).await.status, 401);
    let other = harness.post(&format!("/telegraph/{id}"), "{}").await;
    assert_eq!((other.status.as_u16(), other.header("allow")), (405, "GET"));
    assert_eq!(harness.get("/telegraph/x").await.problem(), "not_found");
}

#[actix_web::test]
async fn its_frames_are_a_list_in_the_record_of_a_turn() {
    let harness = Harness::new();
    let id = harness.launch("say a b").await;
    harness.ended(&id).await;
    let record = harness.get(&format!("/api/agents/{id}/turns/1")).await.json();
    assert_eq!(record["telegrams"], json!([{"text": "AB"}, {"letters": 2}]));
    assert!(record["aiSDKChunks"].as_array().is_some_and(|chunks| !chunks.is_empty()));
}

#[actix_web::test]
async fn it_is_in_the_openapi_document_with_the_problems_of_its_kind() {
    let document = Harness::new().get("/openapi.json").await.json();
    let get = &document["paths"]["/telegraph/{id}"]["get"];
    let text = |status: &str| get["responses"][status]["description"].as_str().unwrap_or_default();
    assert!(text("401").contains("`unauthenticated`") && text("404").contains("`not_found`"), "{get}");
    assert!(document["paths"]["/api/agents"].is_object());
}

async fn pages(harness: &Harness, id: &str) -> Vec<Page> {
    let (_, mut follower) =
        harness.service.follow(id.parse().unwrap(), Some(Sequence::START), AfterLastTurn::End).await.unwrap();
    let mut pages = Vec::new();
    while let Next::Page(page) = follower.next().await.unwrap() {
        pages.push(page);
    }
    pages
}

#[actix_web::test]
async fn its_followers_share_what_is_written_and_no_other_vocabulary_gets_it() {
    let harness = Harness::new();
    let id = harness.launch("say a b").await;
    // A follower keeps the newest batches in memory.
    let _keeper = harness.service.follow(id.parse().unwrap(), None, AfterLastTurn::Wait).await.unwrap();
    harness.ended(&id).await;
    let (first, second) = (pages(&harness, &id).await, pages(&harness, &id).await);
    assert!(first.iter().zip(&second).all(|(one, other)| Arc::ptr_eq(&one.batch, &other.batch)));
    let told = |pages: &[Page]| -> Vec<_> {
        let mut fold = TelegraphFold::default();
        assert_eq!(fold.begins(), Begins::WithTurn);
        let write = |fold: &mut TelegraphFold, events: &[tokenrail_domain::Event]| {
            let mut out = BlockWriter::default();
            let end = |event| {
                fold.event(event, &mut out);
                out.len()
            };
            let ends = events.iter().map(end).collect();
            Rendering { bytes: out.take(), ends }
        };
        pages.iter().map(|page| written(&mut fold, 0, page, write)).collect()
    };
    let native = |pages: &[Page]| -> Vec<_> {
        let mut writing = EventWriting::new(id.parse().unwrap(), Detail::Plain, true);
        pages.iter().map(|page| writing.of(page)).collect()
    };
    let (telegrams, events) = (told(&first), native(&first));
    for (page, (telegram, event)) in telegrams.iter().zip(&events).enumerate() {
        assert!(!event.is_empty() && telegram != event);
        let again = (&told(&second)[page], &native(&second)[page]);
        assert_eq!((again.0, again.1), (telegram, event));
        assert_eq!((again.0.as_ptr(), again.1.as_ptr()), (telegram.as_ptr(), event.as_ptr()), "written once");
    }
    let all: Vec<u8> = telegrams.concat();
    let data = String::from_utf8(all).unwrap();
    let data = data.lines().filter_map(|line| line.strip_prefix("data: "));
    let data: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(data, [json!({"text": "AB"}), json!({"letters": 2})]);
}
