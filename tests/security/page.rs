//! S32, and the headers of every answer.

use std::path::{Path, PathBuf};

use reqwest::Method;

use crate::harness::TestServer;

#[tokio::test]
async fn s32_every_answer_tells_the_browser_what_not_to_do() {
    let server = TestServer::start();
    for path in ["/", "/app.js", "/api/agents", "/nowhere", "/healthz", "/openapi.json", "/metrics"] {
        let answer = server.request(Method::GET, path).send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"), "{path}");
        assert_eq!(header("referrer-policy").as_deref(), Some("no-referrer"), "{path}");
        assert_eq!(header("cross-origin-resource-policy").as_deref(), Some("same-origin"), "{path}");
        assert_eq!(header("cross-origin-opener-policy").as_deref(), Some("same-origin"), "{path}");
        assert_eq!(header("access-control-allow-origin"), None, "{path}");
        assert_eq!(header("tokenrail-auth"), None, "{path}: only a server without a token has it");
        assert_eq!(header("server"), None, "{path}");
        assert_eq!(header("set-cookie"), None, "{path}: other ports of this machine would get it too");
        let policy = header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        for part in ["unsafe", "*", "http:", "data:", "blob:"] {
            assert!(!policy.contains(part), "{path}: {policy}");
        }
        if path.starts_with("/api") || path == "/metrics" {
            assert_eq!(header("cache-control").as_deref(), Some("no-store"), "{path}");
        }
    }
}

/// Whatever turns text into HTML or code, or loads from another host.
const FORBIDDEN: [&str; 14] = [
    "innerHTML",
    "dangerouslySetInnerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "setTimeout(\"",
    "createContextualFragment",
    "DOMParser",
    "srcdoc",
    "importScripts",
    "https://",
    "//cdn",
];

/// Names in React and in the word lists of the highlighter. The policy prevents their use: Trusted Types, and
/// `connect-src`.
const NAMED_BY_LIBRARIES: [&str; 3] = ["innerHTML", "dangerouslySetInnerHTML", "https://"];

#[tokio::test]
async fn s32_the_page_is_made_of_its_own_files_and_makes_no_html() {
    let server = TestServer::start();
    let html = text(&server, "/").await;
    let files: Vec<&str> = html.split(['"', '\'']).filter(|part| part.starts_with('/')).collect();
    assert!(2 <= files.len(), "its script and its style: {html}");
    for inline in ["<script>", "<style>", "style=", "onclick=", "onload=", "javascript:"] {
        assert!(!html.contains(inline), "{inline}");
    }
    for word in FORBIDDEN {
        assert!(!html.contains(word), "{word}");
        for file in files.iter().filter(|_| !NAMED_BY_LIBRARIES.contains(&word)) {
            assert!(!text(&server, file).await.contains(word), "{file} has {word}");
        }
    }
}

#[test]
fn s32_the_sources_of_the_page_have_no_way_to_make_html() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/web");
    let mut sources = Vec::new();
    for folder in ["page/src", "client/src"] {
        collect(&web.join(folder), &mut sources);
    }
    assert!(40 < sources.len(), "{sources:?}");
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        for word in FORBIDDEN {
            assert!(!text.contains(word), "{} has {word}", source.display());
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

async fn text(server: &TestServer, path: &str) -> String {
    let answer = server.request(Method::GET, path).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

#[tokio::test]
async fn s32_the_probes_tell_nothing_of_the_server() {
    let server = TestServer::start();
    for (path, status) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answer = server.http.get(format!("http://{}{path}", server.authority())).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), format!("{{\"status\":\"{status}\"}}"), "{path}");
    }
}
