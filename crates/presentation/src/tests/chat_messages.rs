//! The earlier messages of a chat.

use serde_json::{Value, json};

use super::harness::{Answer, Harness};

async fn say(harness: &Harness, id: &str, text: &str) -> Answer {
    let said = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    harness.post("/api/chat", &json!({"id": "c", "messages": [said]}).to_string()).await
}

async fn messages(harness: &Harness, query: &str) -> Vec<Value> {
    let answer = harness.get(&format!("/api/chat/c/messages{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/json");
    answer.json().as_array().unwrap().clone()
}

fn texts(messages: &[Value]) -> Vec<String> {
    let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    let of = |message: &Value| message["parts"].as_array().unwrap().iter().map(text).collect::<String>();
    messages.iter().map(|message| format!("{}: {}", message["role"].as_str().unwrap(), of(message))).collect()
}

#[actix_web::test]
async fn the_messages_of_a_chat_are_read_again() {
    let harness = Harness::for_chats();
    assert_eq!(messages(&harness, "").await, [] as [Value; 0], "a chat that nobody has begun");
    let run = say(&harness, "u1", "say a b").await.header("x-workflow-run-id").to_owned();
    say(&harness, "u2", "say c").await;
    let all = messages(&harness, "").await;
    assert_eq!(texts(&all), ["user: say a b", "assistant: ab", "user: say c", "assistant: c"]);
    let agent = &run["run-".len()..run.len() - "-1".len()];
    assert_eq!(all[0]["id"], format!("prompt-{agent}-1"));
    assert_eq!(all[2]["metadata"], json!({"agentId": agent, "turn": 2}));
    assert_eq!(all[3]["metadata"]["outcome"], "completed");
    assert_eq!(
        all[3]["parts"],
        json!([{"type": "step-start"}, {"type": "text", "text": "c", "state": "done"}])
    );
    let one = harness.get(&format!("/api/chat/{run}/messages")).await;
    assert_eq!(one.json().as_array().unwrap(), &all[..2], "up to an answer");
}

#[actix_web::test]
async fn a_long_chat_is_read_in_pages_from_its_end() {
    let harness = Harness::for_chats();
    for number in 1..=5 {
        say(&harness, &format!("u{number}"), &format!("say {number}")).await;
    }
    let all = messages(&harness, "").await;
    assert_eq!(messages(&harness, "?limit=2").await, all[6..]);
    assert_eq!(messages(&harness, "?limit=2&before=4").await, all[2..6]);
    assert_eq!(messages(&harness, "?limit=9&before=2").await, all[..2]);
    assert_eq!(messages(&harness, "?before=1").await, [] as [Value; 0]);
    assert_eq!(messages(&harness, "?before=99999999999").await, all);
    for wrong in ["?limit=0", "?v=8"] {
        let refused = harness.get(&format!("/api/chat/c/messages{wrong}")).await;
        assert_eq!(refused.problem(), "validation_failed", "{wrong}");
    }
}

/// Their client sends the whole conversation with its next message, which may have `chat_bytes`.
#[actix_web::test]
async fn a_long_answer_is_cut_and_says_so() {
    let harness = Harness::build(|config, _| config.chat_bytes = 1000, Some("script".to_owned()));
    let words = "0123456789 ".repeat(70);
    let streamed = say(&harness, "u1", &format!("say {words}")).await;
    say(&harness, "u2", "say b").await;
    let all = messages(&harness, "").await;
    // The two parts count 256 bytes each.
    assert_eq!(texts(&all)[1].len(), "assistant: ".len() + 480);
    assert_eq!(all[1]["metadata"]["truncated"], true);
    assert_eq!(all[1]["metadata"]["outcome"], "completed");
    assert_eq!(texts(&all)[3], "assistant: b", "only the long answer is cut");
    assert_eq!(all[3]["metadata"]["truncated"], Value::Null);
    assert_eq!(streamed.text.matches("0123456789").count(), 70, "the stream has all of it");
}
