//! What axe reports about the page: nothing serious, with any colour scheme and at any width.

use serde_json::json;

use super::{Browser, Look, address, demo_config, ended};
use crate::harness::TestServer;

pub(super) const LOOKS: [(&str, Look); 4] = [
    ("light", Look { dark: false, phone: false }),
    ("dark", Look { dark: true, phone: false }),
    ("phone", Look { dark: false, phone: true }),
    ("dark phone", Look { dark: true, phone: true }),
];

/// The rows that do not show their time or their type.
const ROWS_WITHOUT_TIME_OR_TYPE: &str = "[...document.querySelectorAll('#events .row')]
  .filter((row) => !['.row-time', '.row-type'].every((part) => row.querySelector(part)?.checkVisibility({ opacityProperty: true })))
  .map((row) => row.dataset.type)";

#[tokio::test]
async fn axe_finds_nothing_serious_before_the_first_agent() {
    let server = TestServer::start_with(&demo_config(0));
    let browser = Browser::start();
    for (name, look) in LOOKS {
        let tab = browser.tab(look).await;
        tab.visit(&format!("http://{}/", server.authority())).await;
        tab.until_there("[data-testid=ask-for-token]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, the form for the token");
        tab.visit(&address(&server, "/?")).await;
        tab.until_there("[data-testid=launch-demo]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, the empty state");
    }
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_conversations_and_forms() {
    let server = TestServer::start_with(&demo_config(0));
    let demo = server.launch_as("demo", "Show me").await;
    let failed = server.launch(&json!({ "mode": "crash", "deltas": 3 })).await;
    let running = server.launch(&json!({ "mode": "tool", "gate": server.folder.path().join("never") })).await;
    server.wait_for_status(&demo, "completed").await;
    server.wait_for_status(&failed, "failed").await;
    let browser = Browser::start();
    for (name, look) in LOOKS {
        let tab = browser.tab(look).await;
        tab.visit(&address(&server, &format!("/agents/{demo}"))).await;
        tab.until(&ended(1)).await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, a conversation");
        let without_details = tab.evaluate(ROWS_WITHOUT_TIME_OR_TYPE).await;
        assert_ne!(without_details, json!([]), "{name}, types are for developers");
        // The key, because on a phone the button is in a sheet.
        tab.press("d").await;
        assert_eq!(tab.evaluate(ROWS_WITHOUT_TIME_OR_TYPE).await, json!([]), "{name}");
        assert_eq!(tab.faults().await, [""; 0], "{name}, a conversation with details");
        tab.press("/").await;
        tab.type_in("report").await;
        tab.until_there("[data-found]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, a search");
        tab.press("Escape").await;
        if look.phone {
            tab.click("[data-testid=details]").await;
            assert_eq!(tab.faults().await, [""; 0], "{name}, the details");
        }
        tab.click("[data-testid=action-replay]").await;
        tab.until_there("[data-testid=scrubber]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, a replay");
        tab.visit(&address(&server, &format!("/agents/{failed}?"))).await;
        tab.until_there("[data-testid=error-card]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, an error");
        tab.visit(&address(&server, &format!("/agents/{running}?"))).await;
        tab.until_there("[data-testid=tool-card][data-state=running]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, a tool that runs");
        if look.phone {
            tab.click("[data-testid=menu]").await;
            assert_eq!(tab.faults().await, [""; 0], "{name}, the list of agents");
        }
        tab.visit(&address(&server, "/?")).await;
        tab.until_there("[data-testid=launch-form]").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, the launch form");
    }
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_an_open_question() {
    let command = format!("echo ok{}rm -r build", "\n".repeat(60));
    let server = crate::questions::server_asking_for(&json!({ "command": command, "sandbox": false }));
    let id = crate::questions::asking(&server).await;
    let browser = Browser::start();
    for (name, look) in LOOKS {
        let tab = browser.tab(look).await;
        tab.visit(&address(&server, &format!("/agents/{id}"))).await;
        tab.until_there("#events [data-testid=answer-allow_once]:disabled").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, a question that is not seen to its end");
        // On a phone, the list scrolls instead of the box.
        tab.evaluate("document.querySelector('#events').scrollTop = 0").await;
        tab.until("document.querySelector('#events .question [role=status]').textContent.includes('scroll to the end')").await;
        tab.evaluate("document.querySelector('#events').scrollTop = 100_000").await;
        tab.evaluate("document.querySelector('#events .question-input').scrollTop = 10_000").await;
        tab.until_there("#events [data-testid=answer-allow_once]:enabled").await;
        assert_eq!(tab.faults().await, [""; 0], "{name}, a question that can be answered");
    }
}
