//! What AG-UI's clients see.

use std::time::Duration;

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::harness::{Answer, Harness};

fn input(thread: &str, run: &str, said: &str) -> Value {
    let messages = json!([
        {"id": "s", "role": "system", "content": "x"},
        {"id": run, "role": "user", "content": said},
        {"id": "r", "role": "reasoning", "content": "y"},
    ]);
    json!({"threadId": thread, "runId": run, "protocolVersion": "1.0", "state": {}, "messages": messages, "tools": [], "context": []})
}

async fn post(harness: &Harness, body: &Value) -> Answer {
    harness.post("/ag-ui", &body.to_string()).await
}

fn events(answer: &Answer) -> Vec<Value> {
    let head = (answer.status.as_u16(), answer.header("content-type"));
    assert_eq!(head, (200, "text/event-stream"), "{answer:?}");
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn resume(run: &str, entries: &Value) -> Value {
    json!({"threadId": "t", "runId": run, "messages": [], "resume": entries})
}

fn text(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}

fn cursor(event: &Value) -> &str {
    event["metadata"]["tokenrail"]["cursor"].as_str().unwrap()
}

#[actix_web::test]
async fn a_thread_is_an_agent_and_a_repeated_run_is_the_same_run() {
    let harness = Harness::for_chats();
    let first = post(&harness, &input("t", "r1", "say a b 🦀")).await;
    let whole = events(&first);
    assert_eq!(text(&whole), "ab🦀");
    let ends = [&whole[0], whole.last().unwrap()].map(|event| (&event["type"], &event["runId"]));
    assert_eq!(ends, [(&json!("RUN_STARTED"), &json!("r1")), (&json!("RUN_FINISHED"), &json!("r1"))]);
    assert!(!first.text.contains('\r') && !first.text.contains("[DONE]"));

    let second = events(&post(&harness, &input("t", "r2", "say c")).await);
    assert_eq!(text(&second), "c");
    let agents = harness.get("/api/agents").await.json();
    assert_eq!(agents.as_array().unwrap().len(), 1, "one agent");
    assert_eq!(post(&harness, &input("t", "r1", "say a b 🦀")).await.text, first.text, "byte for byte");
    let other = post(&harness, &input("t", "r1", "say d")).await;
    assert_eq!(other.problem(), "idempotency_mismatch");

    for (index, event) in whole.iter().enumerate() {
        let body = input("t", "r1", "say a b 🦀").to_string();
        let rest = harness.post(&format!("/ag-ui?after={}", cursor(event)), &body).await;
        assert_eq!(events(&rest), whole[index + 1..], "after {index}");
    }

    // Who has a part of a run never starts one, and a cursor of a later run is not one of this run.
    let later = cursor(second.last().unwrap());
    for (after, body, code) in [
        ("2.1", input("t", "r9", "say x"), "not_found"),
        ("2.1", input("new", "r1", "say x"), "not_found"),
        ("999.1", input("t", "r1", "say a b 🦀"), "cursor_ahead"),
        (later, input("t", "r1", "say a b 🦀"), "cursor_ahead"),
    ] {
        let refused = harness.post(&format!("/ag-ui?after={after}"), &body.to_string()).await;
        assert_eq!(refused.problem(), code, "{body}");
    }
    assert_eq!(harness.get("/api/agents").await.json()[0]["turn"], 2, "nothing was said");

    // The id of the agent names the thread too.
    let id = agents[0]["id"].as_str().unwrap();
    let third = events(&post(&harness, &input(id, "r3", "say e")).await);
    assert_eq!((text(&third), &third[0]["threadId"]), ("e".into(), &json!(id)));
    assert_eq!(harness.get("/api/agents").await.json().as_array().unwrap().len(), 1);
}

#[actix_web::test]
async fn a_thread_is_streamed_from_every_cursor() {
    let harness = Harness::for_chats();
    for (run, said) in [("r1", "say a b"), ("r2", "say c"), ("r3", "say d e")] {
        post(&harness, &input("t", run, said)).await;
    }
    let whole = events(&harness.get("/ag-ui/threads/t").await);
    assert_eq!(text(&whole), "abcde");
    let said: Vec<_> =
        whole.iter().filter_map(|event| event["input"]["messages"][0]["content"].as_str()).collect();
    assert_eq!(said, ["say a b", "say c", "say d e"]);
    for (index, event) in whole.iter().enumerate() {
        let rest = harness.get(&format!("/ag-ui/threads/t?after={}", cursor(event))).await;
        assert_eq!(events(&rest), whole[index + 1..], "after {}", cursor(event));
    }
    let at = async |after: &str| harness.get(&format!("/ag-ui/threads/t?after={after}")).await.problem();
    assert_eq!(at("x").await, "cursor_malformed");
    assert_eq!(at("999.1").await, "cursor_ahead");
    assert_eq!(harness.get("/ag-ui/threads/u").await.problem(), "not_found");
}

#[actix_web::test]
async fn a_cancel_ends_a_run_that_hangs() {
    let harness = Harness::for_chats();
    let body = input("t", "r1", "hang").to_string();
    let cancel = async || harness.call(TestRequest::post().uri("/ag-ui/threads/t/cancel")).await;
    assert_eq!(cancel().await.problem(), "not_found");
    let run = harness.post("/ag-ui/script", &body);
    let stop = async {
        while cancel().await.status != 202 {
            tokio::task::yield_now().await;
        }
    };
    let (run, ()) = tokio::join!(run, stop);
    assert_eq!(events(&run).last().unwrap()["outcome"], json!({"type": "cancelled"}));
    let other = harness.post("/ag-ui/seeing", &input("t", "r2", "say a").to_string()).await;
    assert_eq!(
        (other.problem(), other.json()["errors"][0]["pointer"].as_str()),
        ("validation_failed".into(), Some("/threadId"))
    );
}

#[actix_web::test]
async fn what_cannot_be_done_is_refused_by_its_place() {
    let harness = Harness::for_chats();
    let with = |name: &str, value: Value| {
        let mut body = input("t", "r1", "say a");
        body[name] = value;
        body
    };
    let said = |content: Value| with("messages", json!([{"role": "user", "content": content}]));
    let resume = |entry: Value| with("resume", json!([entry]));
    for (body, pointer) in [
        (with("threadId", json!("")), "/threadId"),
        (with("runId", json!(1)), "/runId"),
        (with("messages", json!([])), "/messages"),
        (with("messages", json!([{"role": "user", "content": "a"}, {"role": "tool"}])), "/messages"),
        (with("messages", json!([1])), "/messages/0"),
        (said(json!(" ")), "/messages/0/content"),
        (said(json!([{"type": "audio"}])), "/messages/0/content/0"),
        (
            said(json!([{"type": "image", "source": {"type": "url", "value": "x"}}])),
            "/messages/0/content/0/source",
        ),
        (resume(json!({"interruptId": "x", "status": "resolved"})), "/resume/0/interruptId"),
        (resume(json!({"interruptId": "1:x", "status": "x"})), "/resume/0/status"),
        (resume(json!({"interruptId": "1:x", "status": "resolved", "payload": 1})), "/resume/0/payload"),
        (
            resume(json!({"interruptId": "1:x", "status": "resolved", "payload": {"optionId": 1}})),
            "/resume/0/payload/optionId",
        ),
    ] {
        let refused = post(&harness, &body).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (422, "validation_failed".into()), "{body}");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{body}");
    }
    let nobody = resume(json!({"interruptId": "1:x", "status": "cancelled"}));
    assert_eq!(post(&harness, &nobody).await.problem(), "not_found");
    let unknown = harness.post("/ag-ui/nothing", &input("t", "r1", "say a").to_string()).await;
    assert_eq!(unknown.problem(), "runner_unknown");
    assert_eq!(harness.get("/ag-ui").await.json()["transport"]["resumable"], true);
    assert_eq!(harness.get("/api/agents").await.json(), json!([]), "nothing was launched");
}

#[actix_web::test]
async fn a_thread_ends_at_an_open_request_whatever_the_agent_says_meanwhile() {
    let harness = Harness::for_chats();
    let asked = events(&post(&harness, &input("t", "r1", "ask and say a b")).await);
    let outcome = asked.last().unwrap()["outcome"].clone();
    assert_eq!(outcome["interrupts"][0]["id"], "1:1-1");
    let id = harness.get("/api/agents").await.json()[0]["id"].as_str().unwrap().to_owned();
    while harness.get(&format!("/api/agents/{id}/events")).await.json().as_array().unwrap().len() < 4 {
        tokio::task::yield_now().await;
    }
    let thread = async || {
        let thread = timeout(Duration::from_secs(30), harness.get("/ag-ui/threads/t")).await;
        events(&thread.expect("the stream ends"))
    };
    let open = thread().await;
    assert_eq!((open.last().unwrap()["outcome"].clone(), text(&open)), (outcome, String::new()));

    let yes = json!([{"interruptId": "1:1-1", "status": "resolved", "payload": true}]);
    let answered = events(&post(&harness, &resume("r2", &yes)).await);
    assert_eq!(
        (text(&answered), &answered.last().unwrap()["outcome"]["type"]),
        ("ab".into(), &json!("success"))
    );
    let all = thread().await;
    assert_eq!((&all[..open.len()], text(&all)), (&open[..], "ab".into()), "it goes on where it ended");
    for (index, event) in all.iter().enumerate() {
        let rest = harness.get(&format!("/ag-ui/threads/t?after={}", cursor(event))).await;
        assert_eq!(events(&rest), all[index + 1..], "after {}", cursor(event));
    }
}

#[actix_web::test]
async fn who_resumes_the_run_of_an_answer_never_gives_the_answer() {
    let harness = Harness::for_chats();
    let asked = events(&post(&harness, &input("t", "r1", "ask and say a b")).await);
    let after = async |event: &Value, body: &Value| {
        harness.post(&format!("/ag-ui?after={}", cursor(event)), &body.to_string()).await
    };
    let yes = resume("r2", &json!([{"interruptId": "1:1-1", "status": "resolved", "payload": true}]));
    assert_eq!(after(asked.last().unwrap(), &yes).await.problem(), "not_found");
    assert_eq!(harness.get("/api/questions").await.json().as_array().unwrap().len(), 1, "it is still open");
    let answered = events(&post(&harness, &yes).await);
    assert_eq!(text(&answered), "ab");
    for (index, event) in answered.iter().enumerate() {
        assert_eq!(events(&after(event, &yes).await), answered[index + 1..], "after {index}");
    }
}

#[actix_web::test]
async fn an_answer_that_is_refused_leaves_all_requests_open() {
    let harness = Harness::for_chats();
    post(&harness, &input("t", "r1", "ask and say a")).await;
    let entry =
        |id: &str, payload: Value| json!({"interruptId": id, "status": "resolved", "payload": payload});
    let good = entry("1:1-1", json!("yes"));
    for (wrong, place) in [
        (entry("1:x", json!(true)), "interruptId"),
        (entry("2:1-1", json!(true)), "interruptId"),
        (entry("1:1-1", json!("maybe")), "payload"),
        (entry("1:1-1", json!({"text": "as you like"})), "payload"),
        (entry("1:1-1", json!({"optionId": "no", "note": "not now"})), "payload"),
        (entry("1:1-1", json!({"approved": false, "note": "not now"})), "payload"),
        (entry("1:1-1", json!({"optionIds": ["yes", "no"]})), "payload"),
    ] {
        let refused = post(&harness, &resume("r2", &json!([good, wrong]))).await;
        let pointer = format!("/resume/1/{place}");
        assert_eq!(refused.problem(), "validation_failed");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer);
        assert_eq!(harness.get("/api/questions").await.json().as_array().unwrap().len(), 1, "{pointer}");
    }
    let answered = events(&post(&harness, &resume("r2", &json!([good, good]))).await);
    assert_eq!(answered.last().unwrap()["outcome"]["type"], "success");
}

#[actix_web::test]
async fn of_two_first_requests_the_one_for_another_type_than_that_of_the_agent_is_refused() {
    let harness = Harness::blind();
    let say = |run: &str| input("t", run, "say a").to_string();
    let (one, other) = (say("r1"), say("r2"));
    let both = tokio::join!(harness.post("/ag-ui/script", &one), harness.post("/ag-ui/seeing", &other));
    let (done, refused) = if both.0.status == 200 { both } else { (both.1, both.0) };
    assert_eq!((done.status.as_u16(), refused.problem()), (200, "validation_failed".into()));
    assert_eq!(refused.json()["errors"][0]["pointer"], "/threadId", "{refused:?}");
    let agents = harness.get("/api/agents").await.json();
    assert_eq!(
        (agents.as_array().unwrap().len(), &agents[0]["turn"]),
        (1, &json!(1)),
        "nothing else was said"
    );
}
