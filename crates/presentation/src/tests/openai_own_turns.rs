//! Conversations of OpenAI's clients with an agent that also begins turns by itself.

use actix_web::test::TestRequest;
use serde_json::json;

use super::harness::Harness;
use super::openai::{RESPONSES, create, id, refused, retrieved, said, text};

#[actix_web::test]
async fn a_conversation_goes_on_after_turns_that_the_agent_began_by_itself() {
    let harness = Harness::new();
    let first = said(&harness, &json!({"model": "script", "input": "say a alone b alone c"})).await;
    assert_eq!(text(&first), "a");
    harness.ended(harness.get("/api/agents").await.json()[0]["agentId"].as_str().unwrap()).await;
    let named = json!({"previous_response_id": first["id"], "input": "say d alone e"});
    let second = said(&harness, &named).await;
    assert_eq!(text(&second), "d");
    let own = retrieved(&harness, second["previous_response_id"].as_str().unwrap()).await;
    assert_eq!((text(&own), &own["status"]), ("c".into(), &json!("completed")));
    assert_eq!(refused(&create(&harness, &named).await).0, 400, "it is not sent twice");
    let again = TestRequest::post().uri(RESPONSES).insert_header(("x-stainless-retry-count", "1"));
    let again = again.insert_header(("content-type", "application/json")).set_payload(named.to_string());
    assert_eq!(harness.call(again).await.json()["id"], second["id"], "a retry is no second message");

    // A client without a memory of ids repeats the items.
    let mut items = vec![json!({"role": "user", "content": "say a"})];
    items.extend(second["output"].as_array().unwrap().iter().cloned());
    items.push(json!({"role": "user", "content": "say f alone g"}));
    let third = said(&harness, &json!({ "input": items })).await;
    assert_eq!(text(&third), "f");

    let delete = async |id: &str| harness.call(TestRequest::delete().uri(&format!("{RESPONSES}/{id}"))).await;
    let statuses = [delete(id(&second)).await, delete(id(&third)).await].map(|answer| answer.status.as_u16());
    assert_eq!(statuses, [400, 200], "the third one is the newest of the client");
}

/// Each message is sent while the agent begins turns of its own, and takes the places after them.
#[actix_web::test]
async fn messages_find_their_places_while_the_agent_begins_turns() {
    let harness = Harness::new();
    let mut newest = said(&harness, &json!({"model": "script", "input": "say a alone b"})).await;
    let mut messages = vec![id(&newest).to_owned()];
    let prompt = format!("say c{}", " alone d".repeat(30));
    for _ in 0..100 {
        let named = json!({"previous_response_id": newest["id"], "input": prompt});
        let answer = create(&harness, &named).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        newest = answer.json();
        assert_eq!(text(&newest), "c");
        messages.push(id(&newest).to_owned());
    }
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), 101, "no two are the same turn");
}
