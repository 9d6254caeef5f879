//! What OpenAI's clients see.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::{Answer, HOST, Harness};

pub(super) const RESPONSES: &str = "/openai/v1/responses";

pub(super) async fn create(harness: &Harness, body: &Value) -> Answer {
    harness.post(RESPONSES, &body.to_string()).await
}

/// Creates a response and waits for all of it.
pub(super) async fn said(harness: &Harness, body: &Value) -> Value {
    let answer = create(harness, body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/json"),
        "{answer:?}"
    );
    answer.json()
}

/// The events of a stream.
fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "text/event-stream"),
        "{answer:?}"
    );
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

pub(super) fn text(response: &Value) -> String {
    let items = response["output"].as_array().unwrap().iter();
    items.map(|item| item["content"][0]["text"].as_str().unwrap()).collect()
}

pub(super) fn id(response: &Value) -> &str {
    response["id"].as_str().unwrap()
}

pub(super) async fn retrieved(harness: &Harness, id: &str) -> Value {
    let answer = harness.get(&format!("{RESPONSES}/{id}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn cancel(harness: &Harness, id: &str) -> Value {
    harness.call(TestRequest::post().uri(&format!("{RESPONSES}/{id}/cancel"))).await.json()
}

/// The error of a refused request: its status, parameter and code.
pub(super) fn refused(answer: &Answer) -> (u16, Option<String>, String) {
    let error = &answer.json()["error"];
    assert_eq!(answer.header("content-type"), "application/json");
    assert!(!error["message"].as_str().unwrap().is_empty() && error["type"].is_string(), "{error}");
    let param = error["param"].as_str().map(str::to_owned);
    (answer.status.as_u16(), param, error["code"].as_str().unwrap().to_owned())
}

#[actix_web::test]
async fn of_two_requests_that_continue_one_response_at_once_one_is_refused() {
    let harness = Harness::new();
    let first = said(&harness, &json!({"model": "script", "input": "say a"})).await;
    let next = |text: &str| json!({"previous_response_id": first["id"], "input": text});
    let (b, c) = (next("say b"), next("say c"));
    let (b, c) = futures_util::join!(create(&harness, &b), create(&harness, &c));
    let (accepted, back) = if b.status == 200 { (b, c) } else { (c, b) };
    assert_eq!((accepted.status.as_u16(), &accepted.json()["previous_response_id"]), (200, &first["id"]));
    assert_eq!(refused(&back), (400, Some("previous_response_id".into()), "validation_failed".into()));
    assert!(back.json()["error"]["message"].as_str().unwrap().contains(id(&accepted.json())), "{back:?}");

    let second = accepted.json();
    let retry = || {
        let retry = TestRequest::post().uri(RESPONSES).insert_header(("x-stainless-retry-count", "1"));
        let body = json!({"previous_response_id": second["id"], "input": "say d"}).to_string();
        harness.call(retry.insert_header(("content-type", "application/json")).set_payload(body))
    };
    let (one, other) = futures_util::join!(retry(), retry());
    assert_eq!(one.status, 200, "{one:?}");
    assert_eq!(one.json(), other.json(), "a retry that overtakes its request is the same message");
}

#[actix_web::test]
async fn a_client_that_repeats_items_goes_on_after_responses_that_it_never_got() {
    let harness = Harness::new();
    let first = said(&harness, &json!({"model": "script", "input": "say a"})).await;
    let mut items = vec![json!({"role": "user", "content": "say a"})];
    items.extend(first["output"].as_array().unwrap().iter().cloned());
    items.push(json!({"role": "user", "content": "hang"}));
    let lost = create(&harness, &json!({"input": items, "background": true})).await.json();
    assert_eq!(lost["previous_response_id"], first["id"]);
    items.push(json!({"role": "user", "content": "say b"}));
    let busy = create(&harness, &json!({ "input": items })).await;
    assert_eq!(refused(&busy).1, Some("previous_response_id".into()), "it may still give items");
    cancel(&harness, id(&lost)).await;

    let third = said(&harness, &json!({ "input": items })).await;
    assert_eq!(third["previous_response_id"], lost["id"]);
    let named = json!({"previous_response_id": first["id"], "input": "say c"});
    assert_eq!(refused(&create(&harness, &named).await).1, Some("previous_response_id".into()));
    let branch = create(&harness, &json!({ "input": items })).await;
    assert_eq!(refused(&branch).1, Some("previous_response_id".into()), "it has the items of the newest");
}

#[actix_web::test]
async fn a_conversation_goes_on_from_its_newest_response() {
    let harness = Harness::new();
    let body = json!({"model": "script/small", "input": "say a b", "metadata": {"n": "1"}, "temperature": 1});
    let first = said(&harness, &body).await;
    assert_eq!(
        (text(&first), &first["status"], &first["object"]),
        ("ab".into(), &json!("completed"), &json!("response"))
    );
    assert_eq!((&first["model"], &first["metadata"]), (&json!("script/small"), &json!({"n": "1"})));
    assert_eq!((&first["previous_response_id"], &first["error"]), (&Value::Null, &Value::Null));
    assert_eq!(retrieved(&harness, id(&first)).await, first, "it stays as it was");

    let next = json!({"model": "script", "previous_response_id": first["id"], "input":
        [{"role": "user", "content": [{"type": "input_text", "text": "say c"}]}]});
    let second = said(&harness, &next).await;
    assert_eq!((text(&second), &second["previous_response_id"]), ("c".into(), &first["id"]));

    // A client without a memory of ids repeats the items.
    let mut items = vec![json!({"role": "user", "content": "say a b"})];
    for response in [&first, &second] {
        items.extend(response["output"].as_array().unwrap().iter().cloned());
    }
    items.push(json!({"type": "message", "role": "user", "content": "say d"}));
    let third = said(&harness, &json!({ "input": items })).await;
    assert_eq!((text(&third), &third["previous_response_id"]), ("d".into(), &second["id"]));

    let back = create(&harness, &next).await;
    assert_eq!(refused(&back), (400, Some("previous_response_id".into()), "validation_failed".into()));
    assert_eq!(back.header("x-should-retry"), "false");
    let again = TestRequest::post().uri(RESPONSES).insert_header(("x-stainless-retry-count", "1"));
    let again = again.insert_header(("content-type", "application/json")).set_payload(next.to_string());
    assert_eq!(harness.call(again).await.json(), second, "a retry is no second message");

    let with_key = |body: &Value, key: &'static str| {
        let post = TestRequest::post().uri(RESPONSES).insert_header(("idempotency-key", key));
        harness.call(post.insert_header(("content-type", "application/json")).set_payload(body.to_string()))
    };
    let more = json!({"previous_response_id": third["id"], "input": "say d"});
    let fourth = with_key(&more, "k").await.json();
    said(&harness, &json!({"previous_response_id": fourth["id"], "input": "say e"})).await;
    assert_eq!(with_key(&more, "k").await.json(), fourth, "a key is good at any age");
    let mut other = more.clone();
    other["input"] = json!("say f");
    assert_eq!(refused(&with_key(&other, "k").await).2, "idempotency_mismatch");
    let back = with_key(&more, "a-new-key").await;
    assert_eq!(refused(&back), (400, Some("previous_response_id".into()), "validation_failed".into()));

    let asked = harness.get(&format!("{RESPONSES}/{}/input_items", id(&third))).await.json();
    assert_eq!((&asked["object"], &asked["has_more"]), (&json!("list"), &json!(false)));
    assert_eq!(asked["data"][0]["content"], json!([{"type": "input_text", "text": "say d"}]));
}

#[actix_web::test]
async fn a_stream_continues_after_every_number() {
    let harness = Harness::new();
    let streamed = create(&harness, &json!({"model": "script", "input": "say a b 🦀", "stream": true})).await;
    let whole = events(&streamed);
    let types: Vec<_> = whole.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    assert_eq!(types.last(), Some(&"response.completed"), "and no [DONE]: {types:?}");
    let response = &whole.last().unwrap()["response"];
    assert_eq!(text(response), "ab🦀");
    assert_eq!(retrieved(&harness, id(response)).await, *response);
    let at = |query: &str| format!("{RESPONSES}/{}?stream=true{query}", id(response));
    assert_eq!(harness.get(&at("")).await.text, streamed.text, "byte for byte");
    for number in 0..whole.len() {
        let rest = harness.get(&at(&format!("&starting_after={number}"))).await;
        assert_eq!(events(&rest), whole[number + 1..], "after {number}");
    }
    let wrong = harness.get(&at("&starting_after=x")).await;
    assert_eq!(refused(&wrong), (400, Some("starting_after".into()), "validation_failed".into()));
}

#[actix_web::test]
async fn a_client_that_claims_to_have_more_than_there_is_is_refused() {
    let harness = Harness::new();
    let ended = said(&harness, &json!({"model": "script", "input": "say a"})).await;
    let running = said(&harness, &json!({"model": "script", "input": "hang", "background": true})).await;
    let queued = json!({"previous_response_id": running["id"], "input": "say a", "background": true});
    let queued = said(&harness, &queued).await;
    let at = |response: &Value, number: u64| {
        format!("{RESPONSES}/{}?stream=true&starting_after={number}", id(response))
    };
    let streamed = events(&harness.get(&format!("{RESPONSES}/{}?stream=true", id(&ended))).await);
    let last = streamed.len() as u64 - 1;
    assert_eq!(events(&harness.get(&at(&ended, last)).await), [json!(null); 0], "it has everything");
    for (response, number) in [(&ended, last + 1), (&ended, u64::MAX), (&running, 1000), (&queued, 1)] {
        let answer = harness.get(&at(response, number)).await;
        let expected = (409, Some("starting_after".into()), "cursor_ahead".into());
        assert_eq!(refused(&answer), expected, "{number} of {response}");
        assert_eq!(answer.header("x-should-retry"), "false");
    }
    cancel(&harness, id(&running)).await;
}

#[actix_web::test]
async fn a_response_in_the_background_is_retrieved_resumed_and_cancelled() {
    let harness = Harness::new();
    let running = said(&harness, &json!({"model": "script", "input": "hang", "background": true})).await;
    assert!(["queued", "in_progress"].contains(&running["status"].as_str().unwrap()), "{running}");
    let waiting = json!({"previous_response_id": running["id"], "input": "say a", "background": true});
    let waiting = said(&harness, &waiting).await;
    assert_eq!(waiting["status"], "queued");
    let stopped = cancel(&harness, id(&running)).await;
    assert_eq!((&stopped["status"], &stopped["incomplete_details"]), (&json!("cancelled"), &Value::Null));
    assert_eq!(cancel(&harness, id(&running)).await, stopped, "once is enough");
    let rest = harness.get(&format!("{RESPONSES}/{}?stream=true&starting_after=0", id(&waiting))).await;
    let rest = events(&rest);
    assert_eq!(text(&rest.last().unwrap()["response"]), "a", "the one behind it is not cancelled");
    assert_eq!(rest[0]["sequence_number"], 1);
    let ended = events(&harness.get(&format!("{RESPONSES}/{}?stream=true", id(&running))).await);
    assert_eq!(ended.last().unwrap()["type"], "response.incomplete");
}

#[actix_web::test]
async fn the_newest_response_is_deleted_with_its_conversation() {
    let harness = Harness::new();
    let first = said(&harness, &json!({"model": "script", "input": "say a"})).await;
    let second = said(&harness, &json!({"previous_response_id": first["id"], "input": "say b"})).await;
    let delete = async |id: &str| harness.call(TestRequest::delete().uri(&format!("{RESPONSES}/{id}"))).await;
    assert_eq!(refused(&delete(id(&first)).await).0, 400);
    let deleted = delete(id(&second)).await;
    assert_eq!(deleted.json(), json!({"id": second["id"], "object": "response", "deleted": true}));
    for response in [&first, &second] {
        let gone = harness.get(&format!("{RESPONSES}/{}", id(response))).await;
        assert_eq!(refused(&gone), (404, None, "not_found".into()));
    }
    let more = create(&harness, &json!({"previous_response_id": second["id"], "input": "say c"})).await;
    assert_eq!(refused(&more), (400, Some("previous_response_id".into()), "validation_failed".into()));
}

#[actix_web::test]
async fn agent_types_are_models() {
    let harness = Harness::for_chats();
    let listed = harness.get("/openai/v1/models").await.json();
    assert_eq!((&listed["object"], &listed["data"][0]["id"]), (&json!("list"), &json!("script")));
    for model in ["script", "script/small", "script/a/b"] {
        let found = harness.get(&format!("/openai/v1/models/{model}")).await.json();
        assert_eq!((&found["id"], &found["object"]), (&json!(model), &json!("model")));
    }
    assert_eq!(refused(&harness.get("/openai/v1/models/none").await), (404, None, "not_found".into()));
    let all = Harness::blind().get("/openai/v1/models").await.json();
    let ids: Vec<&Value> = all["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["script", "seeing"]);
    let without = said(&harness, &json!({"input": "say a"})).await;
    assert_eq!(without["model"], "script", "the default type");
}

#[actix_web::test]
async fn what_cannot_be_honoured_is_refused_by_its_name() {
    let harness = Harness::new();
    for (body, param) in [
        (json!({"tools": [{"type": "function", "name": "x"}]}), "tools"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"tool_choice": {"type": "function", "name": "x"}}), "tool_choice"),
        (json!({"instructions": 1}), "instructions"),
        (json!({"text": {"format": {"type": "json_schema"}}}), "text.format"),
        (json!({"store": false}), "store"),
        (json!({"conversation": "conv_1"}), "conversation"),
        (json!({"prompt": {"id": "pmpt_1"}}), "prompt"),
        (json!({"stream": "yes"}), "stream"),
        (json!({"metadata": []}), "metadata"),
        (json!({"model": 1}), "model"),
        (json!({"model": "script/"}), "model"),
        (json!({"model": "script/-x"}), "model"),
        (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"input": " "}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": 1}), "input"),
        (json!({"input": [1]}), "input[0]"),
        (json!({"input": [{"role": "system", "content": "x"}]}), "input"),
        (json!({"input": [{"role": "critic", "content": "x"}]}), "input[0].role"),
        (json!({"input": [{"role": "assistant", "content": "x"}]}), "input[0]"),
        (json!({"input": [{"type": "function_call_output", "output": "x"}]}), "input[0].type"),
        (json!({"input": [{"role": "user"}]}), "input[0].content"),
        (json!({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}), "input[0].content[0]"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://x/"}]}]}),
            "input[0].content[0].image_url",
        ),
    ] {
        let mut whole = json!({"model": "script", "input": "say a"});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let answer = create(&harness, &whole).await;
        assert_eq!(refused(&answer), (400, Some(param.to_owned()), "validation_failed".into()), "{body}");
    }
    let harmless = json!({"model": "script", "input": "say a", "tools": [], "tool_choice": "auto", "instructions": "",
        "text": {"format": {"type": "text"}, "verbosity": "low"}, "store": true, "top_p": 0.5, "max_output_tokens": 9,
        "reasoning": {"effort": "low"}, "include": [], "stream_options": {"include_obfuscation": false},
        "previous_response_id": null, "parallel_tool_calls": true, "truncation": "auto", "user": "me"});
    assert_eq!(text(&said(&harness, &harmless).await), "a");
    let unknown = create(&harness, &json!({"model": "none", "input": "x"})).await;
    assert_eq!(refused(&unknown), (400, Some("model".into()), "model_not_found".into()));
    assert_eq!(refused(&create(&harness, &json!({"model": "script"})).await).1.as_deref(), Some("input"));
    for body in ["", "{", "[]", "null", "\"x\"", r#"{"input":"\ud800"}"#, r#"{"input":1e999}"#] {
        assert_eq!(refused(&harness.post(RESPONSES, body).await).0, 400, "{body}");
    }
    assert!(harness.get("/api/agents").await.text.matches("agentId").count() <= 2, "nothing was launched");
}

#[actix_web::test]
async fn instructions_begin_the_first_prompt_and_stay_the_same() {
    let harness = Harness::new();
    let first = said(&harness, &json!({"model": "script", "instructions": "Briefly.", "input":
        [{"role": "developer", "content": [{"type": "input_text", "text": "Kindly."}]}, {"role": "user", "content": "say a"}]}))
    .await;
    let asked = harness.get(&format!("{RESPONSES}/{}/input_items", id(&first))).await.json();
    assert_eq!(asked["data"][0]["content"][0]["text"], "Briefly.\n\nKindly.\n\nsay a");
    let next = |instructions: &str| json!({"previous_response_id": first["id"], "instructions": instructions, "input": "say b"});
    let other = create(&harness, &next("At length.")).await;
    assert_eq!(refused(&other), (400, Some("instructions".into()), "validation_failed".into()));
    let second = said(&harness, &next("Briefly.\n\nKindly.")).await;
    let asked = harness.get(&format!("{RESPONSES}/{}/input_items", id(&second))).await.json();
    assert_eq!(asked["data"][0]["content"][0]["text"], "say b", "they are not said twice");
    let none = said(&harness, &json!({"previous_response_id": second["id"], "input": "say c"})).await;
    assert_eq!(text(&none), "c");
}

#[actix_web::test]
async fn an_image_reaches_the_agent_and_a_blind_agent_refuses_it() {
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let content = json!([{"type": "input_text", "text": "say a"}, {"type": "input_image", "image_url": png}]);
    let body = json!({"model": "script", "input": [{"role": "user", "content": content}]});
    let harness = Harness::new();
    let seen = said(&harness, &body).await;
    let asked = harness.get(&format!("{RESPONSES}/{}/input_items", id(&seen))).await.json();
    assert_eq!(asked["data"][0]["content"][1]["type"], "input_image");
    let refusal = create(&Harness::blind(), &body).await;
    assert_eq!(refused(&refusal), (400, Some("input".into()), "images_not_accepted".into()));
}

#[actix_web::test]
async fn every_error_has_openais_format_also_those_of_the_guard() {
    let harness = Harness::new();
    let bare =
        harness.call_raw(TestRequest::get().uri("/openai/v1/models").insert_header(("host", HOST))).await;
    assert_eq!(refused(&bare), (401, None, "invalid_api_key".into()));
    let foreign =
        TestRequest::get().uri("/openai/v1/models").insert_header(("origin", "http://other.example"));
    assert_eq!(refused(&harness.call(foreign).await).0, 403);
    for path in ["/openai", "/openai/", "/openai/v1", "/openai/v1/embeddings", "/openai/v2/responses"] {
        assert_eq!(refused(&harness.get(path).await), (404, None, "not_found".into()), "{path}");
    }
    let answer = harness.get(RESPONSES).await;
    assert_eq!(refused(&answer), (405, None, "method_not_allowed".into()));
    assert_eq!(answer.header("allow"), "POST");
    assert_eq!(harness.get("/openaix").await.problem(), "not_found");
    for id in ["x", "resp_", "resp_00000000000000000000000000000000000000ff"] {
        for path in ["", "/input_items", "?stream=true"] {
            assert_eq!(refused(&harness.get(&format!("{RESPONSES}/{id}{path}")).await).0, 404, "{id}{path}");
        }
        let stop = TestRequest::post().uri(&format!("{RESPONSES}/{id}/cancel"));
        assert_eq!(refused(&harness.call(stop).await).0, 404, "{id}");
    }
}
