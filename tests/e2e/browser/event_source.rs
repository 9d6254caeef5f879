//! A browser's own `EventSource`, with the code from the protocol reference, over unreliable connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::tab::{Browser, Look, Tab};
use crate::harness::{TestServer, assert_dense, fake_config};

/// The function of the page, as the document has it.
fn listen() -> String {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/protocol/event-stream.md"
    ))
    .unwrap();
    let section = text.split("## In a browser").nth(1).expect("the section");
    let code = section.split("```js\n").nth(1).and_then(|rest| rest.split("```").next()).expect("its code");
    assert!(code.starts_with("async function listen("), "{code}");
    code.to_owned()
}

/// A proxy between browsers and a server that can cut all connections.
struct Cutter {
    port: u16,
    cut: watch::Sender<()>,
    streams: Arc<AtomicUsize>,
}

impl Cutter {
    async fn bind() -> (Self, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (Self { port, cut: watch::channel(()).0, streams: Arc::default() }, listener)
    }

    fn serve(&self, listener: TcpListener, target: String) {
        let (cut, streams) = (self.cut.subscribe(), Arc::clone(&self.streams));
        Handle::current().spawn(async move {
            while let Ok((mut browser, _)) = listener.accept().await {
                let (target, mut cut, streams) = (target.clone(), cut.clone(), Arc::clone(&streams));
                cut.mark_unchanged();
                Handle::current().spawn(async move {
                    // If no server is running, the proxy closes the connection.
                    let Ok(mut server) = TcpStream::connect(target).await else { return };
                    streams.fetch_add(1, Ordering::Relaxed);
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut browser, &mut server) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
    }
}

/// A tab on the server's own page that listens to an agent and records what it receives.
async fn listening_tab(browser: &Browser, page: &str, server: &TestServer, id: &str) -> Tab {
    let tab = browser.tab(Look::default()).await;
    tab.visit(page).await;
    let script = format!(
        r#"(() => {{
          window.heard = {{ events: [], tickets: 0, lost: 0, mistaken: 0, addresses: [], refusals: [] }};
          const token = {token}, ask = window.fetch;
          const refusal = () => new Response("{{}}", {{ status: heard.refusals.shift() }});
          const fetch = async (...args) => (heard.tickets += 1, heard.refusals.length ? refusal() : ask(...args));
          const Plain = window.EventSource;
          class EventSource extends Plain {{
            constructor(address) {{
              super(address);
              heard.addresses.push(address);
              this.addEventListener("error", (event) => (event.data === undefined ? heard.lost++ : heard.mistaken++));
            }}
          }}
          {listen}
          return listen({id}, (event) => heard.events.push(event));
        }})()"#,
        token = json!(server.token()),
        listen = listen(),
        id = json!(id)
    );
    tab.evaluate(&script).await;
    tab
}

async fn heard_until(tab: &Tab, events: u64) {
    tab.until(&format!("heard.events.length >= {events}")).await;
}

#[tokio::test]
async fn an_event_source_hears_every_event_once_through_cuts_and_a_killed_server() {
    let (cutter, listener) = Cutter::bind().await;
    let config = format!("[server]\nallowed_hosts = [\"127.0.0.1:{}\"]\n{}", cutter.port, fake_config());
    let mut server = TestServer::start_with(&config);
    cutter.serve(listener, server.authority());
    let gate = server.folder.path().join("hurry");
    // The agent continues until the last cut, however long that takes.
    let script = json!({ "deltas": 2000, "pace_us": 20_000, "hurry": gate });
    let id = server.launch(&script).await;
    let browser = Browser::start();
    let tab = listening_tab(&browser, &format!("http://127.0.0.1:{}/", cutter.port), &server, &id).await;
    for round in 0..5 {
        // New events prove that there is a connection to cut.
        let heard = tab.evaluate("heard.events.length").await.as_u64().unwrap();
        heard_until(&tab, heard + 10).await;
        if round == 2 {
            server.kill_9();
            tab.until("heard.lost >= 3").await;
            server.start_again();
        } else {
            cutter.cut.send_replace(());
            tab.until(&format!("heard.lost > {round}")).await;
        }
    }
    let heard = tab.evaluate("heard.events.length").await.as_u64().unwrap();
    heard_until(&tab, heard + 10).await;
    std::fs::write(gate, "").unwrap();
    tab.until("heard.events.at(-1)?.metadata.eventType === 'result'").await;
    let heard = tab.evaluate("heard").await;
    let events = heard["events"].as_array().unwrap();
    assert_dense(events);
    assert_eq!(events, &server.events(&id).await);
    assert_eq!(heard["tickets"], 1, "the one ticket was good all the time");
    assert!(
        heard["lost"].as_u64() >= Some(5) && heard["mistaken"] == 0,
        "{} {}",
        heard["lost"],
        heard["mistaken"]
    );
}

#[tokio::test]
async fn who_gets_no_ticket_asks_again_later_and_opens_nothing_without_one() {
    let (cutter, listener) = Cutter::bind().await;
    let config = format!(
        "[server]\nallowed_hosts = [\"127.0.0.1:{}\"]\n[limits]\nticket_resume_s = 1\n{}",
        cutter.port,
        fake_config()
    );
    let server = TestServer::start_with(&config);
    cutter.serve(listener, server.authority());
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 3, "gate": gate })).await;
    let browser = Browser::start();
    let tab = listening_tab(&browser, &format!("http://127.0.0.1:{}/", cutter.port), &server, &id).await;
    heard_until(&tab, 1).await;
    tab.evaluate("void (heard.refusals = [503, 429])").await;
    // A browser reconnects after a second, when the ticket has expired.
    cutter.cut.send_replace(());
    tab.until("heard.addresses.length >= 2").await;
    std::fs::write(gate, "").unwrap();
    tab.until("heard.events.at(-1)?.metadata.eventType === 'result'").await;
    let heard = tab.evaluate("heard").await;
    assert_eq!(heard["events"].as_array().unwrap(), &server.events(&id).await);
    assert_eq!(heard["tickets"], 4, "the first, two that were refused, and the last");
    let addresses = heard["addresses"].as_array().unwrap();
    assert_eq!(addresses.len(), 2, "{addresses:?}");
    assert!(!addresses.iter().any(|it| it.as_str().unwrap().contains("undefined")), "{addresses:?}");
}

#[tokio::test]
async fn an_error_of_the_agent_is_an_event_and_no_lost_connection() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "crash", "deltas": 3, "code": 3 })).await;
    server.wait_for_status(&id, "failed").await;
    let browser = Browser::start();
    let page = format!("http://{}/", server.authority());
    let tab = listening_tab(&browser, &page, &server, &id).await;
    tab.until("heard.events.at(-1)?.metadata.eventType === 'result'").await;
    let heard = tab.evaluate("heard").await;
    let kinds: Vec<&Value> =
        heard["events"].as_array().unwrap().iter().map(|it| &it["metadata"]["eventType"]).collect();
    assert!(kinds.contains(&&json!("error")), "{kinds:?}");
    assert_eq!(heard["mistaken"], 0);
}

/// A page that is told that its stream is open may lose the connection before it has read where the stream begins. The
/// browser discards that then, is refused when it comes back, and the page needs a new ticket, as after any refusal.
#[tokio::test]
async fn who_is_cut_off_before_the_first_event_comes_back_too() {
    const CUTS: u64 = 20;
    let (cutter, listener) = Cutter::bind().await;
    let config = format!("[server]\nallowed_hosts = [\"127.0.0.1:{}\"]\n{}", cutter.port, fake_config());
    let server = TestServer::start_with(&config);
    cutter.serve(listener, server.authority());
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 3, "gate": gate })).await;
    let browser = Browser::start();
    let tab = browser.tab(Look::default()).await;
    tab.visit(&format!("http://127.0.0.1:{}/", cutter.port)).await;
    let agent = server.wait_until(&id, |agent| agent["status"] == "running" && agent["head"] != 0).await;
    let since = agent["head"].as_u64().unwrap();
    tab.evaluate(&listen_after(since, &id, server.token())).await;
    let mut opened = 1;
    loop {
        tab.until(&format!("opened === {opened}")).await;
        if tab.evaluate("opened - tickets").await.as_u64().unwrap() == 2 {
            break;
        }
        assert!(opened < CUTS, "the browser never comes back with the ticket that it has");
        cutter.cut.send_replace(());
        opened += 1;
    }
    std::fs::write(gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    let last = server.events(&id).await.len() as u64;
    tab.until(&format!("heard.at(-1) === {last}")).await;
    assert_eq!(tab.evaluate("heard").await, json!((since + 1..=last).collect::<Vec<_>>()));
}

/// A script that counts how often the stream was opened, and with how many tickets.
fn listen_after(since: u64, id: &str, token: &str) -> String {
    format!(
        r#"(() => {{
          Object.assign(window, {{ heard: [], opened: 0, tickets: 0 }});
          const path = {path}, headers = {{ Authorization: {bearer}, "Content-Type": "application/json" }};
          const connect = async () => {{
            const made = await fetch("/api/tickets", {{ method: "POST", headers, body: JSON.stringify({{ path }}) }});
            const {{ ticket }} = await made.json();
            tickets++;
            const source = new EventSource(`${{path}}?unnamed=true&since={since}&ticket=${{ticket}}`);
            source.onopen = () => opened++;
            source.onmessage = ({{ data }}) => heard.push(JSON.parse(data).sequenceNumber);
            source.onerror = () => source.readyState === EventSource.CLOSED && again();
          }};
          // The request for a ticket may be cut off too.
          const again = () => connect().catch(() => setTimeout(again, 100));
          again();
        }})()"#,
        path = json!(format!("/api/agents/{id}/events")),
        bearer = json!(format!("Bearer {token}")),
    )
}
