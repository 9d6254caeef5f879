//! S05, S06, S20, S32: what a real browser lets a page do. Needs Chromium, whose path is in `TOKENRAIL_TEST_CHROMIUM`.

mod corpus;
mod devtools;
mod dressed;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::harness::{PATIENCE, TestServer, fake_config};
use crate::started::Started;
use corpus::{SCRIPTS, SECRET};
use devtools::{Browser, Page};
use dressed::dressed;

/// A server without a token, so that only the tested protections are between it and a page.
fn open_server() -> Started {
    Started::start(&fake_config(), &[], &["--insecure-no-auth"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s05_a_name_that_leads_here_reads_and_does_nothing() {
    let started = open_server();
    let server = &started.server;
    server.launch_as("fake", SECRET).await;
    let authority = server.authority();
    let port = authority.rsplit(':').next().unwrap();
    let browser = Browser::start();
    for (name, expected) in [("evil.test", 421), ("127.0.0.1", 200)] {
        let mut page = browser.page().await;
        // As if the page had been loaded before the name led to this server. Then none of the server's policies would
        // apply.
        page.call("Page.setBypassCSP", &json!({ "enabled": true })).await;
        page.open(&format!("http://{name}:{port}/")).await;
        assert_eq!(page.document_status(), expected, "{name}");
        let script = REBOUND.replace("NAME", &format!("{name}:{port}"));
        let got = page.evaluate(&script).await;
        let good = expected == 200;
        for what in ["read", "post", "delete"] {
            let status = got[what].as_u64().unwrap_or_default();
            assert_eq!(status != 421, good, "{name}: {what}: {got}");
        }
        assert_eq!(got["socket"] == "open", good, "{name}: {got}");
        assert_eq!(got.to_string().contains(SECRET), good, "{name}: {got}");
    }
    // The agent that this test launched, and the one of the allowed page.
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 2);
}

/// The requests of a page that the browser considers same-origin.
const REBOUND: &str = r#"(async () => {
  const got = {};
  const answer = await fetch("/api/agents");
  [got.read, got.text] = [answer.status, await answer.text()];
  const body = JSON.stringify({ type: "fake", prompt: "{}" });
  got.post = (await fetch("/api/agents", { method: "POST", headers: { "Content-Type": "application/json" }, body })).status;
  got.delete = (await fetch("/api/agents/01900000-0000-7000-8000-000000000000", { method: "DELETE" })).status;
  got.socket = await new Promise((tell) => {
    const socket = new WebSocket("ws://NAME/ws");
    socket.onopen = () => tell("open");
    socket.onerror = () => tell("refused");
  });
  return got;
})()"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_a_page_of_another_origin_reads_and_does_nothing() {
    let started = open_server();
    let server = &started.server;
    let id = server.launch_as("fake", SECRET).await;
    server.wait_for_status(&id, "completed").await;
    let site = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = site.local_addr().unwrap().port();
    Handle::current().spawn(serve_pages(site));
    let before = server.get("/api/agents").await;
    let browser = Browser::start();
    for (page_host, target_host) in
        [("evil.test", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost")]
    {
        let mut page = browser.page().await;
        page.open(&format!("http://{page_host}:{port}/")).await;
        assert_eq!(page.document_status(), 200);
        let target = server.authority().replace("127.0.0.1", target_host);
        let got = page.evaluate(&CROSS_SITE.replace("TARGET", &target).replace("AGENT", &id)).await;
        let tried = got.as_object().unwrap();
        assert_eq!(tried.len(), 13, "{got}");
        for (what, came) in tried {
            assert_eq!(came, "refused", "{what} of {page_host} at {target}: {got}");
        }
        assert!(!page.heard().contains(SECRET), "not a byte of it");
    }
    assert_eq!(server.get("/api/agents").await, before, "nothing has changed");
    let metrics =
        server.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("status=\"403\""), "the requests did come: {metrics}");
}

/// The requests of a cross-site page. The result of each is `refused`, or what the page has read.
const CROSS_SITE: &str = r#"(async () => {
  const base = "http://TARGET", got = {};
  const attempt = async (name, act) => { try { got[name] = await act(); } catch { got[name] = "refused"; } };
  const launch = JSON.stringify({ type: "fake", prompt: "{}" });
  const post = (headers, mode) => fetch(base + "/api/agents", { method: "POST", headers, body: launch, mode });
  const opaque = async (answer) => (answer.type === "opaque" && (await answer.text()) === "" ? "refused" : "read");
  await attempt("get", async () => (await fetch(base + "/api/agents")).text());
  await attempt("get with credentials", async () => (await fetch(base + "/api/agents", { credentials: "include" })).text());
  await attempt("get without CORS", async () => opaque(await fetch(base + "/api/agents", { mode: "no-cors" })));
  await attempt("post as text", async () => opaque(await post({ "Content-Type": "text/plain" }, "no-cors")));
  await attempt("post as a form", async () => opaque(await post({ "Content-Type": "application/x-www-form-urlencoded" }, "no-cors")));
  await attempt("post as JSON", async () => (await post({ "Content-Type": "application/json" })).text());
  await attempt("delete", async () => (await fetch(base + "/api/agents/AGENT", { method: "DELETE" })).text());
  await attempt("cancel", async () => opaque(await fetch(base + "/api/agents/AGENT/cancel", { method: "POST", mode: "no-cors" })));
  const outcome = (target, good, bad) => new Promise((tell) => {
    target[good] = () => tell("open");
    target[bad] = () => tell("refused");
  });
  await attempt("websocket", () => outcome(new WebSocket("ws://TARGET/ws"), "onopen", "onerror"));
  await attempt("event stream", () => outcome(new EventSource(base + "/api/agents/AGENT/events"), "onopen", "onerror"));
  const element = (name, source) => {
    const made = document.createElement(name);
    made.src = base + source;
    const told = outcome(made, "onload", "onerror");
    document.body.append(made);
    return told;
  };
  await attempt("script", () => element("script", "/api/agents"));
  await attempt("image", () => element("img", "/api/agents/AGENT"));
  await attempt("form", async () => {
    const frame = document.createElement("iframe");
    frame.name = "answer";
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", action: base + "/api/agents", enctype: "text/plain", target: "answer" });
    const field = document.createElement("input");
    Object.assign(field, { name: launch.slice(0, -1) + ',"x":"', value: '"}' });
    form.append(field);
    document.body.append(form);
    const loaded = new Promise((tell) => { frame.onload = tell; });
    form.submit();
    await loaded;
    try { return frame.contentDocument ? "read" : "refused"; } catch { return "refused"; }
  });
  return got;
})()"#;

/// The attacker's site: one page, for any number of requests.
async fn serve_pages(listener: TcpListener) {
    const PAGE: &str = "<!doctype html><title>free prizes</title><body></body>";
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        Handle::current().spawn(async move {
            let mut chunk = [0; 4096];
            // One request per connection. Its head fits into this buffer.
            if socket.read(&mut chunk).await.is_ok() {
                let length = PAGE.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{PAGE}"
                );
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s20_what_agents_say_is_text_on_the_page_and_nothing_else() {
    let server = TestServer::start();
    let browser = Browser::start();
    let scripts = dressed();
    assert!(300 <= scripts.len(), "{}", scripts.len());
    // As many as the page displays without being asked for more.
    for scripts in scripts.chunks(SCRIPTS.len()) {
        let whole: Vec<String> = scripts.iter().map(|script| format!("{script}\n")).collect();
        let split: Vec<String> = whole.iter().flat_map(|script| script.chars()).map(String::from).collect();
        for say in [whole.clone(), split] {
            are_only_text(&server, &browser, &say, &scripts[say.len() % scripts.len()]).await;
        }
    }
}

/// An agent prints this text, and a page shows it: first live, and then from the history.
async fn are_only_text(server: &TestServer, browser: &Browser, say: &[String], name: &str) {
    let gate = server.folder.path().join("gate");
    let prompt = json!({ "say": say, "gate": gate, "gate_after": 3 }).to_string();
    let prompt = format!("{prompt}\n{}", say.concat());
    let body = json!({ "type": "fake", "prompt": prompt, "name": name });
    let (status, agent) = server.post("/api/agents", &body).await;
    assert_eq!(status, 201, "{agent}");
    let id = agent["agentId"].as_str().unwrap();
    let mut page = browser.page().await;
    let page_url = format!("http://{}/agents/{id}#token={}", server.authority(), server.token());
    page.open(&page_url).await;
    std::fs::write(&gate, "").unwrap();
    check_shown(&mut page, &say.concat()).await;
    page.open("about:blank").await;
    page.open(&page_url).await;
    check_shown(&mut page, &say.concat()).await;
    let elsewhere = page.requests_elsewhere(&server.authority());
    assert_eq!(elsewhere, [""; 0], "it asks nobody else");
    assert!(!page.heard().contains("javascriptDialogOpening"), "no dialog");
    assert_eq!(page.violations(), [""; 0], "and does not even try");
    std::fs::remove_file(&gate).unwrap();
}

/// Waits until the page shows the end of the turn, and checks the text as Markdown and as written.
async fn check_shown(page: &mut Page, said: &str) {
    let ended = "shown.text.includes('completed in') && document.querySelector('.head [data-status=completed]') !== null && shown.title.endsWith(' · Tokenrail')";
    let shown = shown_when(page, ended).await;
    check_harmless(&shown);
    page.evaluate("document.querySelector('[data-testid=toggle-text]').click()").await;
    let said = serde_json::to_string(said.trim_end()).unwrap();
    let shown = shown_when(page, &format!("shown.answer.includes({said})")).await;
    check_harmless(&shown);
    // Only visible rows are in the document. The page recognizes by a gesture that a reader scrolls up, so the script
    // sends a wheel event first. Otherwise, while rows change their heights, their end may be in sight, and the page
    // would stay there.
    let shown = shown_when(page, &format!("({TO_THE_TOP}, shown.prompt.includes({said}))")).await;
    check_harmless(&shown);
    page.evaluate("document.querySelector('[data-testid=toggle-text]').click()").await;
}

const TO_THE_TOP: &str = r##"((list) => {
  if (list.scrollTop === 0) return;
  list.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
  list.scrollTop = 0;
})(document.querySelector("#events"))"##;

fn check_harmless(shown: &Value) {
    assert_eq!(shown["hit"], Value::Null);
    let title = shown["title"].as_str().unwrap();
    assert!(title.ends_with(" · Tokenrail"), "{title}");
    assert_eq!(shown["strange"], json!([]), "no element of the corpus was made anywhere");
    assert!(!shown["address"].as_str().unwrap().contains("token"), "the token is not in the address bar");
}

/// What the page shows, as soon as the expectation is met.
async fn shown_when(page: &mut Page, expected: &str) -> Value {
    let started = tokio::time::Instant::now();
    loop {
        let shown = page
            .evaluate(&format!(
                "(() => {{ const shown = {SHOWN}; return {{ ...shown, there: {expected} }}; }})()"
            ))
            .await;
        if shown["there"] == json!(true) {
            return shown;
        }
        assert!(started.elapsed() < PATIENCE, "{expected}: {shown}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Elements that the page never creates; its own elements are recognized by their attributes. Links may only lead to
/// web pages and mailboxes.
const SHOWN: &str = r##"(() => {
  const strange = "img,svg:not(.icon,.rates,.rails),iframe,object,embed,math,form:not([data-testid]),base,meta[http-equiv],style,template,video,audio,marquee,details,[onerror],[onload]";
  const harmful = (link) => !/^(https?|mailto):$/.test(link.protocol);
  const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent).join("\n");
  return {
    text: texts("#events"), answer: texts("#events [data-testid=row-text]"), prompt: texts("#events [data-testid=row-prompt]"),
    strange: [...document.querySelectorAll(strange), ...[...document.links].filter(harmful)].map((element) => element.outerHTML),
    hit: window.hit ?? null, title: document.title, address: location.href,
  };
})()"##;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s32_the_page_keeps_its_own_policy_while_it_is_used() {
    let server = TestServer::start_with(&(fake_config() + "[agents.demo]\nrunner = \"replay\"\nspeed = 0\n"));
    let browser = Browser::start();
    let mut page = browser.page().await;
    page.open(&format!("http://{}/#token={}", server.authority(), server.token())).await;
    shown_when(&mut page, "document.querySelector('#demo') !== null").await;
    page.evaluate("document.querySelector('#demo').click()").await;
    shown_when(&mut page, "shown.text.includes('completed in')").await;
    assert_eq!(page.violations(), [""; 0]);
    // This proves that the policy is active and that this test can fail: a forbidden action causes a violation.
    let tried = page.evaluate("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'done'; } catch { return 'refused'; } })()");
    assert_eq!(tried.await, "refused", "Trusted Types");
    assert!(!page.violations().is_empty());
}
