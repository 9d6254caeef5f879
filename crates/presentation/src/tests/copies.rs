//! Turns as records, and agents as files.

use std::time::Duration;

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::{Served, serve};
use super::harness::{Answer, HOST, Harness, TOKEN};

async fn two_turns(harness: &Harness) -> String {
    let id = harness.launch_to_end("say one two").await;
    let sent = harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say three"}"#).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    harness.ended(&id).await;
    id
}

async fn import(harness: &Harness, file: &str) -> Answer {
    harness.post("/api/agents/import", file).await
}

#[actix_web::test]
async fn a_turn_has_a_record() {
    let harness = Harness::new();
    let id = two_turns(&harness).await;
    let list = harness.get(&format!("/api/agents/{id}/turns")).await.json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!((&list[1]["number"], &list[1]["prompt"]), (&json!(2), &json!("say three")));
    let page = harness.get(&format!("/api/agents/{id}/turns?limit=1")).await;
    assert_eq!(page.json(), json!([list[0]]));
    assert_eq!(page.header("link"), format!("</api/agents/{id}/turns?after=1&limit=1>; rel=\"next\""));

    let record = harness.get(&format!("/api/agents/{id}/turns/2")).await;
    assert_eq!((record.status.as_u16(), record.header("content-type")), (200, "application/json"));
    let record = record.json();
    for (name, value) in list[1].as_object().unwrap() {
        assert_eq!(&record[name], value, "{name}");
    }
    assert_eq!((&record["status"], &record["outcome"]), (&json!("completed"), &json!("completed")));
    assert_eq!((&record["firstSequence"], &record["lastSequence"]), (&json!(6), &json!(9)));
    assert_eq!(record["agentType"], "script");
    let result = &record["agentResult"];
    assert_eq!((&result["agentType"], &result["outcome"]), (&json!("script"), &json!("completed")));
    assert_eq!((&result["text"], &result["messageCount"]), (&json!("done"), &json!(1)));
    assert_eq!(record["rawAgentMessages"], json!(["+three", ".", "end"]));
    let chunks = record["aiSDKChunks"].as_array().unwrap();
    let kinds: Vec<_> = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("start", "finish"), "{kinds:?}");
    assert!(
        chunks.iter().any(|chunk| chunk["type"] == "text-delta" && chunk["delta"] == "three"),
        "{chunks:?}"
    );

    let events = harness.get(&format!("/api/agents/{id}/events")).await.json();
    let messages = record["messages"].as_array().unwrap();
    let types: Vec<_> = messages.iter().map(|it| it["metadata"]["eventType"].as_str().unwrap()).collect();
    assert_eq!(types, ["user_message", "message", "result"]);
    assert_eq!(messages[0]["metadata"]["parentId"], events[4]["id"], "the result of turn 1");
    assert_eq!(messages[1]["metadata"]["parentId"], messages[0]["id"]);
    assert_eq!(messages[2]["metadata"]["parentId"], messages[1]["id"]);
    let first = harness.get(&format!("/api/agents/{id}/turns/1")).await.json();
    assert_eq!(first["messages"][0]["metadata"].get("parentId"), None, "the first of all");
    assert_eq!(first["messages"].as_array().unwrap().last().unwrap()["id"], events[4]["id"]);
}

#[actix_web::test]
async fn a_turn_that_waits_or_runs_has_a_record_too() {
    let harness = Harness::new();
    let id = harness.launch("hang").await;
    harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"waits"}"#).await;
    let waits = harness.get(&format!("/api/agents/{id}/turns/2")).await.json();
    assert_eq!((&waits["status"], waits.get("agentResult")), (&json!("queued"), None));
    assert_eq!((&waits["messages"], &waits["rawAgentMessages"]), (&json!([]), &json!([])));
    let head = harness
        .call(
            TestRequest::default()
                .method(actix_web::http::Method::HEAD)
                .uri(&format!("/api/agents/{id}/turns/1")),
        )
        .await;
    assert_eq!(head.status, 200);
}

#[actix_web::test]
async fn what_is_no_turn_is_not_found() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    for n in ["0", "2", "x", "-1", "99999999999", "1.0", "+1"] {
        assert_eq!(harness.get(&format!("/api/agents/{id}/turns/{n}")).await.problem(), "not_found", "{n}");
    }
    assert_eq!(harness.get("/api/agents/x/turns").await.problem(), "not_found");
    assert_eq!(harness.get(&format!("/api/agents/{id}/turns?after=x")).await.problem(), "validation_failed");
}

#[actix_web::test]
async fn an_export_of_an_import_of_an_export_is_the_same_file() {
    let harness = Harness::new();
    let id = two_turns(&harness).await;
    let export = harness.get(&format!("/api/agents/{id}/export")).await;
    assert_eq!(export.status, 200);
    assert_eq!(export.header("content-disposition"), format!("attachment; filename=\"tokenrail-{id}.json\""));
    assert_eq!(export.text.lines().count(), 2 + 2 + 9 + 3 + 1, "a line for each turn and event");
    let file = export.json();
    assert_eq!((&file["tokenrail"], &file["agent"]["id"]), (&json!(1), &json!(id)));

    let imported = import(&harness, &export.text).await;
    assert_eq!(imported.status, 201, "{imported:?}");
    let copy = imported.json();
    let copied = copy["id"].as_str().unwrap();
    assert_ne!(copied, id);
    assert_eq!(imported.header("location"), format!("/api/agents/{copied}"));
    assert_eq!((&copy["status"], &copy["readOnly"]), (&json!("completed"), &json!(true)));
    let again = harness.get(&format!("/api/agents/{copied}/export")).await;
    assert_eq!(again.text, export.text.replace(&id, copied));

    let events = harness.get(&format!("/api/agents/{id}/events?raw=true")).await.text;
    let same = harness.get(&format!("/api/agents/{copied}/events?raw=true")).await.json();
    for (event, same) in
        serde_json::from_str::<Vec<Value>>(&events).unwrap().iter().zip(same.as_array().unwrap())
    {
        for name in ["sequenceNumber", "content", "raw", "createdAt", "type"] {
            assert_eq!(event.get(name), same.get(name));
        }
    }
    let refused = harness.post(&format!("/api/agents/{copied}/messages"), r#"{"content":"hello?"}"#).await;
    assert_eq!(refused.problem(), "agent_read_only");
}

/// A file with more fields at its end.
fn with_more(file: &str, fields: &str) -> String {
    format!("{},{fields}}}", file.trim_end().strip_suffix('}').unwrap())
}

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[actix_web::test]
async fn an_import_takes_what_its_own_export_can_carry() {
    let harness = Harness::new();
    let id = two_turns(&harness).await;
    let file = harness.get(&format!("/api/agents/{id}/export")).await.text;
    let metadata = format!(r#""metadata":{{"a":[1e308,"\ud83d\ude00",{}]}},"cwd":"#, nested(90));
    let file = with_more(&file.replacen("\"cwd\":", &metadata, 1), r#""later":{"events":[]},"more":1"#);
    let copy = import(&harness, &file).await;
    assert_eq!(copy.status, 201, "{copy:?}");
    let again =
        harness.get(&format!("/api/agents/{}/export", copy.json()["id"].as_str().unwrap())).await.text;
    assert!(again.contains(&metadata[..metadata.len() - 7]), "{again}");
    assert_eq!(import(&harness, &again).await.status, 201);
}

#[actix_web::test]
async fn a_bad_file_is_refused_and_says_where() {
    let harness = Harness::new();
    let id = two_turns(&harness).await;
    let good = harness.get(&format!("/api/agents/{id}/export")).await.text;
    let without = |from: &str, to: &str| good.replacen(from, to, 1);
    let cases = [
        (String::new(), ""),
        ("[]".to_owned(), ""),
        ("{}".to_owned(), ""),
        (without("\"tokenrail\":1", "\"tokenrail\":2"), "/tokenrail"),
        (without("\"agent\"", "\"agents\""), ""),
        (without("\"cwd\":", "\"cwt\":"), "/agent"),
        (without("\"cwd\":", "\"sessionId\":\"../x\",\"cwd\":"), "/agent"),
        (without("\"outcome\":\"completed\"", "\"outcome\":\"perfect\""), "/turns/0"),
        (without("{\"sequence\":4,", "{\"sequence\":5,"), "/events/3"),
        (without("\"content\":\"say three\"", "\"contents\":\"say three\""), "/events/5"),
        (good[..good.len() / 2].to_owned(), "/events/"),
        (format!("{good}x"), ""),
        (with_more(&good, r#""events":[]"#), "/events"),
        (with_more(&good, r#""agent":{}"#), "/agent"),
        (with_more(&good, r#""turns":[]"#), "/turns"),
        (with_more(&good, r#""tokenrail":1"#), "/tokenrail"),
        (with_more(&good, r#""a/b":1,"a/b":2"#), "/a~1b"),
        (with_more(&good, &(0..65).map(|n| format!("\"x{n}\":1")).collect::<Vec<_>>().join(",")), ""),
        (without("\"cwd\":", "\"metadata\":{\"a\":1e999},\"cwd\":"), "/agent"),
        (without("\"cwd\":", "\"metadata\":{\"a\":\"\\ud800\"},\"cwd\":"), "/agent"),
        (without("\"cwd\":", &format!("\"options\":{{\"a\":{}}},\"cwd\":", nested(100))), "/agent"),
    ];
    for (file, place) in cases {
        let refused = import(&harness, &file).await;
        assert_eq!(refused.problem(), "validation_failed", "{place}: {refused:?}");
        let pointer = refused.json()["errors"][0]["pointer"].as_str().unwrap().to_owned();
        assert!(
            pointer == place || place == "/events/" && pointer.starts_with(place),
            "{pointer}, not {place}"
        );
    }
    let agents = harness.get("/api/agents").await.json();
    assert_eq!(agents.as_array().unwrap().len(), 1, "nothing is left");
}

/// Sends a file byte for byte, and then white space until the response comes.
async fn dripped(served: &Served, file: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let (mut reading, mut writing) = socket.split();
    let head = format!(
        "POST /api/agents/import HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: 100000000\r\n\r\n{file}"
    );
    writing.write_all(head.as_bytes()).await.unwrap();
    let dripping = async {
        while writing.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut status = [0; 12];
    tokio::select! {
        read = tokio::time::timeout(Duration::from_secs(20), reading.read_exact(&mut status)) => {
            read.expect("it is answered").unwrap();
        }
        () = dripping => {}
    }
    String::from_utf8(status.to_vec()).unwrap()
}

#[actix_web::test]
async fn a_file_that_comes_byte_for_byte_does_not_keep_its_place() {
    // First the pace is too slow, then the total time is too long.
    for (body_ms, import_ms) in [(200, 600_000), (20_000, 200)] {
        let harness = Harness::with(|config, limits| {
            config.body_timeout = Duration::from_millis(body_ms);
            config.import_timeout = Duration::from_millis(import_ms);
            limits.admission.imports = 1;
        });
        let id = two_turns(&harness).await;
        let file = harness.get(&format!("/api/agents/{id}/export")).await.text;
        let served = serve(&harness);
        assert_eq!(dripped(&served, &file[..file.len() / 2]).await, "HTTP/1.1 408");
        assert_eq!(import(&harness, &file).await.status, 201, "its place is free again");
        served.handle.stop(false).await;
    }
}

#[actix_web::test]
async fn an_import_is_bounded() {
    let harness = Harness::with(|config, _| config.import_event_bytes = 1500);
    let id = harness.launch_to_end(&format!("say {}", "x".repeat(4000))).await;
    let file = harness.get(&format!("/api/agents/{id}/export")).await.text;
    assert_eq!(import(&harness, &file).await.problem(), "validation_failed");

    let harness = Harness::with(|config, _| config.import_bytes = 3000);
    assert_eq!(import(&harness, &file).await.problem(), "payload_too_large");
    let not_json = harness.call(TestRequest::post().uri("/api/agents/import").set_payload(file)).await;
    assert_eq!(not_json.problem(), "unsupported_media_type");
    assert_eq!(harness.get("/api/agents?deleted=true").await.json(), json!([]));
}

#[actix_web::test]
async fn an_agent_is_played_again() {
    let harness = Harness::new();
    let id = two_turns(&harness).await;
    let path = format!("/api/agents/{id}/replay");
    let played = harness.post(&path, r#"{"speed":0}"#).await;
    assert_eq!(played.status, 201, "{played:?}");
    let agent = played.json();
    assert_eq!((&agent["readOnly"], &agent["replayOf"]), (&json!(true), &json!(id)));
    let copy = agent["id"].as_str().unwrap();
    harness.ended(copy).await;
    let texts = |events: Value| -> Vec<Value> {
        events
            .as_array()
            .unwrap()
            .iter()
            .map(|it| json!([it["sequenceNumber"], it["content"], it["raw"]]))
            .collect()
    };
    let original = texts(harness.get(&format!("/api/agents/{id}/events?raw=true")).await.json());
    assert_eq!(texts(harness.get(&format!("/api/agents/{copy}/events?raw=true")).await.json()), original);
    for speed in ["-1", "1001", "\"fast\"", "null"] {
        let refused = harness.post(&path, &format!("{{\"speed\":{speed}}}")).await;
        assert_eq!(refused.problem(), "validation_failed", "{speed}");
    }
    let whole = harness.call(TestRequest::post().uri(&path)).await;
    assert_eq!(whole.status, 201, "without a body as fast as it was");
}

#[actix_web::test]
async fn of_an_agent_that_runs_the_turns_that_have_ended_are_copied() {
    let harness = Harness::new();
    let id = two_turns(&harness).await;
    let path = format!("/api/agents/{id}/export");
    let before = harness.get(&path).await;
    for content in ["hang", "waits"] {
        let sent = format!("{{\"content\":\"{content}\"}}");
        assert_eq!(harness.post(&format!("/api/agents/{id}/messages"), &sent).await.status, 202);
    }
    // Wait until the running turn has an event.
    while harness.get(&format!("/api/agents/{id}")).await.json()["head"].as_u64() < Some(10) {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.get(&path).await.text, before.text, "the same file as before they were asked for");
    let copy = import(&harness, &before.text).await.json();
    assert_eq!((&copy["status"], &copy["head"]), (&json!("completed"), &json!(9)));
    let replay = harness.post(&format!("/api/agents/{id}/replay"), "{\"speed\":0}").await.json();
    let replay = replay["agentId"].as_str().unwrap();
    harness.ended(replay).await;
    let played = harness.get(&format!("/api/agents/{replay}")).await.json();
    assert_eq!((&played["status"], &played["head"]), (&json!("completed"), &json!(9)));
}

#[actix_web::test]
async fn an_agent_whose_first_turn_has_not_ended_is_not_copied() {
    let harness = Harness::new();
    let id = harness.launch("hang").await;
    assert_eq!(harness.get(&format!("/api/agents/{id}/export")).await.problem(), "agent_active");
    assert_eq!(harness.post(&format!("/api/agents/{id}/replay"), "{}").await.problem(), "agent_active");
}
