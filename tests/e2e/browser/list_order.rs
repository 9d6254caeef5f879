//! The user puts order into the list: renames, pins, archives and deletes agents, one by one and several at once.

use serde_json::json;

use super::{Browser, Look, Tab, address, ended};
use crate::harness::TestServer;

/// Waits until the list counts so many agents.
async fn counts(tab: &Tab, text: &str) {
    tab.until(&format!("document.querySelector('[data-testid=agent-counts]')?.textContent === '{text}'"))
        .await;
}

fn row(id: &str) -> String {
    format!(".agent-row:has([data-agent-id='{id}'])")
}

async fn three_agents(server: &TestServer) -> [String; 3] {
    let mut ids = Vec::new();
    for word in ["one", "two", "three"] {
        ids.push(server.launch_to_completion(&json!({ "say": [word] })).await);
    }
    ids.try_into().unwrap()
}

async fn select(tab: &Tab, ids: [&String; 2]) {
    tab.click("[data-testid=select]").await;
    for id in ids {
        tab.click(&format!("{} input", row(id))).await;
    }
}

#[tokio::test]
async fn agents_are_renamed_pinned_archived_and_deleted_in_the_list() {
    let server = TestServer::start();
    let [one, two, three] = three_agents(&server).await;
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, &format!("/agents/{one}"))).await;
    tab.until(&ended(1)).await;
    counts(&tab, "3 in the list").await;

    // The title of the conversation is where the user changes it.
    tab.click("[data-testid=rename]").await;
    tab.until("document.activeElement?.dataset.testid === 'name'").await;
    assert_eq!(tab.faults().await, [""; 0], "the field for the name");
    tab.type_in("Fix the build").await;
    tab.press("Enter").await;
    for place in ["h2.head-title".to_owned(), format!("{} .agent-title", row(&one))] {
        tab.until(&format!("document.querySelector(\"{place}\")?.textContent === 'Fix the build'")).await;
    }
    assert_eq!(server.get(&format!("/api/agents/{one}")).await["name"], "Fix the build");

    // The palette asks for the name too.
    tab.press("Control+k").await;
    tab.type_in("rename").await;
    tab.press("Enter").await;
    tab.until("document.activeElement?.dataset.testid === 'name'").await;
    tab.type_in("Mend the build").await;
    tab.press("Enter").await;
    tab.until("document.querySelector('h2.head-title')?.textContent === 'Mend the build'").await;

    // The actions of a row work by keyboard.
    tab.evaluate(&format!("document.querySelector(\"{} [data-testid=agent-actions]\").focus()", row(&two)))
        .await;
    tab.press("Enter").await;
    tab.until_there("[data-testid=agent-actions-dialog][open]").await;
    assert_eq!(tab.faults().await, [""; 0], "the actions of an agent");
    tab.evaluate("document.querySelector('.agent-actions-buttons button').focus()").await;
    tab.press("Enter").await;
    tab.until_there(&format!("[data-testid=pinned] [data-agent-id='{two}']")).await;
    tab.until("document.querySelector('[data-testid=agent-actions-dialog]') === null").await;

    select(&tab, [&one, &three]).await;
    tab.until("document.querySelector('.selection-count')?.textContent === '2 agents selected'").await;
    assert_eq!(tab.faults().await, [""; 0], "a selection");
    tab.click("[data-testid=selection] button:has-text('Archive')").await;
    counts(&tab, "1 in the list").await;
    tab.until("document.querySelector('[data-testid=selection]') === null").await;
    tab.until_there("[data-testid=toggle-archive][aria-pressed=true]").await;

    tab.click("[data-testid=filter-archived]").await;
    counts(&tab, "2 archived").await;
    assert_eq!(tab.faults().await, [""; 0], "the archived agents");
    let sent = json!({ "content": r#"{"say":["more"]}"# });
    server.post(&format!("/api/agents/{one}/messages"), &sent).await;
    counts(&tab, "1 archived").await;
    tab.click("[data-testid=filter-archived]").await;
    counts(&tab, "2 in the list").await;

    select(&tab, [&one, &two]).await;
    tab.click("[data-testid=selection] button:has-text('Delete')").await;
    tab.click("[data-testid=selection] button:has-text('Delete 2 agents?')").await;
    counts(&tab, "0 in the list").await;
    assert_eq!(server.get("/api/agents").await, json!([]));
    assert_eq!(server.get("/api/agents?archived=true").await[0]["id"], json!(three));
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
}

/// The controls of the list that are too small for a finger. A checkbox is smaller, but a touch of its row selects too.
const TOO_SMALL: &str =
    "[...document.querySelectorAll('.side button, .side a, dialog[open] button, dialog[open] input')]
  .filter((control) => control.checkVisibility())
  .map((control) => [control.ariaLabel ?? control.textContent, control.getBoundingClientRect()])
  .filter(([, { width, height }]) => [width, height].some((px) => Math.round(px * 1000) < 44000))
  .map(([name, { width, height }]) => `${name}: ${width} x ${height}`)";

#[tokio::test]
async fn agents_are_selected_with_a_finger_and_the_actions_are_large_enough() {
    let server = TestServer::start();
    let [one, two, _] = three_agents(&server).await;
    let browser = Browser::start();
    let tab = browser.tab(Look { dark: false, phone: true }).await;
    tab.visit(&address(&server, "/")).await;
    tab.click("[data-testid=menu]").await;
    counts(&tab, "3 in the list").await;
    tab.click(&format!("{} [data-testid=agent-actions]", row(&one))).await;
    tab.until_there("[data-testid=agent-actions-dialog][open]").await;
    assert_eq!(tab.evaluate(TOO_SMALL).await, json!([]), "the actions of an agent");
    assert_eq!(tab.faults().await, [""; 0], "the actions of an agent");
    tab.click("[data-testid=agent-actions-dialog] button:has-text('Select')").await;
    tab.click(&format!("[data-agent-id='{two}']")).await;
    tab.until("document.querySelector('.selection-count')?.textContent === '2 agents selected'").await;
    assert_eq!(tab.evaluate(TOO_SMALL).await, json!([]), "the selection");
    assert_eq!(tab.faults().await, [""; 0], "a selection");
    tab.click("[data-testid=selection] button:has-text('Archive')").await;
    counts(&tab, "1 in the list").await;
}
