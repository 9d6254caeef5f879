//! The page in a real browser, with a real server. `tests/clients/page` contains the driver. `TOKENRAIL_TEST_CHROMIUM`
//! is the path of the browser, and `TOKENRAIL_TEST_CLIENTS` is the folder with the driver's packages;
//! `cargo xtask test` sets both.

mod accessible;
mod answering;
mod asking;
mod behind_nginx;
mod changes;
mod diffs;
mod event_source;
mod hostile;
mod images;
mod list_order;
mod login;
mod lost_node;
mod needs;
mod nginx;
mod other_origins;
mod phone;
mod pictures;
mod reading;
mod recording;
mod speed;
mod streaming;
mod tab;
mod unwatched;
mod vite;

use serde_json::Value;

use crate::harness::{TestServer, fake_config};
use tab::{Browser, Look, Row, Tab};

/// The recorded session that the start page offers, replayed faster by this factor.
fn demo_config(speed: u32) -> String {
    format!("{}\n[agents.demo]\nrunner = \"replay\"\nspeed = {speed}\n", fake_config())
}

/// An address of the page with the token in the fragment, which browsers do not send.
fn address(server: &TestServer, path: &str) -> String {
    format!("http://{}{path}#token={}", server.authority(), server.token())
}

/// A tab that shows an agent.
async fn tab_on(browser: &Browser, server: &TestServer, id: &str) -> Tab {
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(server, &format!("/agents/{id}"))).await;
    tab.until("document.querySelector('[data-index]')").await;
    tab
}

/// An agent that has completed its turn, and a tab that shows it.
async fn ended_in_tab(script: &Value) -> (TestServer, Browser, String, Tab) {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch_to_completion(script).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&ended(1)).await;
    (server, browser, id, tab)
}

/// The id of the agent that a tab shows.
async fn agent_in(tab: &Tab) -> String {
    let path = tab.until("location.pathname.startsWith('/agents/') && location.pathname").await;
    path.as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

/// An expression: the tab shows the ends of at least this many turns. The newest rows are always in the document.
fn ended(turns: usize) -> String {
    format!(
        "document.querySelectorAll('#events [data-testid=result]').length >= {turns} && !document.querySelector('.head [data-status=running], .head [data-status=initializing]')"
    )
}

/// An expression: this is the agent's last text.
fn says(text: &str) -> String {
    let text = serde_json::to_string(text.trim_end()).unwrap();
    format!(
        "[...document.querySelectorAll('#events [data-testid=row-text]')].at(-1)?.querySelector('.words')?.textContent.trim() === {text}"
    )
}

/// The rows that the page must show for these events, from the first to the last.
fn rows_of(events: &[Value]) -> Vec<Row> {
    let mut rows = Vec::new();
    for event in events {
        let (content, metadata) = (&event["content"], &event["metadata"]);
        match metadata["eventType"].as_str().unwrap() {
            "user_message" => rows.push(Row::new("prompt", content.as_str().unwrap())),
            "error" => rows.push(Row::new("error", content.as_str().unwrap())),
            "result" => rows.push(Row::new("result", metadata["outcome"].as_str().unwrap())),
            "message" => match content {
                Value::Array(blocks) => rows.extend(blocks.iter().filter_map(|block| row_of(block, events))),
                text => rows.push(Row::new("text", text.as_str().unwrap())),
            },
            _ => {}
        }
    }
    rows
}

fn row_of(block: &Value, events: &[Value]) -> Option<Row> {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    match text("type") {
        "text" => Some(Row::new("text", text("text"))).filter(|row| !row.text.is_empty()),
        "reasoning" => Some(Row::new("thinking", text("text"))).filter(|row| !row.text.is_empty()),
        "tool_use" => {
            let answers = |event: &&Value| {
                event["metadata"]["eventType"] == "tool_result"
                    && event["metadata"]["toolCallId"] == block["id"]
            };
            let result =
                events.iter().find(answers).map(|event| event["content"].as_str().unwrap().to_owned());
            Some(Row { output: result.unwrap_or_default(), ..Row::new("tool", text("name")) })
        }
        other => panic!("{other} is nothing that these agents say"),
    }
}

/// Shows the texts as they were written, or as Markdown again. The switch is in the menu of the header.
async fn toggle_text(tab: &Tab) {
    tab.click("[data-testid=details]").await;
    tab.click("[data-testid=toggle-text]").await;
    tab.press("Escape").await;
    tab.until("document.querySelector('[data-testid=sheet][open]') === null").await;
}

/// Checks that a tab shows what is stored, completely and once, as written.
async fn assert_as_stored(tab: &Tab, server: &TestServer, id: &str) {
    // The page shows the newest messages before it has loaded the earlier ones.
    tab.until("document.querySelector('.earlier') === null").await;
    toggle_text(tab).await;
    let shown = tab.rows().await;
    toggle_text(tab).await;
    assert_eq!(shown, rows_of(&server.events(id).await));
}
