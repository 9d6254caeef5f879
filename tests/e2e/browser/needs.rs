//! An agent that waits for the answer to a permission request is noticed wherever the user is on the page.

use serde_json::json;

use super::{Browser, Look, address, ended};
use crate::questions::{asking, server};

const ICON: &str = "new URL(document.querySelector('link[rel=icon]').href).pathname";

#[tokio::test]
async fn an_agent_that_waits_comes_first_and_the_tab_says_so_until_it_is_answered() {
    let server = server("permission_timeout_s = 500\n");
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&address(&server, "/")).await;
    tab.until("document.querySelector('[data-testid=agent-counts]')?.textContent === '0 in the list'").await;
    assert_eq!(tab.evaluate(&format!("[document.title, {ICON}]")).await, json!(["Tokenrail", "/icon.svg"]));

    asking(&server).await;
    tab.until_there("[data-testid=needs-you] [data-testid=agent] [data-status=needs-you]").await;
    tab.until("document.title === '(1) Tokenrail'").await;
    tab.until(&format!("{ICON} === '/icon-waiting.svg'")).await;
    tab.until("document.querySelector('[data-testid=news]').textContent === 'Agent asking needs you'").await;
    assert_eq!(tab.faults().await, [""; 0], "the group of those that wait");

    tab.click("[data-testid=needs-you] [data-testid=agent]").await;
    tab.until_there(".head [data-status=needs-you]").await;
    tab.until("document.title === '(1) Clean up · Tokenrail'").await;
    let countdown = "document.querySelector('[data-testid=countdown] [aria-hidden]')?.textContent ?? ''";
    tab.until(&format!(
        "/^If nobody answers, “Reject” will be chosen in \\d min \\d\\d s[.]$/.test({countdown})"
    ))
    .await;

    tab.click("[data-testid=answer-allow_once]").await;
    tab.until(&ended(1)).await;
    tab.until("document.querySelector('[data-testid=needs-you]') === null").await;
    tab.until_there("[data-testid=agents] [data-status=completed]").await;
    tab.until(&format!("document.title === 'Clean up · Tokenrail' && {ICON} === '/icon.svg'")).await;
    let heard = tab.heard().await;
    assert_eq!((heard.errors, heard.violations), (vec![], vec![]), "the policy allows the icon");
}

#[tokio::test]
async fn a_phone_says_what_is_asked_before_the_list_is_opened_and_in_it() {
    let server = server("permission_timeout_s = 500\n");
    let browser = Browser::start();
    let tab = browser.tab(Look { dark: false, phone: true }).await;
    tab.visit(&address(&server, "/")).await;
    tab.until_there("[data-testid=menu][aria-label=Agents]").await;
    asking(&server).await;
    tab.until_there("[data-testid=menu][aria-label='Agents: 1 needs you']").await;
    assert_eq!(tab.text("[data-testid=menu]").await, "1");
    tab.click("[data-testid=menu]").await;
    tab.until("document.querySelector('[data-testid=agent-counts]').textContent === '1 needs you'").await;
    let asked = "document.querySelector('[data-testid=needs-you] [data-testid=asked]')?.textContent";
    tab.until(&format!("{asked}?.includes('rm -r build')")).await;
    let left = "document.querySelector('[data-testid=needs-you] .agent-counts')?.textContent";
    tab.until(&format!("/^\\d+ min left$/.test({left})")).await;
    assert_eq!(tab.faults().await, [""; 0]);
}
