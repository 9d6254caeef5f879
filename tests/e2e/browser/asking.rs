//! What a user does with agents: launch, follow up, wait in the queue, cancel, retry.

use std::path::PathBuf;

use serde_json::json;

use super::{Browser, Look, Tab, address, agent_in, assert_as_stored, ended, says, tab_on};
use crate::harness::{TestServer, no_process_is_left, numbers};

#[tokio::test]
async fn an_agent_is_launched_and_asked_again() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.fill("[name=prompt]", &json!({ "deltas": 12 }).to_string()).await;
    tab.choose("[name=type]", "fake").await;
    tab.fill("[name=name]", "The counter").await;
    tab.click("[data-testid=launch-form] [type=submit]").await;
    let id = agent_in(&tab).await;
    tab.until(&ended(1)).await;
    tab.until(&says(&numbers(12))).await;
    assert!(tab.text("[data-testid=agents]").await.contains("The counter"));
    tab.fill("[aria-label='Message to the agent']", &json!({ "deltas": 4 }).to_string()).await;
    tab.click("[data-testid=send]").await;
    tab.until(&format!("{} && {}", ended(2), says(&numbers(4)))).await;
    assert_as_stored(&tab, &server, &id).await;
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["turn"], 2);
}

/// A server with an agent that has said two numbers and goes on when the file exists, and a tab that shows it.
async fn held_in_tab() -> (TestServer, Browser, String, Tab, PathBuf) {
    let server = TestServer::start();
    let browser = Browser::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 9, "gate": gate, "gate_after": 2 })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&says(&numbers(2))).await;
    (server, browser, id, tab, gate)
}

#[tokio::test]
async fn what_is_asked_meanwhile_waits_in_the_queue() {
    let (server, _browser, id, tab, gate) = held_in_tab().await;
    tab.fill("#composer-text", &json!({ "deltas": 6 }).to_string()).await;
    tab.press("Enter").await;
    tab.until(
        "document.querySelector('[data-testid=queue]')?.textContent.includes('1 message in the queue')",
    )
    .await;
    std::fs::write(gate, "").unwrap();
    tab.until(&format!("{} && {}", ended(2), says(&numbers(6)))).await;
    tab.until("document.querySelector('[data-testid=queue]') === null").await;
    assert_as_stored(&tab, &server, &id).await;
}

#[tokio::test]
async fn a_queued_message_can_be_withdrawn_and_edited() {
    let (server, _browser, id, tab, gate) = held_in_tab().await;
    for (count, deltas) in [(1, 5), (2, 7)] {
        tab.fill("#composer-text", &json!({ "deltas": deltas }).to_string()).await;
        tab.press("Enter").await;
        tab.until(&format!("document.querySelectorAll('[data-testid=queue] li').length === {count}")).await;
    }
    let button = |of: &str| format!("[data-testid=queue] li:first-child button[data-testid={of}]");
    tab.click(&button("withdraw")).await;
    tab.until("document.querySelectorAll('[data-testid=queue] li').length === 1").await;
    tab.click(&button("edit-queued")).await;
    tab.until("document.querySelector('[data-testid=queue]') === null").await;
    tab.until(r#"document.querySelector('#composer-text').value === '{"deltas":7}'"#).await;
    tab.fill("#composer-text", &json!({ "deltas": 6 }).to_string()).await;
    tab.press("Enter").await;
    tab.until_there("[data-testid=queue] li").await;
    std::fs::write(gate, "").unwrap();
    tab.until(&format!("{} && {}", ended(4), says(&numbers(6)))).await;
    let turns = server.get(&format!("/api/agents/{id}/turns")).await;
    let states: Vec<_> = turns.as_array().unwrap().iter().map(|turn| turn["status"].clone()).collect();
    assert_eq!(states, ["completed", "cancelled", "cancelled", "completed"]);
    assert_as_stored(&tab, &server, &id).await;
}

#[tokio::test]
async fn a_queued_message_is_sent_now_and_exactly_once() {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&says(&numbers(3))).await;
    for (count, deltas) in [(1, 5), (2, 7)] {
        tab.fill("#composer-text", &json!({ "deltas": deltas }).to_string()).await;
        tab.press("Enter").await;
        tab.until(&format!("document.querySelectorAll('[data-testid=queue] li').length === {count}")).await;
    }
    tab.click("[data-testid=queue] [data-testid=send-now]").await;
    tab.until(&format!("{} && {}", ended(3), says(&numbers(7)))).await;
    tab.until("document.querySelector('[data-testid=queue]') === null").await;
    let turns = server.get(&format!("/api/agents/{id}/turns")).await;
    let turns: Vec<_> = turns
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| (turn["status"].clone(), turn["prompt"].clone()))
        .collect();
    let expected = [
        ("cancelled", r#"{"deltas":3,"mode":"hang"}"#),
        ("completed", r#"{"deltas":5}"#),
        ("completed", r#"{"deltas":7}"#),
    ];
    assert_eq!(turns, expected.map(|(status, prompt)| (json!(status), json!(prompt))));
    no_process_is_left(&id).await;
    assert_as_stored(&tab, &server, &id).await;
}

#[tokio::test]
async fn a_cancel_ends_the_agent_and_every_process_of_it() {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch(&json!({ "mode": "hang", "deltas": 5 })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&says(&numbers(5))).await;
    tab.click("[data-testid=stop]").await;
    tab.until_there(".head [data-status=cancelled]").await;
    tab.until_there("[data-testid=agents] [data-status=cancelled]").await;
    no_process_is_left(&id).await;
    assert_eq!(
        tab.text("#events [data-testid=row-text] .words").await.matches('4').count(),
        1,
        "what it had said stays"
    );
    tab.until("document.querySelector('[data-testid=stop]') === null").await;
}

#[tokio::test]
async fn an_agent_that_fails_says_why_and_can_be_asked_again() {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch(&json!({ "mode": "crash", "deltas": 3, "code": 7 })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until_there("[data-testid=error-card]").await;
    let class = tab.evaluate("document.querySelector('[data-testid=error-card]').dataset.class").await;
    let events = server.events(&id).await;
    let error = events.iter().find(|event| event["metadata"]["eventType"] == "error").expect("an error");
    assert_eq!(class, error["metadata"]["error"]["class"], "{error}");
    tab.click("[data-testid=retry]").await;
    server.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "failed").await;
    tab.until("document.querySelectorAll('[data-testid=error-card]').length === 2").await;
}

#[tokio::test]
async fn a_launch_that_is_refused_says_why() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.fill("[name=prompt]", "{}").await;
    // Until the types are loaded, the form cannot be sent.
    tab.choose("[name=type]", "fake").await;
    tab.fill("[name=cwd]", "/etc").await;
    tab.press("Enter").await;
    tab.until(
        "document.querySelector('[data-testid=problem-cwd]')?.textContent.includes('tokenrail allow /etc')",
    )
    .await;
    assert_eq!(server.get("/api/agents").await, json!([]));
    assert_eq!(
        tab.evaluate("document.querySelector('[name=prompt]').value").await,
        "{}",
        "nothing is to be written twice"
    );
}

#[tokio::test]
async fn an_agent_is_launched_again() {
    let server = TestServer::start();
    let browser = Browser::start();
    let prompt = json!({ "deltas": 4 });
    let first = server.launch_to_completion(&prompt).await;
    let tab = tab_on(&browser, &server, &first).await;
    tab.until(&ended(1)).await;
    tab.click("[data-testid=details]").await;
    tab.click("[aria-label='Launch again']").await;
    tab.until(&format!("document.querySelector('[name=prompt]')?.value === {}", json!(prompt.to_string())))
        .await;
    tab.until("document.querySelector('[name=type]').value === 'fake'").await;
    tab.click("[data-testid=launch-form] [type=submit]").await;
    let id = agent_in(&tab).await;
    tab.until(&format!("{} && {}", ended(1), says(&numbers(4)))).await;
    assert_ne!(id, first);
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_the_first_page_cannot_read_is_told_and_read_again() {
    let server = TestServer::start_with(&super::demo_config(0));
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    let paths = ["/api/agent-types", "/api/agents?*"];
    for path in paths {
        tab.refuse(path).await;
    }
    tab.visit(&address(&server, "/")).await;
    tab.until_there(".home [data-testid=trouble]").await;
    tab.until_there(".agents [data-testid=trouble]").await;
    assert_eq!(tab.text(".home-title").await, "New agent", "nobody knows whether there is one");
    for path in paths {
        tab.refuse_no_more(path).await;
    }
    // The page also reloads the types automatically, which removes the button.
    tab.evaluate("document.querySelector('.home [data-testid=trouble] button')?.click()").await;
    tab.until_there("[data-testid=launch-demo]").await;
    // The page reloads the list automatically.
    tab.until("document.querySelector('.home-title').textContent === 'Launch an agent'").await;
    tab.until("document.querySelector('[data-testid=trouble]') === null").await;
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_by_a_click() {
    let server = crate::questions::server("");
    let browser = Browser::start();
    let id = crate::questions::asking(&server).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until_there("[data-testid=question-card][data-state=open]").await;
    assert!(tab.text("[data-testid=question-card]").await.contains("rm -r build"));
    tab.click("[data-testid=answer-allow_once]").await;
    tab.until_there("[data-testid=question-card][data-state=resolved]").await;
    tab.until(&ended(1)).await;
    assert!(tab.text("[data-testid=question-card]").await.contains("Answered: Allow once."));
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_by_a_key_outside_of_text_fields() {
    let server = crate::questions::server("");
    let browser = Browser::start();
    let id = crate::questions::asking(&server).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until_there("#events [data-testid=answer-reject_once]:enabled").await;
    tab.press("c").await;
    tab.press("3").await;
    tab.until("document.querySelector('#composer-text').value === '3'").await;
    tab.evaluate("document.activeElement.blur()").await;
    tab.press("3").await;
    tab.until_there("[data-testid=question-card][data-state=resolved]").await;
    assert!(tab.text("[data-testid=question-card]").await.contains("Answered: Reject."));
}

#[tokio::test]
async fn what_does_not_fit_is_allowed_only_when_its_end_was_seen() {
    let command = format!("echo ok{}rm -r build", "\n".repeat(60));
    let server = crate::questions::server_asking_for(&json!({ "command": command, "sandbox": false }));
    let browser = Browser::start();
    let id = crate::questions::asking(&server).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until_there("#events [data-testid=answer-allow_once]:disabled").await;
    tab.until_there("#events [data-testid=answer-reject_once]:enabled").await;
    let shown = tab.text(".question-input").await;
    assert!(shown.contains(&command) && shown.contains("sandboxfalse"), "{shown}");
    tab.evaluate("document.querySelector('#events .question-input').focus()").await;
    tab.press("End").await;
    tab.until_there("#events [data-testid=answer-allow_once]:enabled").await;
    tab.click("#events [data-testid=answer-allow_once]").await;
    tab.until(&ended(1)).await;
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
}
