//! What OpenAI's clients see of chat completions.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::{Answer, Harness};

const COMPLETIONS: &str = "/openai/v1/chat/completions";

fn request(body: &Value) -> TestRequest {
    let post = TestRequest::post().uri(COMPLETIONS).insert_header(("content-type", "application/json"));
    post.set_payload(body.to_string())
}

/// The body of a request whose last message is `prompt`.
fn saying(earlier: &[(&str, &str)], prompt: &str) -> Value {
    let mut messages: Vec<_> =
        earlier.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    messages.push(json!({"role": "user", "content": prompt}));
    json!({"model": "script", "messages": messages})
}

/// A request of one conversation, after so many tries that got no response.
fn ask(body: &Value, tries: &'static str) -> TestRequest {
    request(body).insert_header(("x-conversation-id", "c1")).insert_header(("x-stainless-retry-count", tries))
}

async fn said(harness: &Harness, request: TestRequest) -> Value {
    let answer = harness.call(request).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/json"),
        "{answer:?}"
    );
    answer.json()
}

fn text(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{completion}"))
}

/// The chunks of a stream, with their numbers. Checks that it ends as clients expect.
fn chunks(answer: &Answer) -> Vec<(u64, Value)> {
    assert_eq!(answer.header("content-type"), "text/event-stream", "{answer:?}");
    let mut blocks: Vec<_> =
        answer.text.split_terminator("\n\n").filter(|block| !block.starts_with(':')).collect();
    assert_eq!(blocks.pop(), Some("data: [DONE]"));
    let chunk = |block: &str| {
        let (id, data) = block.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
        (id.parse().unwrap(), serde_json::from_str(data).unwrap())
    };
    blocks.into_iter().map(chunk).collect()
}

/// The number of agents.
async fn agents(harness: &Harness) -> usize {
    harness.get("/api/agents").await.json().as_array().unwrap().len()
}

/// The prompts of the only agent.
async fn prompts(harness: &Harness) -> Vec<String> {
    let id = harness.get("/api/agents").await.json()[0]["agentId"].as_str().unwrap().to_owned();
    let turns = harness.get(&format!("/api/agents/{id}/turns")).await.json();
    let mut prompts = Vec::new();
    for turn in turns.as_array().unwrap() {
        prompts.push(turn["prompt"].as_str().unwrap().to_owned());
    }
    prompts
}

fn param(answer: &Answer) -> (u16, Option<String>) {
    (answer.status.as_u16(), answer.json()["error"]["param"].as_str().map(str::to_owned))
}

#[actix_web::test]
async fn a_completion_is_whole_and_stays() {
    let harness = Harness::new();
    let mut body = saying(&[], "say a b");
    body["model"] = json!("script/small");
    let whole = said(&harness, request(&body)).await;
    assert_eq!((text(&whole), &whole["object"]), ("ab", &json!("chat.completion")));
    assert_eq!((&whole["model"], &whole["choices"][0]["finish_reason"]), (&body["model"], &json!("stop")));
    assert_eq!(whole.get("error"), None);
    let path = format!("{COMPLETIONS}/{}", whole["id"].as_str().unwrap());
    assert_eq!(harness.get(&path).await.json(), whole);
    let deleted = harness.call(TestRequest::delete().uri(&path)).await.json();
    assert_eq!(deleted, json!({"id": whole["id"], "object": "chat.completion.deleted", "deleted": true}));
    assert_eq!(param(&harness.get(&path).await), (404, None));
}

#[actix_web::test]
async fn a_stream_continues_after_every_chunk() {
    let harness = Harness::new();
    let mut body = saying(&[], "say a b 🦀");
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let streamed = harness.call(request(&body)).await;
    let all = chunks(&streamed);
    let delta = |name: &str| -> String {
        all.iter().filter_map(|(_, chunk)| chunk["choices"][0]["delta"][name].as_str()).collect()
    };
    assert_eq!((delta("role"), delta("content")), ("assistant".into(), "ab🦀".into()));
    let (_, usage) = all.last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert!(usage["usage"]["total_tokens"].is_u64(), "{usage}");
    assert_eq!(all[all.len() - 2].1["choices"][0]["finish_reason"], "stop");
    let path = format!("{COMPLETIONS}/{}?stream=true&include_usage=true", usage["id"].as_str().unwrap());
    assert_eq!(harness.get(&path).await.text, streamed.text, "byte for byte");
    for (at, (number, _)) in all.iter().enumerate() {
        assert_eq!(*number, at as u64);
        let rest = harness.get(&format!("{path}&starting_after={number}")).await;
        assert_eq!(chunks(&rest), all[at + 1..], "after {number}");
    }
    let (last, without_usage) = (all.len() - 1, path.replace("&include_usage=true", ""));
    assert_eq!(chunks(&harness.get(&format!("{without_usage}&starting_after={last}")).await), []);
    for number in [last as u64 + 1, u64::MAX] {
        for path in [&path, &without_usage] {
            let ahead = harness.get(&format!("{path}&starting_after={number}")).await;
            assert_eq!(
                param(&ahead),
                (409, Some("starting_after".into())),
                "no [DONE] that says it is whole"
            );
            assert_eq!(ahead.json()["error"]["code"], "cursor_ahead");
        }
    }
}

#[actix_web::test]
async fn a_conversation_with_an_id_is_one_agent() {
    let harness = Harness::new();
    let ask = |body: &Value| request(body).insert_header(("x-conversation-id", "c1"));
    let first = said(&harness, ask(&saying(&[("system", "Briefly.")], "say a"))).await;
    let history = [("system", "Briefly."), ("user", "say a"), ("assistant", text(&first))];
    let next = saying(&history, "say b");
    let second = said(&harness, ask(&next)).await;
    assert_eq!(text(&second), "b");
    let again = ask(&next).insert_header(("x-stainless-retry-count", "1"));
    assert_eq!(said(&harness, again).await, second, "a retry is no second message");
    assert_eq!(prompts(&harness).await, ["Briefly.\n\nsay a", "say b"]);
    let mut other = next.clone();
    other["model"] = json!("other");
    assert_eq!(param(&harness.call(ask(&other)).await), (400, Some("model".into())));
    let id = |id: &str| request(&next).insert_header(("x-conversation-id", id.to_owned()));
    for wrong in [String::new(), "a b".into(), "x".repeat(201)] {
        let answer = harness.call(id(&wrong)).await;
        assert_eq!(param(&answer), (400, Some("X-Conversation-Id".into())), "{wrong}");
    }
    let first_again =
        harness.call(TestRequest::delete().uri(&format!("{COMPLETIONS}/{}", first["id"].as_str().unwrap())));
    assert_eq!(param(&first_again.await), (400, Some("completion_id".into())));
}

#[actix_web::test]
async fn of_two_first_requests_at_once_one_begins_the_conversation_and_the_other_goes_on() {
    let harness = Harness::new();
    let ask = |prompt: &str, tries: &'static str| {
        let body = saying(&[("system", "Briefly.")], prompt);
        let ask = request(&body).insert_header(("x-conversation-id", "c1"));
        said(&harness, ask.insert_header(("x-stainless-retry-count", tries)))
    };
    let (first, second) = futures_util::join!(ask("say a", "0"), ask("say b", "0"));
    assert_eq!((text(&first), text(&second), agents(&harness).await), ("a", "b", 1));
    let told = prompts(&harness).await;
    let mut sorted: Vec<_> = told.iter().map(|prompt| prompt.trim_start_matches("Briefly.\n\n")).collect();
    sorted.sort_unstable();
    assert_eq!((told.len(), sorted.as_slice()), (2, ["say a", "say b"].as_slice()));
    assert_eq!((told[0].starts_with("Briefly."), told[1].starts_with("Briefly.")), (true, false), "{told:?}");
}

#[actix_web::test]
async fn a_first_request_that_is_retried_at_once_is_one_message() {
    let harness = Harness::new();
    let ask = || {
        let ask = request(&saying(&[("system", "Briefly.")], "say a"));
        said(
            &harness,
            ask.insert_header(("x-conversation-id", "c1")).insert_header(("x-stainless-retry-count", "1")),
        )
    };
    let (first, again) = futures_util::join!(ask(), ask());
    assert_eq!(first, again);
    assert_eq!(prompts(&harness).await, ["Briefly.\n\nsay a"]);
}

#[actix_web::test]
async fn a_retry_is_the_same_turn_and_the_same_words_after_the_answer_are_another() {
    let harness = Harness::new();
    let begin = saying(&[("system", "Briefly.")], "say a");
    let first = said(&harness, ask(&begin, "0")).await;
    assert_eq!(said(&harness, ask(&begin, "1")).await, first, "its prompt has the instructions in front");
    // The client has the answer, and its user says the same again. The first try did not arrive.
    let again = saying(&[("system", "It is late."), ("user", "say a"), ("assistant", text(&first))], "say a");
    let second = said(&harness, ask(&again, "1")).await;
    assert_ne!(second["id"], first["id"]);
    let third =
        saying(&[("user", "say a"), ("assistant", "a"), ("user", "say a"), ("assistant", "a")], "say a");
    let third = said(&harness, ask(&third, "2")).await;
    assert_ne!(third["id"], second["id"]);
    assert_eq!(prompts(&harness).await, ["Briefly.\n\nsay a", "say a", "say a"]);
}

#[actix_web::test]
async fn a_client_that_has_streamed_an_abandoned_text_has_its_answer() {
    let harness = Harness::new();
    let prompt = "say Hel again Hello";
    let first = said(&harness, ask(&saying(&[], prompt), "0")).await;
    assert_eq!(text(&first), "Hello");
    let path = format!("/openai/v1/chat/completions/{}?stream=true", first["id"].as_str().unwrap());
    let streamed = chunks(&harness.get(&path).await).into_iter().map(|(_, chunk)| chunk);
    let words =
        streamed.map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned());
    let streamed: String = words.collect();
    assert!(streamed.starts_with("Hel") && streamed.ends_with("Hello") && streamed != "Hello", "{streamed}");
    // A first message has its conversation in front, so it is not compared.
    for (answer, turns) in [("Hello", 2), (&streamed, 3), ("Hel", 3), ("Hello", 4)] {
        said(&harness, ask(&saying(&[("user", prompt), ("assistant", answer)], prompt), "1")).await;
        assert_eq!(prompts(&harness).await.len(), turns, "{answer}");
    }
}

#[actix_web::test]
async fn a_retry_is_known_although_the_agent_has_begun_another_turn_by_itself() {
    let harness = Harness::new();
    let body = saying(&[], "say a alone b");
    let first = said(&harness, ask(&body, "0")).await;
    assert_eq!(said(&harness, ask(&body, "1")).await["id"], first["id"]);
}

#[actix_web::test]
async fn a_long_history_counts_only_for_an_agent_that_must_be_told_it() {
    let harness = Harness::with(|config, _| config.request_bytes = 1000);
    let ask = |body: &Value| request(body).insert_header(("x-conversation-id", "c1"));
    let long = saying(&[("user", "say a"), ("assistant", &"a".repeat(2000))], "say b");
    assert_eq!(harness.call(ask(&long)).await.status, 413);
    said(&harness, ask(&saying(&[], "say a"))).await;
    assert_eq!(text(&said(&harness, ask(&long)).await), "b");
    assert_eq!(harness.call(ask(&saying(&[], &"b".repeat(2000)))).await.status, 413);
}

#[actix_web::test]
async fn a_client_that_gets_no_place_has_launched_nothing() {
    let harness = Harness::with(|config, _| config.connections = 0);
    let answer = harness.call(request(&saying(&[], "say a"))).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["code"]),
        (503, &json!("capacity_exhausted"))
    );
    for stream in [true, false] {
        let body = json!({"model": "script", "input": "say a", "stream": stream}).to_string();
        assert_eq!(harness.post("/openai/v1/responses", &body).await.status, 503);
    }
    assert_eq!(agents(&harness).await, 0);
}

#[actix_web::test]
async fn without_an_id_the_agent_is_told_the_conversation() {
    let harness = Harness::new();
    let history = [("developer", "Briefly."), ("user", "Who?"), ("assistant", "I.")];
    let mut body = saying(&history, "say a");
    body["messages"][2]["tool_calls"] = json!([]);
    said(&harness, request(&body)).await;
    assert_eq!(
        prompts(&harness).await,
        [
            "Briefly.\n\nThe conversation so far:\n\nUser: Who?\n\nAssistant: I.\n\nThe user's new message:\n\nsay a"
        ]
    );
    let key = |body: &Value| request(body).insert_header(("idempotency-key", "k"));
    let once = said(&harness, key(&saying(&[], "say b"))).await;
    assert_eq!(said(&harness, key(&saying(&[], "say b"))).await, once);
    assert_eq!(agents(&harness).await, 2, "one for each request without a key, and one for the key");
}

#[actix_web::test]
async fn a_cancelled_turn_is_an_error_so_that_no_part_is_taken_for_the_whole() {
    let harness = Harness::new();
    let response = json!({"model": "script", "input": "hang", "background": true});
    let response = harness.post("/openai/v1/responses", &response.to_string()).await.json();
    let id = response["id"].as_str().unwrap().to_owned();
    let stop = TestRequest::post().uri(&format!("/openai/v1/responses/{id}/cancel"));
    assert_eq!(harness.call(stop).await.status, 200);
    let path = format!("{COMPLETIONS}/{}", id.replace("resp_", "chatcmpl-"));
    let whole = harness.get(&path).await.json();
    assert_eq!(whole["error"]["code"], "cancelled");
    let message = &whole["choices"][0]["message"];
    assert_eq!((&message["content"], &message["refusal"]), (&Value::Null, &json!("the turn was cancelled")));
    let streamed = chunks(&harness.get(&format!("{path}?stream=true")).await);
    let (_, last) = streamed.last().unwrap();
    assert_eq!(last, &json!({ "error": whole["error"] }));
    for id in [id.as_str(), "chatcmpl-", "x"] {
        assert_eq!(param(&harness.get(&format!("{COMPLETIONS}/{id}")).await), (404, None), "{id}");
    }
}

#[actix_web::test]
async fn what_cannot_be_honoured_is_refused_by_its_name() {
    let harness = Harness::new();
    for (body, place) in [
        (json!({"tools": [{"type": "function"}]}), "tools"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"functions": [{"name": "x"}]}), "functions"),
        (json!({"function_call": {"name": "x"}}), "function_call"),
        (json!({"response_format": {"type": "json_object"}}), "response_format"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"n": 2}), "n"),
        (json!({"store": false}), "store"),
        (json!({"stream": 1}), "stream"),
        (json!({"model": "/"}), "model"),
        (json!({"messages": "x"}), "messages"),
        (json!({"messages": []}), "messages"),
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            "messages",
        ),
        (json!({"messages": [1]}), "messages[0]"),
        (json!({"messages": [{"role": "tool", "content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"messages": [{"role": "system"}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            "messages[0].content[0]",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/"}}]}]}),
            "messages[0].content[0].image_url",
        ),
    ] {
        let mut whole = saying(&[], "say a");
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        assert_eq!(param(&harness.call(request(&whole)).await), (400, Some(place.to_owned())), "{body}");
    }
    let unknown = json!({"model": "none", "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(param(&harness.call(request(&unknown)).await), (400, Some("model".into())));
    assert_eq!(param(&harness.post(COMPLETIONS, "{}").await), (400, Some("messages".into())));
    assert_eq!(agents(&harness).await, 0, "nothing was launched");
    let mut harmless = saying(&[], "say a");
    let extra = json!({"n": 1, "temperature": 0, "max_tokens": 9, "max_completion_tokens": 9, "stop": ["x"], "seed": 1,
        "tools": [], "response_format": {"type": "text"}, "modalities": ["text"], "user": "me", "logprobs": false,
        "stream_options": null, "metadata": {"a": "b"}, "parallel_tool_calls": true, "prompt_cache_key": "x"});
    harmless.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    assert_eq!(text(&said(&harness, request(&harmless)).await), "a");
}

#[actix_web::test]
async fn a_text_that_comes_only_with_the_result_is_the_answer() {
    let harness = Harness::new();
    let whole = said(&harness, request(&saying(&[], "say"))).await;
    assert_eq!(text(&whole), "done");
}

#[actix_web::test]
async fn an_image_reaches_the_agent_of_a_conversation() {
    let harness = Harness::new();
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let mut body = saying(&[], "");
    body["messages"][0]["content"] = json!([{"type": "text", "text": "say a"}, {"type": "image_url", "image_url": {"url": png, "detail": "low"}}]);
    let ask = || request(&body).insert_header(("x-conversation-id", "c1"));
    for turn in 1..=2 {
        let completion = said(&harness, ask()).await;
        let id = completion["id"].as_str().unwrap().replace("chatcmpl-", "resp_");
        let asked = harness.get(&format!("/openai/v1/responses/{id}/input_items")).await.json();
        assert_eq!(asked["data"][0]["content"][1]["type"], "input_image", "turn {turn}");
    }
    let refused = Harness::blind().call(ask()).await;
    assert_eq!(param(&refused), (400, Some("messages".into())));
}
