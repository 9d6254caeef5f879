//! The page on a phone: little room, and fingers instead of a pointer.

use serde_json::json;

use super::{Browser, Look, address, ended};
use crate::harness::TestServer;

/// The visible controls around the conversation that are too small for a finger: less than 44 pixels high or wide.
const TOO_SMALL: &str =
    "[...document.querySelectorAll('.bar, .head, .composer, .side, dialog[open], .nothing')]
  .flatMap((part) => [...part.querySelectorAll('button, a, select, input, textarea')])
  .filter((control) => control.checkVisibility() && !control.closest('[inert]'))
  .map((control) => [control.ariaLabel ?? control.textContent, control.getBoundingClientRect()])
  .filter(([, { width, height }]) => [width, height].some((px) => Math.round(px * 1000) < 44000))
  .map(([name, { width, height }]) => `${name}: ${width} x ${height}`)";

#[tokio::test]
async fn the_header_is_one_line_and_everything_can_be_touched() {
    let server = TestServer::start();
    let browser = Browser::start();
    for number in 0..6 {
        server.launch_to_completion(&json!({ "deltas": number + 1 })).await;
    }
    let id = server.launch_to_completion(&json!({ "deltas": 5 })).await;
    let tab = browser.tab(Look { dark: false, phone: true }).await;
    tab.visit(&address(&server, &format!("/agents/{id}"))).await;
    tab.until(&ended(1)).await;
    let height = tab.evaluate("document.querySelector('.head').getBoundingClientRect().height").await;
    assert!(height.as_f64().unwrap() < 60.0, "{height} pixels are more than one line");
    assert_eq!(tab.evaluate(TOO_SMALL).await, json!([]), "the conversation");
    let shadow = "getComputedStyle(document.querySelector('.side')).boxShadow";
    assert_eq!(tab.evaluate(shadow).await, "none", "nothing of the hidden list is seen");

    tab.click("[data-testid=details]").await;
    tab.until_there("[data-testid=sheet][open] [data-testid=facts]").await;
    assert_eq!(tab.evaluate(TOO_SMALL).await, json!([]), "the details");
    tab.click("[data-testid=action-search]").await;
    tab.until("document.activeElement?.dataset.testid === 'search'").await;
    assert_eq!(tab.evaluate("document.querySelector('[data-testid=sheet]').open").await, false);

    tab.click("[data-testid=menu]").await;
    tab.until_there("[data-testid=today] [data-testid=agent][aria-current]").await;
    assert_eq!(tab.evaluate(TOO_SMALL).await, json!([]), "the list");
}

#[tokio::test]
async fn the_bar_is_not_wider_than_the_screen_while_the_page_reconnects() {
    let mut server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch_to_completion(&json!({ "deltas": 5 })).await;
    let tab = browser.tab(Look { dark: false, phone: true }).await;
    tab.visit(&address(&server, &format!("/agents/{id}"))).await;
    tab.until(&ended(1)).await;
    tab.until("document.querySelector('[data-testid=connection]')?.textContent === 'Live'").await;
    server.kill_9();
    let beyond =
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.bar'))";
    let state = "document.querySelector('[data-testid=connection]').textContent";
    // Each attempt has a shorter word.
    tab.until(&format!("{state} === 'Reconnecting' && (window.beyond = {beyond}, true)")).await;
    assert_eq!(tab.evaluate("window.beyond").await, 0);
}

#[tokio::test]
async fn an_unknown_agent_leads_home() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look { dark: false, phone: true }).await;
    tab.visit(&address(&server, "/agents/01931c1e-0000-7000-8000-000000000000")).await;
    tab.click("[data-testid=home]").await;
    tab.until_there("[data-testid=launch-form]").await;
    assert_eq!(tab.evaluate("location.pathname").await, "/");
    let beyond =
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.home'))";
    assert_eq!(tab.evaluate(beyond).await, 0, "nothing is wider than the screen");
}

#[tokio::test]
async fn the_fields_of_a_launch_have_room_for_their_values() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.until_there("[data-testid=launch-form] [name=cwd]").await;
    let widths = "['cwd', 'model', 'name'].map((name) =>
      document.querySelector(`[data-testid=launch-form] [name=${name}]`).getBoundingClientRect().width)";
    let widths: Vec<f64> = serde_json::from_value(tab.evaluate(widths).await).unwrap();
    assert!(widths[0] > 500.0 && widths.iter().all(|width| *width > 200.0), "{widths:?}");
}

#[tokio::test]
async fn an_address_without_a_page_says_so_and_leads_home() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.until_there("[data-testid=launch-form]").await;
    tab.visit(&format!("http://{}/nowhere", server.authority())).await;
    tab.until_there("[data-testid=missing]").await;
    let status = "performance.getEntriesByType('navigation')[0].responseStatus";
    assert_eq!(tab.evaluate(status).await, 404);
    tab.click("[data-testid=home]").await;
    tab.until_there("[data-testid=launch-form]").await;
    assert_eq!(tab.evaluate("location.pathname").await, "/");
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
    let script = "fetch('/nowhere').then((response) => response.headers.get('content-type'))";
    assert_eq!(tab.evaluate(script).await, "application/problem+json", "a script gets a problem");
}

#[tokio::test]
async fn another_agent_is_reached_by_the_keyboard_and_the_theme_is_kept() {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch_to_completion(&json!({ "deltas": 5, "say": ["Look here"] })).await;
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.until_there("[data-testid=today] [data-testid=agent]").await;
    tab.press("Control+k").await;
    tab.until_there("[data-testid=palette][open]").await;
    assert_eq!(tab.faults().await, [""; 0], "the palette");
    tab.type_in("look here").await;
    tab.press("Enter").await;
    tab.until(&format!("location.pathname === '/agents/{id}'")).await;
    tab.until("document.querySelector('[data-testid=palette]') === null").await;
    tab.press("Control+k").await;
    tab.type_in("theme dark").await;
    tab.press("Enter").await;
    tab.until("document.documentElement.dataset.theme === 'dark'").await;
    tab.reload().await;
    tab.until("document.documentElement.dataset.theme === 'dark'").await;
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]));
}
