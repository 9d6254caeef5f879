//! Users change the names of agents and their places in lists.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::client::{Client, Heard, serve};
use super::harness::{Answer, Harness};

async fn patch(harness: &Harness, id: &str, body: &Value) -> Answer {
    let request = TestRequest::patch().uri(&format!("/api/agents/{id}"));
    harness
        .call(request.insert_header(("content-type", "application/json")).set_payload(body.to_string()))
        .await
}

async fn listed(harness: &Harness, query: &str) -> Vec<String> {
    let answer = harness.get(&format!("/api/agents{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap().to_owned()).collect()
}

#[actix_web::test]
async fn a_change_names_what_it_changes_and_the_rest_stays() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let before = harness.get(&format!("/api/agents/{id}")).await.json();
    assert_eq!(
        (before.get("name"), &before["pinned"], &before["archived"]),
        (None, &json!(false), &json!(false))
    );
    let mut expected = before.clone();
    for (body, field, value) in [
        (json!({ "name": "Ada" }), "name", json!("Ada")),
        (json!({ "pinned": true }), "pinned", json!(true)),
        (json!({ "archived": true, "unknown": 1 }), "archived", json!(true)),
        (json!({ "archived": false, "name": "Ada" }), "archived", json!(false)),
        (json!({}), "pinned", json!(true)),
    ] {
        expected[field] = value;
        let answer = patch(&harness, &id, &body).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, expected.clone()), "{body}");
    }
    let nameless = patch(&harness, &id, &json!({ "name": null })).await.json();
    assert_eq!((nameless.get("name"), &nameless["pinned"]), (None, &json!(true)));
    assert_eq!(harness.get(&format!("/api/agents/{id}")).await.json(), nameless);
}

#[actix_web::test]
async fn a_change_that_is_not_valid_names_each_field_and_changes_nothing() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let before = harness.get(&format!("/api/agents/{id}")).await.json();
    let longest = "é".repeat(200);
    let bad = json!({ "name": format!("{longest}é"), "pinned": null, "archived": "yes" });
    let refused = patch(&harness, &id, &bad).await;
    assert_eq!(refused.problem(), "validation_failed");
    let fields: Vec<_> =
        refused.json()["errors"].as_array().unwrap().iter().map(|e| e["pointer"].clone()).collect();
    assert_eq!(fields, [json!("/name"), json!("/pinned"), json!("/archived")]);
    assert_eq!(patch(&harness, &id, &json!([])).await.problem(), "validation_failed");
    assert_eq!(harness.get(&format!("/api/agents/{id}")).await.json(), before);
    assert_eq!(patch(&harness, &id, &json!({ "name": longest })).await.json()["name"], longest);

    let unknown = "00000000-0000-7000-8000-000000000000";
    assert_eq!(patch(&harness, unknown, &json!({ "pinned": true })).await.problem(), "not_found");
    harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    assert_eq!(patch(&harness, &id, &json!({ "pinned": true })).await.problem(), "agent_deleted");
}

#[actix_web::test]
async fn lists_leave_archived_agents_out_until_a_message_brings_them_back() {
    let harness = Harness::new();
    let launch = || harness.launch_to_end("say a");
    let (one, two, three, four) = (launch().await, launch().await, launch().await, launch().await);
    let (one, two, three, four) = (&one, &two, &three, &four);
    for id in [one, three] {
        patch(&harness, id, &json!({ "archived": true })).await;
    }
    assert_eq!(listed(&harness, "").await, [four.as_str(), two]);
    assert_eq!(listed(&harness, "?archived=false").await, [four.as_str(), two]);
    assert_eq!(listed(&harness, "?archived=true").await, [three.as_str(), one]);
    assert_eq!(listed(&harness, "?archived=true&status=running").await, Vec::<String>::new());
    assert_eq!(harness.get("/api/agents?archived=only").await.problem(), "validation_failed");
    let page = harness.get("/api/agents?archived=true&limit=1").await;
    let next = format!("</api/agents?before={three}&limit=1&archived=true>; rel=\"next\"");
    assert_eq!(page.header("link"), next);
    harness.call(TestRequest::delete().uri(&format!("/api/agents/{three}"))).await;
    assert_eq!(listed(&harness, "?deleted=true").await, [three.as_str()], "archived or not");

    harness.post(&format!("/api/agents/{one}/messages"), r#"{"content":"say b"}"#).await;
    harness.ended(one).await;
    assert_eq!(listed(&harness, "").await, [four.as_str(), two, one]);
    assert_eq!(listed(&harness, "?archived=true").await, Vec::<String>::new());
}

#[actix_web::test]
async fn pinned_agents_are_listed_and_an_archived_one_that_runs_is_active() {
    let harness = Harness::new();
    let (one, two) = (harness.launch_to_end("say a").await, harness.launch("hang").await);
    let three = harness.launch_to_end("say a").await;
    for id in [&one, &two, &three] {
        patch(&harness, id, &json!({ "pinned": true })).await;
    }
    patch(&harness, &two, &json!({ "archived": true })).await;
    assert_eq!(listed(&harness, "?pinned=true").await, [three.clone(), one]);
    assert_eq!(listed(&harness, "?pinned=true&archived=true").await, std::slice::from_ref(&two));
    assert_eq!(listed(&harness, "/active").await, [two]);
    let page = harness.get("/api/agents?pinned=true&limit=1").await;
    assert_eq!(
        page.header("link"),
        format!("</api/agents?before={three}&limit=1&pinned=true>; rel=\"next\"")
    );
}

#[actix_web::test]
async fn every_client_learns_of_a_change() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let served = serve(&harness);
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("ping", json!({})).await;
    assert_eq!(client.frame().await["type"], "pong", "it hears the news now");
    patch(&harness, &id, &json!({ "archived": true })).await;
    harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say b"}"#).await;
    harness.ended(&id).await;
    let mut edits = Vec::new();
    loop {
        match client.hear().await {
            Heard::Frame(frame) if frame["type"] == "agent:updated" => {
                let news = &frame["payload"];
                assert_eq!(news["agentId"], id);
                edits.extend(news.get("edited").cloned());
                if news["status"] == "completed" && edits.len() == 2 && news.get("edited").is_none() {
                    break;
                }
            }
            Heard::Frame(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(edits, [json!(true), json!(true)], "the archive, and the message that brings it back");
}
