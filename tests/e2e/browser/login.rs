//! A login that lasts: one link, and every tab of the browser has access. The page keeps no token.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::address;
use super::tab::{Browser, Look, Tab};
use crate::harness::TestServer;

const LIVE: &str = "document.querySelector('[data-testid=connection]')?.textContent === 'Live'";

/// Everything that a script of the page can read back later.
const STORED: &str = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state])";

/// A link with a one-time login code.
fn link(server: &TestServer) -> String {
    let opened = server.command(&["open", "--print"]).output().unwrap();
    let link = String::from_utf8(opened.stdout).unwrap();
    assert!(link.contains("/#code="), "{link}");
    link.trim_end().to_owned()
}

fn plain(server: &TestServer) -> String {
    format!("http://{}/", server.authority())
}

fn heading(text: &str) -> String {
    format!("document.querySelector('[data-testid=ask-for-token] h1')?.textContent === '{text}'")
}

async fn logged_in(browser: &Browser, server: &TestServer) -> Tab {
    let tab = browser.tab(Look::default()).await;
    tab.visit(&link(server)).await;
    tab.until(LIVE).await;
    tab
}

#[tokio::test]
async fn one_link_logs_in_every_tab() {
    let server = TestServer::start();
    let browser = Browser::start();
    let id = server.launch_to_completion(&json!({ "say": ["hello"] })).await;
    let tab = logged_in(&browser, &server).await;
    assert_eq!(tab.address().await, plain(&server), "the code leaves the address bar");
    tab.reload().await;
    tab.until(LIVE).await;
    let clicked = tab.ctrl_click("[data-testid=agent] a, a[data-testid=agent]").await;
    clicked.until("document.querySelector('[data-testid=result]')").await;
    assert!(clicked.address().await.ends_with(&format!("/agents/{id}")));
    let bookmark = tab.beside().await;
    bookmark.visit(&format!("{}agents/{id}", plain(&server))).await;
    bookmark.until("document.querySelector('[data-testid=result]')").await;
    // Reading works, and so does a change.
    bookmark.fill("[data-testid=composer] textarea", "Go on").await;
    bookmark.click("[data-testid=send]").await;
    bookmark.until("document.querySelectorAll('[data-testid=row-prompt]').length === 2").await;
    for tab in [&tab, &clicked, &bookmark] {
        let stored = tab.evaluate(STORED).await;
        assert!(
            !stored.as_str().unwrap().contains(server.token())
                && !stored.as_str().unwrap().contains("session"),
            "{stored}"
        );
    }
}

#[tokio::test]
async fn a_link_works_once_and_does_not_end_the_session_that_it_has_started() {
    let server = TestServer::start();
    let browser = Browser::start();
    let link = link(&server);
    let tab = browser.tab(Look::default()).await;
    tab.visit(&link).await;
    tab.until(LIVE).await;
    let again = tab.beside().await;
    again.visit(&link).await;
    again.until(LIVE).await;
    let other_browser = browser.tab(Look::default()).await;
    other_browser.visit(&link).await;
    other_browser.until(&heading("This link has already been used, or it has expired")).await;
    assert_eq!(other_browser.address().await, plain(&server));
    // A new link can be pasted.
    other_browser.fill("input", &self::link(&server)).await;
    other_browser.press("Enter").await;
    other_browser.until(LIVE).await;
}

#[tokio::test]
async fn the_form_logs_in_every_tab_too_and_keeps_no_token() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&plain(&server)).await;
    tab.until(&heading("Log in")).await;
    tab.fill("input", server.token()).await;
    tab.press("Enter").await;
    tab.until(LIVE).await;
    assert!(!tab.evaluate(STORED).await.as_str().unwrap().contains(server.token()));
    let beside = tab.beside().await;
    beside.visit(&plain(&server)).await;
    beside.until(LIVE).await;
    let by_address = browser.tab(Look::default()).await;
    by_address.visit(&address(&server, "/")).await;
    by_address.until(LIVE).await;
    assert!(!by_address.evaluate(STORED).await.as_str().unwrap().contains(server.token()));
}

#[tokio::test]
async fn a_logout_ends_the_session_of_every_tab() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = logged_in(&browser, &server).await;
    let beside = tab.beside().await;
    beside.visit(&plain(&server)).await;
    beside.until(LIVE).await;
    tab.click("[data-testid=log-out]").await;
    tab.until(&heading("Log in")).await;
    beside.reload().await;
    beside.until(&heading("Log in")).await;
}

#[tokio::test]
async fn a_session_that_ends_while_the_page_is_open_leads_to_the_login_and_back() {
    let mut server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "say": ["hello"] })).await;
    let browser = Browser::start();
    let tab = logged_in(&browser, &server).await;
    let beside = tab.beside().await;
    beside.visit(&format!("{}agents/{id}", plain(&server))).await;
    beside.until(LIVE).await;
    tab.click("[data-testid=log-out]").await;
    tab.until(&heading("Log in")).await;
    // The other tab notices it when its connection is lost.
    server.stop();
    server.start_again();
    beside.until(&heading("Log in")).await;
    beside.fill("input", server.token()).await;
    beside.press("Enter").await;
    beside.until(LIVE).await;
    beside.until("document.querySelector('[data-testid=result]')").await;
}

#[tokio::test]
async fn a_logout_that_does_not_reach_the_server_says_so() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = logged_in(&browser, &server).await;
    tab.refuse("/api/session").await;
    tab.click("[data-testid=log-out]").await;
    tab.until("document.querySelector('.bar [role=alert]')?.textContent.startsWith('Cannot log out')").await;
    tab.refuse_no_more("/api/session").await;
    tab.click("[data-testid=log-out]").await;
    tab.until(&heading("Log in")).await;
}

#[tokio::test]
async fn the_browser_remembers_the_theme() {
    let server = TestServer::start();
    let browser = Browser::start();
    let tab = logged_in(&browser, &server).await;
    tab.click("[data-testid=theme]").await;
    tab.click("[data-testid=theme]").await;
    tab.until("document.documentElement.dataset.theme === 'dark'").await;
    let beside = tab.beside().await;
    beside.visit(&plain(&server)).await;
    beside.until("document.documentElement.dataset.theme === 'dark'").await;
}

/// Browsers send a cookie to all ports of a host, so `SameSite` does not keep such a page away. It tries to read, to
/// change and to open a WebSocket.
const TRY: &str = r"(async (server) => {
  const tried = (request) => request.then(({ status }) => status, () => 'failed');
  const include = { credentials: 'include' };
  const form = { method: 'POST', mode: 'no-cors', body: '{}', ...include };
  const socket = new WebSocket(server.replace('http', 'ws') + '/ws');
  const opened = new Promise((done) => { socket.onopen = () => done('open'); socket.onerror = () => done('refused'); });
  return {
    read: await tried(fetch(server + '/api/agents', include)),
    change: await tried(fetch(server + '/api/agents/ID/cancel', { method: 'POST', headers: { 'Tokenrail-Csrf': '1' }, ...include })),
    form: await tried(fetch(server + '/api/agents/ID/cancel', form)),
    end: await tried(fetch(server + '/api/session', { method: 'DELETE', headers: { 'Tokenrail-Csrf': '1' }, ...include })),
    socket: await opened,
  };
})";

/// Serves an empty page on a port of its own, without any policy. Returns its address.
async fn empty_page() -> String {
    const PAGE: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    tokio::runtime::Handle::current().spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(PAGE).await;
        }
    });
    address
}

#[tokio::test]
async fn a_page_on_another_port_uses_the_session_for_nothing() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "gate": server.folder.path().join("gate") })).await;
    let browser = Browser::start();
    let tab = logged_in(&browser, &server).await;
    let other = tab.beside().await;
    other.visit(&empty_page().await).await;
    let script = format!("{}('http://{}')", TRY.replace("ID", &id), server.authority());
    let got: Value = other.evaluate(&script).await;
    let nothing = json!({
        "read": "failed", "change": "failed", "form": "failed", "end": "failed", "socket": "refused",
    });
    assert_eq!(got, nothing);
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
    tab.reload().await;
    tab.until(LIVE).await;
    // The page itself can do all of it, except for a form, which has no header against forgery.
    let got: Value = tab.evaluate(&script).await;
    assert_eq!(got, json!({ "read": 200, "change": 202, "form": 403, "end": 204, "socket": "open" }));
}
