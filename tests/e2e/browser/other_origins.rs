//! Pages of another origin, as Vite's dev server serves them: with the server's own address, and through Vite's proxy.

use serde_json::{Value, json};

use super::tab::{Browser, Tab};
use super::vite::{self, Vite};
use crate::harness::{TestServer, fake_config, numbers};

/// A server that allows the origins of these settings.
fn server(settings: &str) -> TestServer {
    TestServer::start_with(&format!("[server]\ndefault_agent = \"fake\"\n{settings}\n{}", fake_config()))
}

/// The result of one of the page's stories, with a server at this base URL.
async fn play(tab: &Tab, story: &str, base_url: &str, server: &TestServer) -> Value {
    let wish = json!({ "baseUrl": base_url, "token": server.token() });
    tab.evaluate(&format!("page.{story}({wish})")).await
}

/// Checks that a page can do everything.
async fn assert_all_works(tab: &Tab, base_url: &str, server: &TestServer) {
    let ours = play(tab, "ours", base_url, server).await;
    let id = ours["id"].as_str().unwrap();
    let events = server.events(id).await.len();
    let all: Vec<usize> = (1..=events).collect();
    assert_eq!((&ours["live"], &ours["head"]), (&json!(all), &json!(events)), "{base_url}: {ours}");
    let read = server.get(&format!("/api/agents/{id}/messages")).await.as_array().unwrap().len();
    assert!(ours["upTo"].as_u64() >= Some(1) && ours["read"] == read, "{base_url}: {ours}");
    assert_eq!(
        ours["listed"],
        server.get("/api/agents").await.as_array().unwrap().len(),
        "{base_url}: {ours}"
    );
    assert_eq!(play(tab, "eventSource", base_url, server).await, json!(all), "{base_url}");
    let chat = play(tab, "aiSdk", base_url, server).await;
    assert_eq!(chat["text"], numbers(20), "{base_url}: {chat}");
    assert!(chat["run"].as_str().unwrap().starts_with("run-"), "{base_url}: {chat}");
    let letta = play(tab, "letta", base_url, server).await;
    assert_eq!(letta, json!({ "text": numbers(20), "missing": 404 }), "{base_url}");
    let wrong =
        tab.evaluate(&format!("page.refusal({})", json!({ "baseUrl": base_url, "token": "wrong" }))).await;
    assert_eq!(wrong["code"], "unauthenticated", "{base_url}: it reads why it is refused: {wrong}");
}

#[tokio::test]
async fn a_page_of_a_listed_origin_uses_the_server_from_its_own_address() {
    let port = vite::port();
    let server = server(&format!("allowed_origins = [\"http://localhost:{port}\"]"));
    let vite = Vite::start(port, &server, false).await;
    let browser = Browser::start();
    let tab = vite.tab(&browser, "localhost").await;
    let base_url = format!("http://{}", server.authority());
    assert_all_works(&tab, &base_url, &server).await;

    let before = server.get("/api/agents").await;
    let unlisted = vite.tab(&browser, "127.0.0.1").await;
    let got = play(&unlisted, "unlisted", &base_url, &server).await;
    assert_eq!(got, json!({ "read": "kept from it", "simple": "kept from it" }));
    assert_eq!(play(&unlisted, "refusal", &base_url, &server).await["code"], "network");
    assert_eq!(server.get("/api/agents").await, before);
}

#[tokio::test]
async fn a_page_behind_a_proxy_that_changes_the_host_needs_its_origin_to_be_listed() {
    let port = vite::port();
    let mut server = server("");
    let vite = Vite::start(port, &server, true).await;
    let browser = Browser::start();
    let tab = vite.tab(&browser, "localhost").await;
    let refused = play(&tab, "refusal", "", &server).await;
    assert_eq!(refused["code"], "origin_not_allowed");
    let origin = format!("\"http://localhost:{port}\"");
    assert_says(&refused, &[&origin, "server.allowed_origins"]);

    list(&mut server, &format!("allowed_origins = [{origin}]"));
    for base_url in [vite.url("localhost"), vite.url("localhost") + "/tokenrail"] {
        assert_all_works(&tab, &base_url, &server).await;
    }
    let cut = play(&tab, "refusal", &(vite.url("localhost") + "/cut"), &server).await;
    assert_says(&cut, &["configure it to keep the prefix"]);
    let kept = play(&tab, "refusal", &(vite.url("localhost") + "/kept"), &server).await;
    assert_says(&kept, &["server.public_url", "configure the proxy to remove that path"]);
}

#[tokio::test]
async fn a_page_behind_a_proxy_that_leaves_the_host_needs_it_to_be_one_of_the_servers_names() {
    let port = vite::port();
    let mut server = server("");
    let vite = Vite::start(port, &server, false).await;
    let browser = Browser::start();
    let tab = vite.tab(&browser, "localhost").await;
    let refused = play(&tab, "refusal", "", &server).await;
    assert_eq!(refused["code"], "host_not_allowed");
    let host = format!("\"localhost:{port}\"");
    assert_says(&refused, &[&host, "server.allowed_hosts", "changeOrigin: true"]);

    list(&mut server, &format!("allowed_hosts = [{host}]"));
    for base_url in [vite.url("localhost"), vite.url("localhost") + "/tokenrail"] {
        assert_all_works(&tab, &base_url, &server).await;
    }
}

/// Changes the configuration as the refusal suggested.
fn list(server: &mut TestServer, setting: &str) {
    server.config = server.config.replace("[server]\n", &format!("[server]\n{setting}\n"));
    server.kill_and_start_again();
}

fn assert_says(refused: &Value, parts: &[&str]) {
    let detail = refused["detail"].as_str().unwrap();
    for part in parts {
        assert!(detail.contains(part), "{part}: {refused}");
    }
}
