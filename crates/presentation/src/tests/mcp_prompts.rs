//! Prompts of the Model Context Protocol, and values for what a person types.

use serde_json::{Value, json};

use super::harness::Harness;
use super::mcp::{ask, launch, wait};

async fn prompt(harness: &Harness, name: &str, arguments: &Value) -> Value {
    ask(harness, "prompts/get", &json!({"name": name, "arguments": arguments})).await
}

/// The values for an argument of which `typed` is typed.
async fn values(harness: &Harness, reference: &Value, argument: &str, typed: &str) -> Value {
    let argument = json!({"name": argument, "value": typed});
    let response =
        ask(harness, "completion/complete", &json!({"ref": reference, "argument": argument})).await;
    response["result"]["completion"].clone()
}

fn of_prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

#[actix_web::test]
async fn a_prompt_delegates_a_task() {
    let harness = Harness::new();
    let listed = ask(&harness, "prompts/list", &json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["delegate", "catch_up"]);

    let arguments = json!({"task": "Find the \"bug\" 🦀", "agent_type": "script"});
    let response = prompt(&harness, "delegate", &arguments).await;
    let messages = response["result"]["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")));
    assert_eq!(messages[0]["content"]["type"], "text");
    let text = messages[0]["content"]["text"].as_str().unwrap();
    assert!(text.ends_with("\n\nFind the \"bug\" 🦀") && text.contains("agent_type set to script"), "{text}");
    for no_type in [json!({"task": "a"}), json!({"task": "a", "agent_type": " "})] {
        let response = prompt(&harness, "delegate", &no_type).await;
        let text = response["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(!text.contains("agent_type"), "the default: {text}");
    }
}

#[actix_web::test]
async fn a_prompt_contains_the_transcript_of_an_agent() {
    let harness = Harness::new();
    let id = launch(&harness, "say a b").await;
    wait(&harness, &id, 0).await;
    let response = prompt(&harness, "catch_up", &json!({"agent_id": id})).await;
    let messages = response["result"]["messages"].as_array().unwrap();
    let uri = format!("tokenrail://agents/{id}/transcript");
    let read = ask(&harness, "resources/read", &json!({"uri": uri})).await;
    assert_eq!(
        messages[0]["content"],
        json!({"type": "resource", "resource": read["result"]["contents"][0]})
    );
    assert!(messages[1]["content"]["text"].as_str().unwrap().contains(&id));
}

#[actix_web::test]
async fn a_wrong_prompt_is_refused() {
    let harness = Harness::new();
    let unknown = "01900000-0000-7000-8000-000000000000";
    for (name, arguments, code, message) in [
        ("test_simple_prompt", json!({}), -32602, "name: unknown prompt \"test_simple_prompt\""),
        ("delegate", json!({}), -32602, "task: must be present"),
        ("delegate", json!({"task": " "}), -32602, "task: must not be blank"),
        ("catch_up", json!({"agent_id": 1}), -32602, "agent_id: must be a string"),
        ("catch_up", json!({"agent_id": unknown}), -32002, "no such agent"),
    ] {
        let error = prompt(&harness, name, &arguments).await["error"].clone();
        assert_eq!((&error["code"], error["message"].as_str()), (&json!(code), Some(message)), "{arguments}");
    }
}

#[actix_web::test]
async fn what_a_person_types_is_completed() {
    let harness = Harness::new();
    let mut ids = vec![launch(&harness, "say a").await, launch(&harness, "say b").await];
    ids.reverse();
    let [delegate, catch_up] = ["delegate", "catch_up"].map(of_prompt);
    let types = values(&harness, &delegate, "agent_type", "scr").await;
    assert_eq!(types, json!({"values": ["script"], "hasMore": false}));
    assert_eq!(values(&harness, &delegate, "agent_type", "scripts").await["values"], json!([]));
    assert_eq!(values(&harness, &delegate, "task", "").await["values"], json!([]));

    let templates = ask(&harness, "resources/templates/list", &json!({})).await;
    let uri = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    for reference in [catch_up, json!({"type": "ref/resource", "uri": uri})] {
        let all = values(&harness, &reference, "agent_id", "").await;
        assert_eq!(all, json!({"values": ids, "hasMore": false}), "newest first");
        let one = values(&harness, &reference, "agent_id", &ids[1]).await;
        assert_eq!(one["values"], json!([ids[1]]));
    }
}

#[actix_web::test]
async fn only_an_argument_that_exists_is_completed() {
    let harness = Harness::new();
    let argument = |name: &str| json!({"name": name, "value": ""});
    for (reference, argument, message) in [
        (json!({}), argument("task"), "type: must be present; type: must be ref/prompt or ref/resource"),
        (of_prompt("x"), argument("task"), "name: must be the name of a prompt"),
        (
            of_prompt("delegate"),
            argument("agent_id"),
            "argument: must be an argument of this prompt or resource",
        ),
        (
            json!({"type": "ref/resource", "uri": "x"}),
            argument("agent_id"),
            "uri: must be the uriTemplate of a resource",
        ),
        (of_prompt("delegate"), json!({"name": "task"}), "value: must be present"),
    ] {
        let params = json!({"ref": reference, "argument": argument});
        let error = ask(&harness, "completion/complete", &params).await["error"].clone();
        assert_eq!((&error["code"], error["message"].as_str()), (&json!(-32602), Some(message)), "{params}");
    }
}
