//! A conversation in progress: the page shows what is stored, whatever happens meanwhile.

use serde_json::json;

use super::{Browser, Look, address, agent_in, assert_as_stored, demo_config, ended, says, tab_on};
use crate::harness::{TestServer, numbers};

/// Records each text of the answer that does not extend the one before it: a gap, a repetition, a step back.
const WATCH_THE_ANSWER: &str = r##"(() => {
  window.faults = [];
  window.changes = 0;
  let before = "";
  new MutationObserver(() => {
    const now = document.querySelector("#events [data-testid=row-text] .words")?.textContent.trimEnd() ?? "";
    if (now === before) return;
    window.changes++;
    const whole = Array.from({ length: now.split(" ").length }, (_, number) => number).join(" ");
    if (!whole.startsWith(now) || now.length < before.length) window.faults.push([before.slice(-40), now.slice(-40)]);
    before = now;
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
  return true;
})()"##;

/// What moves in the list and in the conversation.
const MOVING: &str = "document.getAnimations()
  .filter(({ playState, effect }) => playState === 'running' && effect.target.closest('.side, .main'))
  .map(({ effect }) => `${effect.target.className} ${effect.pseudoElement}`)";

#[tokio::test]
async fn the_token_comes_by_the_fragment_and_leaves_the_address_bar() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.until("document.querySelector('[data-testid=connection]')?.textContent === 'Live'").await;
    assert_eq!(tab.address().await, format!("http://{}/", server.authority()));
    tab.reload().await;
    tab.until("document.querySelector('[data-testid=connection]')?.textContent === 'Live'").await;
    // A reload at this early moment must not lose anything either.
    let hasty = browser.tab(Look::default()).await;
    hasty.visit(&address(&server, "/")).await;
    hasty.until("location.hash === ''").await;
    hasty.reload().await;
    hasty.until("document.querySelector('[data-testid=connection]')?.textContent === 'Live'").await;
    let heard = tab.heard().await;
    assert!(heard.requests.iter().all(|url| !url.contains(server.token())), "{:?}", heard.requests);
}

#[tokio::test]
async fn without_a_session_it_says_how_to_log_in() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&format!("http://{}/", server.authority())).await;
    tab.until_there("[data-testid=ask-for-token]").await;
    assert!(tab.text("main").await.contains("prints a link that logs this browser in"));
    tab.fill("input", "no-such-token").await;
    tab.press("Enter").await;
    tab.until("document.querySelector('h1')?.textContent === 'Wrong token'").await;
    // The whole address, as the server printed it, is accepted too.
    tab.fill("input", &address(&server, "/")).await;
    tab.press("Enter").await;
    tab.until_there("[data-testid=launch-form]").await;
    assert_eq!(tab.address().await, format!("http://{}/", server.authority()));
}

#[tokio::test]
async fn an_address_with_a_token_opens_in_a_tab_that_has_asked_for_it() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    let plain = format!("http://{}/", server.authority());
    tab.visit(&plain).await;
    tab.until_there("[data-testid=ask-for-token]").await;
    // A browser does not load a page again if only the part after `#` changes.
    tab.evaluate("window.same = true").await;
    tab.visit(&format!("{plain}#token=no-such-token")).await;
    tab.until("document.querySelector('h1')?.textContent === 'Wrong token'").await;
    tab.visit(&address(&server, "/")).await;
    tab.until("document.querySelector('[data-testid=connection]')?.textContent === 'Live'").await;
    assert_eq!(tab.evaluate("window.same").await, true);
    assert_eq!(tab.address().await, plain);
}

#[tokio::test]
async fn the_demo_streams_after_one_click_and_ends_as_the_stored_rows() {
    let server = TestServer::start_with(&demo_config(2));
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.click("[data-testid=launch-demo]").await;
    let id = agent_in(&tab).await;
    tab.until(&ended(1)).await;
    assert_eq!(tab.evaluate("window.noted.streamed").await, true, "it was seen to grow");
    assert_as_stored(&tab, &server, &id).await;
    let kinds: Vec<_> = tab.rows().await.into_iter().map(|row| row.kind).collect();
    assert_eq!(kinds[..4], ["prompt", "thinking", "text", "tool"]);
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
}

#[tokio::test]
async fn a_reload_in_mid_stream_shows_the_same() {
    let server = TestServer::start();
    let browser = Browser::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 60, "gate": gate, "gate_after": 25 })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&says(&numbers(25))).await;
    let before = tab.rows().await;
    tab.reload().await;
    tab.until(&says(&numbers(25))).await;
    assert_eq!(tab.rows().await, before);
    std::fs::write(gate, "").unwrap();
    tab.until(&ended(1)).await;
    assert_as_stored(&tab, &server, &id).await;
}

#[tokio::test]
async fn a_server_that_is_killed_in_mid_stream_leaves_no_gap_and_no_double() {
    let mut server = TestServer::start();
    let browser = Browser::start();
    let hurry = server.folder.path().join("hurry");
    let deltas = 3000;
    let id = server.launch(&json!({ "deltas": deltas, "pace_us": 10_000, "hurry": hurry })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.evaluate(WATCH_THE_ANSWER).await;
    for _ in 0..2 {
        // Wait for progress after each restart, so that each kill hits an active stream.
        tab.until("window.seen = window.changes, true").await;
        tab.until("window.changes > window.seen + 10").await;
        server.kill_9();
        tab.until("['Reconnecting', 'Connecting'].includes(document.querySelector('[data-testid=connection]').textContent)")
            .await;
        server.start_again();
        tab.until("document.querySelector('[data-testid=connection]').textContent === 'Live'").await;
    }
    std::fs::write(hurry, "").unwrap();
    tab.until(&ended(1)).await;
    assert_eq!(tab.evaluate("window.faults").await, json!([]), "and the page was never loaded again");
    assert_as_stored(&tab, &server, &id).await;
}

#[tokio::test]
async fn a_message_written_while_the_server_is_away_is_sent_once_when_it_is_back() {
    let mut server = TestServer::start();
    let browser = Browser::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 60, "gate": gate, "gate_after": 25 })).await;
    let tab = tab_on(&browser, &server, &id).await;
    tab.until(&says(&numbers(25))).await;
    assert_ne!(tab.evaluate(MOVING).await, json!([]), "a running agent");
    server.kill_9();
    let banner = "document.querySelector('[data-testid=banner]')?.textContent ?? ''";
    tab.until(&format!("/^Connection lost[.] Retrying/.test({banner})")).await;
    assert_eq!(tab.faults().await, [""; 0], "a lost connection");
    assert_eq!(tab.evaluate(MOVING).await, json!([]), "what is old does not move");
    tab.fill("#composer-text", &json!({ "deltas": 6 }).to_string()).await;
    tab.press("Enter").await;
    tab.until_there("[data-testid=unsent]").await;
    // The agent goes on without the server.
    std::fs::write(gate, "").unwrap();
    server.start_again();
    tab.until(&format!("/^Caught up: [1-9]\\d* events\\.$/.test({banner})")).await;
    tab.until("document.querySelector('[data-testid=unsent]') === null").await;
    tab.until(&ended(2)).await;
    tab.until(&format!("{banner} === ''")).await;
    let events = server.events(&id).await;
    let asked = events.iter().filter(|event| event["metadata"]["eventType"] == "user_message").count();
    assert_eq!(asked, 2, "the launch and the message");
    assert!(!tab.text("main").await.contains("Cannot reach the server"));
}

#[tokio::test]
async fn two_tabs_show_the_same() {
    let server = TestServer::start();
    let browser = Browser::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "mode": "tool", "deltas": 40, "gate": gate })).await;
    let first = tab_on(&browser, &server, &id).await;
    first.until_there("[data-testid=tool-card][data-state=running]").await;
    let second = tab_on(&browser, &server, &id).await;
    second.until_there("[data-testid=tool-card][data-state=running]").await;
    assert_eq!(first.rows().await, second.rows().await);
    std::fs::write(gate, "").unwrap();
    for tab in [&first, &second] {
        tab.until(&ended(1)).await;
        assert_as_stored(tab, &server, &id).await;
    }
    // One tab receives what the other one does.
    second.fill("#composer-text", &json!({ "deltas": 3 }).to_string()).await;
    second.press("Enter").await;
    first.until(&format!("{} && {}", ended(2), says(&numbers(3)))).await;
    second.until(&ended(2)).await;
    assert_eq!(first.rows().await, second.rows().await);
}

#[tokio::test]
async fn a_slow_tab_costs_nobody_anything_and_catches_up() {
    let server = TestServer::start();
    let browser = Browser::start();
    let gate = server.folder.path().join("gate");
    let deltas = 2000;
    let id = server.launch(&json!({ "deltas": deltas, "gate": gate, "gate_after": 5 })).await;
    let slow = tab_on(&browser, &server, &id).await;
    let quick = tab_on(&browser, &server, &id).await;
    slow.slow_down(8).await;
    std::fs::write(gate, "").unwrap();
    quick.until(&ended(1)).await;
    assert_as_stored(&quick, &server, &id).await;
    slow.until(&ended(1)).await;
    slow.slow_down(1).await;
    assert_as_stored(&slow, &server, &id).await;
}
