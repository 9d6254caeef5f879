//! Agents that launch agents, by MCP.

use std::collections::BTreeSet;

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::Harness;
use super::mcp::tool;
use super::nodes::two_nodes;

/// Calls a tool as the agent with this run. Returns its result.
async fn as_agent(harness: &Harness, run: &str, arguments: &Value) -> Value {
    let params = json!({"name": "launch_agent", "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = TestRequest::post().uri("/mcp").insert_header(("content-type", "application/json"));
    let request = request.insert_header(("tokenrail-run", run)).set_payload(message.to_string());
    harness.call(request).await.json()["result"].clone()
}

fn error(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

#[actix_web::test]
async fn a_child_has_the_limits_of_its_parent() {
    let harness = Harness::with(|_, limits| {
        limits.admission.child_agents = 1;
        limits.admission.child_depth = 1;
    });
    let parent = harness.launch("hang").await;
    let hang = json!({"prompt": "hang", "agent_type": "script"});
    let launched = as_agent(&harness, &format!("{parent}-1"), &hang).await;
    let child = launched["structuredContent"]["agent_id"].as_str().unwrap_or_else(|| panic!("{launched}"));

    let listed = tool(&harness, "list_agents", &json!({})).await;
    assert_eq!(
        (&listed["agents"][0]["agent_id"], &listed["agents"][0]["launched_by"]),
        (&json!(child), &json!(parent))
    );
    assert_eq!(listed["agents"][1]["launched_by"], Value::Null);
    let agent = harness.get(&format!("/api/agents/{child}")).await.json();
    assert_eq!((&agent["launchedBy"], &agent["launchDepth"]), (&json!(parent), &json!(1)));

    let more = as_agent(&harness, &format!("{parent}-1"), &hang).await;
    let said = error(&more);
    assert!(said.contains("limits.child_agents") && said.ends_with("(capacity_exhausted)"), "{said}");
    let deeper = as_agent(&harness, &format!("{child}-1"), &hang).await;
    let said = error(&deeper);
    assert!(said.contains("limits.child_depth") && said.ends_with("(validation_failed)"), "{said}");
    let elsewhere = json!({"prompt": "hang", "agent_type": "script", "cwd": "/elsewhere"});
    let other = harness.launch("hang").await;
    let outside = as_agent(&harness, &format!("{other}-12"), &elsewhere).await;
    let said = error(&outside);
    assert!(said.starts_with("cwd: ") && said.ends_with("(cwd_not_allowed)"), "{said}");
}

#[actix_web::test]
async fn a_client_that_is_no_agent_has_no_parent_and_a_wrong_run_is_told() {
    let harness = Harness::with(|_, limits| limits.admission.child_agents = 1);
    let hang = json!({"prompt": "hang", "agent_type": "script"});
    for _ in 0..2 {
        let launched = as_agent(&harness, "", &hang).await;
        assert_eq!(launched["isError"], false, "{launched}");
    }
    let parent = harness.launch("hang").await;
    for wrong in ["${TOKENRAIL_RUN}", "x-1", &parent, &format!("{parent}-x")] {
        let refused = as_agent(&harness, wrong, &hang).await;
        assert!(error(&refused).starts_with("Tokenrail-Run: "), "{wrong}: {refused}");
    }
}

#[actix_web::test]
async fn each_parent_has_keys_of_its_own_also_at_another_server() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let parents = [first.launch("hang").await, first.launch("hang").await];
    let runs = ["", &*format!("{}-1", parents[0]), &*format!("{}-1", parents[1])];
    let launch = json!({"prompt": "hang", "agent_type": "script", "idempotency_key": "task-1"});
    let mut launched = BTreeSet::new();
    for run in runs {
        let new = as_agent(first, run, &launch).await["structuredContent"].clone();
        assert_eq!(new["launched_before"], false, "{run}: {new}");
        // The number of the run is another one after the parent was resumed.
        let later = run.strip_suffix("-1").map_or_else(String::new, |parent| format!("{parent}-2"));
        for (harness, run) in [(first, run.to_owned()), (second, later)] {
            let again = as_agent(harness, &run, &launch).await["structuredContent"].clone();
            let expected = (&new["agent_id"], &json!(true));
            assert_eq!((&again["agent_id"], &again["launched_before"]), expected, "{run}");
        }
        launched.insert(new["agent_id"].to_string());
    }
    assert_eq!(launched.len(), runs.len());
    let other = TestRequest::post().uri("/api/agents").insert_header(("idempotency-key", "task-1"));
    let other = other.insert_header(("content-type", "application/json"));
    let other = first.call(other.set_payload(r#"{"prompt":"hang","type":"script"}"#)).await;
    assert_eq!(other.status, 201, "keys of another protocol are others: {other:?}");
    assert!(!launched.contains(&other.json()["agentId"].to_string()));
}
