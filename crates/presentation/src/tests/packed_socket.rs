//! Packed deltas over a WebSocket.

use serde_json::{Value, json};

use super::client::{Client, serve_ended};

/// The type of each frame, and its numbers.
fn told(frames: &[Value]) -> Vec<String> {
    let frame = |frame: &Value| {
        let payload = &frame["payload"];
        match payload["texts"].as_array() {
            Some(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| text.as_str().unwrap()).collect();
                format!("{} {}-{} {}", frame["type"], payload["from"], payload["to"], texts.join("+"))
            }
            None => format!("{} {}", frame["type"], payload["sequence"]),
        }
        .replace('"', "")
    };
    frames.iter().map(frame).collect()
}

const END: [&str; 4] = ["agent:message 5", "agent:message 6", "agent:status 6", "agent:complete 6"];

async fn subscribe(client: &mut Client, wish: Value) -> Vec<String> {
    client.say("subscribe", wish).await;
    assert_eq!(client.frame().await["type"], "subscribed");
    told(&client.frames_to_the_end().await)
}

#[actix_web::test]
async fn deltas_come_at_once_and_a_cursor_within_them_gets_the_rest() {
    let (_harness, served, id) = serve_ended("say a b c").await;
    let (mut client, _) = Client::connect(&served, "?packed=true").await;
    let packed = |first: &'static str| [&[first][..], &END].concat();
    let all = subscribe(&mut client, json!({"agentId": id, "since": 1})).await;
    assert_eq!(all, packed("agent:deltas 2-4 a+b+c"));
    let rest = subscribe(&mut client, json!({"agentId": id, "since": 3})).await;
    assert_eq!(rest, packed("agent:deltas 4-4 c"));
    let singly = ["agent:message 2", "agent:message 3", "agent:message 4"];
    for wish in ["raw", "packed"] {
        let wish = json!({"agentId": id, "since": 1, wish: wish == "raw"});
        assert_eq!(subscribe(&mut client, wish).await, [&singly[..], &END].concat());
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn one_subscription_alone_may_be_packed_and_frames_are_collected_as_ever() {
    let (_harness, served, id) = serve_ended("say a b c").await;
    let (mut client, _) = Client::connect(&served, "?batch=1").await;
    client.say("subscribe", json!({"agentId": id, "since": 1, "packed": true})).await;
    let mut frames = Vec::new();
    while frames.last().is_none_or(|frame: &Value| frame["type"] != "agent:complete") {
        let batch = client.frame().await;
        frames.extend(batch["messages"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(told(&frames[1..])[0], "agent:deltas 2-4 a+b+c");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn text_of_the_other_dialects_is_joined() {
    let (_harness, served, id) = serve_ended("say a b c").await;
    for (dialect, throttle, number) in [("message", "", 4), ("stream", "", 4), ("stream", "&throttle=1", 4)] {
        for since in [0, 2] {
            let query = format!("?packed=true&dialect={dialect}{throttle}");
            let (mut client, _) = Client::connect(&served, &query).await;
            client.say("subscribe", json!({"agentId": id, "since": since})).await;
            let text = loop {
                let frame = client.frame().await;
                let payload = &frame["payload"];
                match frame["type"].as_str().unwrap() {
                    "message.chunk" => {
                        break (payload["content"]["text"].clone(), payload["sequence"].clone());
                    }
                    "agent:stream" => break (payload["text"].clone(), payload["sequence"].clone()),
                    _ => {}
                }
            };
            let expected = if since == 0 { "abc" } else { "bc" };
            assert_eq!(text, (json!(expected), json!(number)), "{query} since {since}");
        }
    }
    served.handle.stop(false).await;
}
