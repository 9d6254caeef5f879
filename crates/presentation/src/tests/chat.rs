//! Chats of the AI SDK over HTTP.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::{Answer, Harness};

/// A message of the user, as the SDK sends it.
fn body(chat: &str, id: &str, text: &str) -> Value {
    let said = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    json!({"id": chat, "messages": [said], "trigger": "submit-message"})
}

async fn say(harness: &Harness, chat: &str, id: &str, text: &str) -> Answer {
    harness.post("/api/chat", &body(chat, id, text).to_string()).await
}

fn chunks(answer: &Answer) -> Vec<Value> {
    let lines = answer.text.lines().filter_map(|line| line.strip_prefix("data: {"));
    lines.map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap()).collect()
}

fn outline(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

fn tail_index(answer: &Answer) -> &str {
    answer.header("x-workflow-stream-tail-index")
}

#[actix_web::test]
async fn a_chat_is_an_agent_and_each_message_a_turn_of_it() {
    let harness = Harness::for_chats();
    let first = say(&harness, "c 1/ä", "u1", "say a b").await;
    assert_eq!(first.status, 200, "{first:?}");
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-vercel-ai-ui-message-stream", "v1"),
    ] {
        assert_eq!(first.header(name), value);
    }
    assert!(first.text.starts_with(": stream-open\n\ndata: {\"type\":\"start\",\"messageId\":"), "{first:?}");
    assert!(first.text.ends_with("\n\ndata: [DONE]\n\n") && !first.text.contains('\r'));
    let told = chunks(&first);
    let whole = [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ];
    assert_eq!(outline(&told), whole);
    let agent = told[0]["messageMetadata"]["agentId"].as_str().unwrap();
    assert_eq!(first.header("x-workflow-run-id"), format!("run-{agent}-1"));
    assert_eq!(say(&harness, "c 1/ä", "u1", "say a b").await.text, first.text, "answered once");

    let second = chunks(&say(&harness, "c 1/ä", "u2", "say c").await);
    assert_eq!(second[0]["messageMetadata"], json!({"agentId": agent, "turn": 2}));
    assert_ne!(second[0]["messageId"], told[0]["messageId"]);
    assert_eq!(harness.get(&format!("/api/agents/{agent}")).await.json()["type"], "script", "the default");
    let other = chunks(&say(&harness, "c2", "u1", "say a b").await);
    assert_ne!(other[0]["messageMetadata"]["agentId"], agent);
}

#[actix_web::test]
async fn an_edited_message_and_a_second_try_are_turns_of_their_own() {
    let harness = Harness::for_chats();
    assert_eq!(turn(&say(&harness, "c", "u1", "say a").await), 1);
    assert_eq!(turn(&say(&harness, "c", "u1", "say b").await), 2, "edited: the same id, and another text");
    let mut again = body("c", "u1", "say b");
    again["trigger"] = "regenerate-message".into();
    again["messageId"] = "m7".into();
    for _ in 0..2 {
        assert_eq!(turn(&harness.post("/api/chat", &again.to_string()).await), 3, "of this answer, once");
    }
    again.as_object_mut().unwrap().remove("messageId");
    assert_eq!(turn(&harness.post("/api/chat", &again.to_string()).await), 4);
    assert_eq!(turn(&harness.post("/api/chat", &again.to_string()).await), 5);
}

fn turn(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{answer:?}");
    chunks(answer)[0]["messageMetadata"]["turn"].as_u64().unwrap()
}

#[actix_web::test]
async fn a_message_of_the_user_is_answered_as_often_as_it_is_asked_for() {
    let harness = Harness::for_chats();
    assert_eq!(turn(&say(&harness, "c", "u1", "say a").await), 1);
    let mut again = body("c", "u2", "say b");
    again["trigger"] = "regenerate-message".into();
    for (of, number) in [("u2", 2), ("u2", 3), ("u2", 4), ("m4", 5), ("m4", 5), ("u2", 6)] {
        again["messageId"] = of.into();
        assert_eq!(turn(&harness.post("/api/chat", &again.to_string()).await), number, "{of}");
    }
    let earlier = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "say a"}]});
    again["messages"].as_array_mut().unwrap().insert(0, earlier);
    again["messageId"] = "u1".into();
    for number in 7..9 {
        let answer = harness.post("/api/chat", &again.to_string()).await;
        assert_eq!(
            turn(&answer),
            number,
            "by an earlier message, of a client that sends what came after it too"
        );
    }
}

#[actix_web::test]
async fn only_the_newest_message_is_the_same_when_it_comes_again() {
    let harness = Harness::for_chats();
    let versions = ["say a", "say b", "say b", "say a", "say a", "say b"];
    let mut turns = Vec::new();
    for text in versions {
        let answer = say(&harness, "c", "u1", text).await;
        assert_eq!(chunks(&answer)[3]["delta"], text[4..], "the answer to this text");
        turns.push(turn(&answer));
    }
    assert_eq!(turns, [1, 2, 2, 3, 3, 4], "edited, and edited back");
}

#[actix_web::test]
async fn a_client_without_a_chat_id_goes_on_by_its_own_messages() {
    let harness = Harness::for_chats();
    let mut wish = body("c", "u1", "say a");
    wish.as_object_mut().unwrap().remove("id");
    // This client sends no content type either.
    let post = async |wish: &Value| {
        harness.call(TestRequest::post().uri("/api/chat").set_payload(wish.to_string())).await
    };
    let answer = post(&wish).await;
    let first = chunks(&answer);
    let metadata = first[0]["messageMetadata"].clone();
    assert_eq!(metadata["turn"], 1);
    assert_eq!(post(&wish).await.text, answer.text, "the same message again is answered once");
    let beginning = wish.clone();
    wish["messages"] = json!([
        {"id": "u1", "role": "user", "parts": []},
        {"id": "a1", "role": "assistant", "parts": [], "metadata": metadata},
        {"id": "u2", "role": "user", "content": "say b"},
    ]);
    let second = chunks(&post(&wish).await);
    assert_eq!(second[0]["messageMetadata"], json!({"agentId": metadata["agentId"], "turn": 2}));
    let anew = chunks(&post(&beginning).await);
    assert_ne!(anew[0]["messageMetadata"]["agentId"], metadata["agentId"], "said again, and later: meant");
    wish["messages"][1]["metadata"]["agentId"] = "0195bd2f-0a00-7000-8000-000000000000".into();
    let third = chunks(&post(&wish).await);
    assert_eq!(third[0]["messageMetadata"]["turn"], 1, "said elsewhere: a new conversation");
    let nameless = json!({"messages": [{"role": "user", "content": "say a"}]});
    let agents = [chunks(&post(&nameless).await), chunks(&post(&nameless).await)];
    let agents = agents.map(|told| told[0]["messageMetadata"]["agentId"].clone());
    assert_ne!(agents[0], agents[1], "a message without an id is meant each time");
}

#[actix_web::test]
async fn an_answer_is_replayed_from_any_chunk_on() {
    let harness = Harness::for_chats();
    let first = say(&harness, "c", "u1", "say a b").await;
    let all = chunks(&first);
    let run = first.header("x-workflow-run-id").to_owned();
    let get = async |id: &str, query: &str| harness.get(&format!("/api/chat/{id}/stream{query}")).await;

    assert_eq!(get("c", "").await.status, 204, "nothing is being answered");
    assert_eq!(get("unknown", "").await.status, 204);
    assert_eq!(get("unknown", "?startIndex=0").await.problem(), "not_found");
    assert_eq!(get(&run, "").await.text, first.text, "an answer that has ended");
    for from in 0..=all.len() {
        for id in [&run[..], "c"] {
            let rest = get(id, &format!("?startIndex={from}")).await;
            assert_eq!(chunks(&rest), all[from..], "{id} {from}");
            assert_eq!(rest.header("x-workflow-run-id"), run);
        }
    }
    let last = get(&run, "?startIndex=-3").await;
    assert_eq!((&chunks(&last)[..], tail_index(&last)), (&all[all.len() - 3..], "7"));
    assert_eq!(chunks(&get(&run, "?startIndex=-99").await), all);
    for wrong in ["x", "1.5", ""] {
        let problem = get(&run, &format!("?startIndex={wrong}")).await;
        assert_eq!(problem.problem(), "validation_failed");
    }
    assert_eq!(get(&format!("{run}9"), "").await.problem(), "not_found", "no such turn");
}

#[actix_web::test]
async fn a_client_that_names_its_version_gets_what_it_takes() {
    let harness = Harness::for_chats();
    for (version, reason) in [("5", Value::Null), ("6", "stop".into()), ("7", "stop".into())] {
        let uri = format!("/api/chat?v={version}");
        let answer = harness.post(&uri, &body("c", "u1", "say a").to_string()).await;
        let run = answer.header("x-workflow-run-id").to_owned();
        assert!(run.ends_with(&format!("-1-v{version}")), "{run}");
        assert_eq!(chunks(&answer).last().unwrap()["finishReason"], reason);
        let replay = harness.get(&format!("/api/chat/{run}/stream")).await;
        assert_eq!(replay.text, answer.text, "the id of an answer knows the version");
    }
    for uri in ["/api/chat?v=8", "/api/chat?v="] {
        assert_eq!(
            harness.post(uri, &body("c", "u", "say a").to_string()).await.problem(),
            "validation_failed"
        );
    }
}

#[actix_web::test]
async fn a_stop_ends_what_is_being_answered() {
    let harness = Harness::for_chats();
    let stop = async |id: &str| harness.post(&format!("/api/chat/{id}/stop"), "").await;
    assert_eq!(stop("c").await.problem(), "not_found");
    let (answer, stopped) = tokio::join!(say(&harness, "c", "u1", "hang"), async {
        loop {
            let stopped = stop("c").await;
            if stopped.status != 404 {
                return stopped;
            }
        }
    });
    assert_eq!(stopped.status, 202);
    let told = chunks(&answer);
    assert_eq!(outline(&told)[told.len() - 2..], ["abort", "finish"]);
    assert_eq!(told.last().unwrap()["messageMetadata"]["outcome"], "cancelled");
    assert_eq!(stop("c").await.status, 202, "again: the same answer");
    assert_eq!(stop(answer.header("x-workflow-run-id")).await.status, 202);
}

#[actix_web::test]
async fn a_request_that_cannot_be_answered_says_what_is_wrong() {
    let harness = Harness::for_chats();
    let user = |parts: Value| json!({"id": "c", "messages": [{"id": "u", "role": "user", "parts": parts}]});
    let wrong = [
        (json!({"id": "c"}), "/messages"),
        (json!({"id": "c", "messages": []}), "/messages"),
        (json!({"id": "c", "messages": "hello"}), "/messages"),
        (json!({"id": "c", "messages": [{"role": "assistant", "parts": []}]}), "/messages"),
        (json!({"id": "", "messages": []}), "/id"),
        (json!({"id": "x".repeat(256), "messages": []}), "/id"),
        (json!({"id": "c", "messages": [], "trigger": "resume-stream"}), "/trigger"),
        (user(json!([])), "/messages/0"),
        (user(json!([{"type": "text", "text": " \n"}])), "/messages/0"),
        (user(json!([{"type": "text", "text": "a"}, {"type": "file", "url": "data:,b"}])), "/messages/0"),
    ];
    for (body, place) in wrong {
        let answer = harness.post("/api/chat", &body.to_string()).await;
        assert_eq!(answer.problem(), "validation_failed", "{body}");
        assert_eq!(answer.json()["errors"][0]["pointer"], place, "{body}");
    }
    assert_eq!(harness.post("/api/chat", "{").await.problem(), "malformed_json");
    let form = TestRequest::post().uri("/api/chat").insert_header(("content-type", "text/html"));
    assert_eq!(harness.call(form.set_payload("{}")).await.problem(), "unsupported_media_type");
    assert_eq!(harness.get("/api/chat").await.problem(), "upgrade_required");
    let nameless = Harness::new();
    let answer = say(&nameless, "c", "u", "say a").await;
    assert_eq!(answer.problem(), "validation_failed", "no type is the default");
    let null = json!({"id": "c", "messages": body("c", "u", "say a")["messages"], "messageId": null});
    assert_eq!(harness.post("/api/chat", &null.to_string()).await.status, 200, "null is nothing");
}

#[actix_web::test]
async fn launches_by_chats_are_counted_and_messages_are_not() {
    let harness =
        Harness::build(|_, limits| limits.admission.launches_per_minute = 1, Some("script".to_owned()));
    assert_eq!(say(&harness, "c", "u1", "say a").await.status, 200);
    for id in ["u1", "u2", "u3"] {
        assert_eq!(say(&harness, "c", id, "say a").await.status, 200);
    }
    assert_eq!(say(&harness, "c2", "u1", "say a").await.problem(), "rate_limited");
}

/// Whether a turn has begun when it is first read depends on timing. The answer must not.
#[actix_web::test]
async fn an_answer_is_whole_however_early_it_is_asked_for() {
    let harness = Harness::for_chats();
    for chat in 0..50 {
        let answer = say(&harness, &format!("c{chat}"), "u1", "say a b").await;
        assert_eq!(outline(&chunks(&answer)).len(), 8, "{answer:?}");
    }
}
