//! Lists have a limit in bytes, and pages of messages are found without reading more than necessary.

use serde_json::{Value, json};

use super::client::{Client, Heard, serve};
use super::harness::{Answer, Harness};
use super::letta::made;

fn items(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().as_array().unwrap().clone()
}

fn ids(answer: &Answer) -> Vec<String> {
    items(answer).iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link").strip_prefix('<')?;
    Some(link.strip_suffix(">; rel=\"next\"").unwrap().to_owned())
}

/// Each character begins at an even offset, so a cut at an odd offset splits one.
fn long_prompt() -> String {
    format!("say {}", "é".repeat(100_000))
}

#[actix_web::test]
async fn a_list_shows_the_beginning_of_a_long_prompt_and_the_agent_all_of_it() {
    let harness = Harness::new();
    let served = serve(&harness);
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("ping", json!({})).await;
    assert_eq!(client.frame().await["type"], "pong", "it hears the news now");
    let prompt = long_prompt();
    let body = json!({
        "type": "script", "prompt": prompt, "name": "Ada", "metadata": { "note": "x".repeat(5_000) }, "options": { "a": 1 },
    });
    let launched = harness.post("/api/agents", &body.to_string()).await.json();
    assert_eq!((&launched["prompt"], launched.get("truncated")), (&json!(prompt), None));
    let id = launched["id"].as_str().unwrap();
    let created = loop {
        match client.hear().await {
            Heard::Frame(frame) if frame["type"] == "agent:created" => break frame,
            Heard::Frame(_) => {}
            other => panic!("{other:?}"),
        }
    };
    harness.ended(id).await;

    let listed = items(&harness.get("/api/agents").await).remove(0);
    for agent in [&listed, &created["payload"]["agent"]] {
        let shown = agent["prompt"].as_str().unwrap();
        assert!(prompt.starts_with(shown) && (4_094..=4_096).contains(&shown.len()), "{} bytes", shown.len());
        assert_eq!(agent["truncated"], json!(["prompt", "metadata"]));
        assert_eq!((&agent["name"], &agent["options"]), (&json!("Ada"), &json!({"a": 1})));
        assert_eq!(agent.get("metadata"), None, "a part of it is good for nothing");
    }
    let whole = harness.get(&format!("/api/agents/{id}")).await.json();
    assert_eq!((&whole["prompt"], whole.get("truncated")), (&json!(prompt), None));
    assert_eq!(whole["metadata"], body["metadata"]);

    let turn = items(&harness.get(&format!("/api/agents/{id}/turns")).await).remove(0);
    assert_eq!((&turn["prompt"], &turn["truncated"]), (&listed["prompt"], &json!(["prompt"])));
    let record = harness.get(&format!("/api/agents/{id}/turns/1")).await.json();
    assert_eq!((&record["prompt"], record.get("truncated")), (&json!(prompt), None));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_list_ends_where_it_is_long_enough_in_bytes_and_its_link_goes_on() {
    let harness = Harness::with(|_, limits| limits.lists.list_bytes = 12_000);
    for _ in 0..7 {
        harness.launch(&format!("hang {}", "x".repeat(9_000))).await;
    }
    for first in ["/api/agents?limit=100", "/api/agents/active"] {
        let (mut at, mut seen) = (Some(first.to_owned()), Vec::new());
        while let Some(path) = at.take() {
            let page = harness.get(&path).await;
            assert!(page.text.len() < 16_000, "{} bytes", page.text.len());
            seen.extend(ids(&page));
            at = next(&page);
        }
        assert_eq!(seen.len(), 7, "{first}");
        assert!(seen.is_sorted_by(|one, other| other < one), "newest first, each once: {seen:?}");
    }
    let id = &ids(&harness.get("/api/agents?limit=1").await)[0];
    for _ in 0..5 {
        let body = json!({ "content": "x".repeat(9_000) }).to_string();
        assert_eq!(harness.post(&format!("/api/agents/{id}/messages"), &body).await.status, 202);
    }
    let (mut at, mut numbers) = (Some(format!("/api/agents/{id}/turns")), Vec::new());
    while let Some(path) = at.take() {
        let page = harness.get(&path).await;
        assert!(page.text.len() < 16_000, "{} bytes", page.text.len());
        numbers.extend(items(&page).iter().map(|turn| turn["number"].as_u64().unwrap()));
        at = next(&page);
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[actix_web::test]
async fn letta_lists_agents_from_any_cursor_in_both_orders() {
    let harness = Harness::with(|config, limits| (config.list_agents, limits.lists.list_agents) = (3, 3));
    let mut made_ids = Vec::new();
    for _ in 0..6 {
        made_ids.push(made(&harness).await);
        harness.clock.advance_ms(1);
    }
    let list = async |query: &str| -> Vec<usize> {
        let listed = ids(&harness.get(&format!("/v1/agents?{query}")).await);
        listed.iter().map(|id| made_ids.iter().position(|made| made == id).unwrap()).collect()
    };
    assert_eq!(list("").await, [5, 4, 3]);
    assert_eq!(list(&format!("after={}", made_ids[3])).await, [2, 1, 0], "beyond the first page too");
    assert_eq!(list("order=asc&limit=2").await, [0, 1], "the oldest of all, not of the newest page");
    assert_eq!(list(&format!("order=asc&after={}", made_ids[1])).await, [2, 3, 4]);
    assert_eq!(list(&format!("before={}&limit=2", made_ids[1])).await, [3, 2]);
    assert_eq!(list(&format!("order=asc&before={}&limit=2", made_ids[4])).await, [2, 3]);
    let within = format!("after={}&before={}", made_ids[5], made_ids[2]);
    assert_eq!(list(&within).await, [4, 3]);
    let name = r#"{"name":"Grace","model":"script"}"#;
    let grace = harness.post("/v1/agents/", name).await.json()["id"].as_str().unwrap().to_owned();
    for _ in 0..4 {
        harness.clock.advance_ms(1);
        made(&harness).await;
    }
    assert_eq!(ids(&harness.get("/v1/agents?name=Grace").await), [grace], "also among the older ones");
}

/// Reads all messages in pages.
async fn walked(harness: &Harness, path: &str, query: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = items(&harness.get(&format!("{path}?{query}&limit={limit}{after}")).await);
        let Some(last) = page.last() else { return all };
        after = format!("&after={}", last["id"].as_str().unwrap());
        all.extend(page);
        assert!(all.len() < 1_000, "it goes round");
    }
}

#[actix_web::test]
async fn pages_of_messages_of_any_size_are_the_whole_history() {
    for bytes in [4 << 20, 700, 1] {
        let harness = Harness::with(|config, _| config.list_bytes = bytes);
        let id = made(&harness).await;
        for prompt in ["say a b c", "think", "say d", "fail", "say e f"] {
            let body = json!({ "input": prompt }).to_string();
            assert_eq!(harness.post(&format!("/v1/agents/{id}/messages"), &body).await.status, 200);
        }
        let path = format!("/v1/agents/{id}/messages");
        let all = walked(&harness, &path, "order=asc", 500).await;
        assert!(8 <= all.len(), "{all:?}");
        for limit in [1, 2, 3, 7] {
            assert_eq!(walked(&harness, &path, "order=asc", limit).await, all, "{limit}, {bytes} bytes");
            let mut newest_first = walked(&harness, &path, "order=desc", limit).await;
            newest_first.reverse();
            assert_eq!(newest_first, all, "{limit}, {bytes} bytes");
        }
        let of = |at: usize| all[at]["id"].as_str().unwrap();
        let page = async |query: String| items(&harness.get(&format!("{path}?{query}")).await);
        if bytes == 4 << 20 {
            assert_eq!(page(format!("order=asc&before={}&limit=2", of(4))).await, all[2..4]);
            let newest_first: Vec<_> = all[1..3].iter().rev().cloned().collect();
            assert_eq!(page(format!("before={}&limit=2", of(0))).await, newest_first);
            assert_eq!(page(format!("order=asc&after={}&before={}", of(1), of(6))).await, all[2..6]);
        } else {
            assert!(page("order=asc".to_owned()).await.len() < all.len(), "a page has a bound in bytes");
        }
        assert_eq!(page("after=message-unknown".to_owned()).await, [Value::Null; 0]);
        let run = all[0]["run_id"].as_str().unwrap();
        let path = format!("/v1/runs/{run}/messages");
        let of_run: Vec<_> = all.iter().filter(|message| message["run_id"] == *run).cloned().collect();
        for limit in [1, 2, 500] {
            assert_eq!(walked(&harness, &path, "order=asc", limit).await, of_run);
        }
    }
}

/// The cost depends on how many turns there are, not on their numbers.
#[actix_web::test]
async fn the_greatest_number_of_a_turn_costs_no_more_than_any_other() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let file = harness.get(&format!("/api/agents/{id}/export")).await.text;
    let file =
        file.replace("\"number\":1,", "\"number\":4294967295,").replace("\"run\":1,", "\"run\":4294967295,");
    let file =
        file.replace("\"turn\":1,", "\"turn\":4294967295,").replace("\"turn\":1}", "\"turn\":4294967295}");
    let imported = harness.post("/api/agents/import", &file).await;
    assert_eq!(imported.status, 201, "{imported:?}\n{file}");
    let copy = imported.json();
    assert_eq!(copy["turn"], 4_294_967_295_u32);
    let path = format!("/v1/agents/agent-{}/messages", copy["id"].as_str().unwrap());
    for order in ["asc", "desc"] {
        let all = walked(&harness, &path, &format!("order={order}"), 1).await;
        assert_eq!(all.len(), 2, "what was asked and what was said: {all:?}");
    }
    let runs = items(&harness.get("/v1/runs?limit=1").await);
    assert_eq!(runs[0]["status"], "completed");
}

#[actix_web::test]
async fn a_listed_run_says_what_the_run_itself_says() {
    let harness = Harness::new();
    let id = made(&harness).await;
    for prompt in ["say a", "fail", "say b"] {
        let body = json!({ "input": prompt }).to_string();
        harness.post(&format!("/v1/agents/{id}/messages"), &body).await;
    }
    let all = items(&harness.get("/v1/runs").await);
    assert_eq!(all.len(), 3);
    for run in &all {
        let alone = harness.get(&format!("/v1/runs/{}", run["id"].as_str().unwrap())).await.json();
        assert_eq!(run, &alone);
        let reason = run["stop_reason"].as_str().unwrap();
        let same: Vec<_> = all.iter().filter(|other| other["stop_reason"] == reason).cloned().collect();
        assert_eq!(items(&harness.get(&format!("/v1/runs?stop_reason={reason}")).await), same);
    }
}
