//! Bad input gets the right problem, and loses nothing.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{TestServer, text_of};

/// Sends a request and expects this problem.
async fn check(server: &TestServer, request: reqwest::RequestBuilder, status: u16, code: &str) {
    let answer = request.send().await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let found = answer.status();
    let problem: Value = answer.json().await.unwrap();
    assert_eq!((found.as_u16(), problem["code"].as_str()), (status, Some(code)), "{problem}");
    assert_eq!(kind, "application/problem+json");
    assert!(problem["requestId"].is_string() && problem["retryable"].is_boolean(), "{problem}");
    // The server must survive any request.
    assert_eq!(server.request(Method::GET, "/healthz").send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn each_bad_request_has_its_problem() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({})).await;
    let launch = || server.request(Method::POST, "/api/agents");
    let json = |text: &'static str| launch().header("content-type", "application/json").body(text);
    let get = |path: String| server.request(Method::GET, &path);

    check(&server, json("{\"prompt\":"), 400, "malformed_json").await;
    check(&server, launch().body("prompt=x"), 415, "unsupported_media_type").await;
    check(&server, json("{\"prompt\":7}"), 422, "validation_failed").await;
    check(&server, json("{\"prompt\":\"\"}"), 422, "validation_failed").await;
    check(&server, json("{\"prompt\":\"x\",\"model\":\"--help\"}"), 422, "validation_failed").await;
    check(&server, json("{\"prompt\":\"x\",\"type\":\"nope\"}"), 422, "runner_unknown").await;
    check(&server, json("{\"prompt\":\"x\",\"type\":\"fake\",\"cwd\":\"/etc\"}"), 422, "cwd_not_allowed")
        .await;
    check(&server, launch().json(&json!({ "prompt": "x".repeat(2 << 20) })), 413, "payload_too_large").await;
    check(&server, get("/api/agents/nonsense".into()), 404, "not_found").await;
    check(&server, get("/api/agents/01900000-0000-7000-8000-000000000000/messages".into()), 404, "not_found")
        .await;
    check(&server, get(format!("/api/agents/{id}/messages?since=many")), 400, "cursor_malformed").await;
    check(&server, get(format!("/api/agents/{id}/messages?since=100000")), 409, "cursor_ahead").await;
    check(&server, get(format!("/api/agents/{id}/events?since=-1")), 400, "cursor_malformed").await;
    check(&server, get(format!("/api/agents/{id}/events?since=100000")), 409, "cursor_ahead").await;
    check(&server, get("/nowhere".into()), 404, "not_found").await;
    check(&server, server.request(Method::PUT, "/api/agents"), 405, "method_not_allowed").await;
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 1, "no agent came of it");
}

#[tokio::test]
async fn who_does_not_know_the_token_or_comes_from_elsewhere_gets_nothing() {
    let server = TestServer::start();
    let url = format!("http://{}/api/agents", server.authority());
    let get = || server.http.get(&url);
    check(&server, get(), 401, "unauthenticated").await;
    check(&server, get().bearer_auth("0".repeat(64)), 401, "unauthenticated").await;
    let known = || get().bearer_auth(server.token());
    check(&server, known().header("host", "evil.test"), 421, "host_not_allowed").await;
    check(&server, known().header("origin", "http://evil.test"), 403, "origin_not_allowed").await;
    check(&server, known().header("origin", "null"), 403, "origin_not_allowed").await;
    let own = format!("http://{}", server.authority());
    assert_eq!(known().header("origin", own).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_problem_leads_to_its_page_and_a_page_has_a_head() {
    let server = TestServer::start();
    let problem = server.http.get(format!("http://{}/api/agents", server.authority())).send().await.unwrap();
    let kind = problem.json::<Value>().await.unwrap()["type"].as_str().unwrap().to_owned();
    let page = server.http.get(format!("http://{}{kind}", server.authority())).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert!(page.text().await.unwrap().contains("A valid token is required"));
    for path in ["/", "/agents/x", "/app.js", "/app.css", "/healthz", "/readyz", &kind] {
        let url = format!("http://{}{path}", server.authority());
        let (head, get) = (server.http.head(&url).send(), server.http.get(&url).send());
        let (head, get) = (head.await.unwrap(), get.await.unwrap());
        assert_eq!((head.status(), get.status()), (StatusCode::OK, StatusCode::OK), "{path}");
        for name in ["content-length", "content-type", "content-security-policy"] {
            assert_eq!(head.headers().get(name), get.headers().get(name), "{path} {name}");
        }
        assert!(head.bytes().await.unwrap().is_empty(), "{path}");
    }
    check(&server, server.request(Method::POST, "/"), 405, "method_not_allowed").await;
}

#[tokio::test]
async fn who_guesses_too_often_waits_and_who_knows_does_not() {
    let server = TestServer::start();
    let url = format!("http://{}/api/agents", server.authority());
    let guess = || server.http.get(&url).bearer_auth("0".repeat(64)).send();
    let mut limited = guess().await.unwrap();
    for _ in 0..20 {
        if limited.status() == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
        assert_eq!(limited.status(), StatusCode::UNAUTHORIZED);
        limited = guess().await.unwrap();
    }
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() <= 60);
    assert_eq!(server.get("/api/agents").await, json!([]), "from the same address");
}

#[test]
fn what_cannot_be_read_as_http_is_answered_without_a_body() {
    use std::io::{Read as _, Write as _};
    let server = TestServer::start();
    let host = format!("Host: {}\r\n", server.authority());
    let lengths = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n";
    let many = "A: b\r\n".repeat(200);
    let cases = [
        (String::new(), 400),
        (host.clone() + &host, 400),
        (host.clone() + lengths, 400),
        ("nonsense\r\n".to_owned(), 400),
        (host.clone() + &many, 431),
    ];
    for (head, status) in cases {
        let head = format!("GET /healthz HTTP/1.1\r\n{head}\r\n");
        let mut socket = std::net::TcpStream::connect(server.authority()).unwrap();
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (answered, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            answered.starts_with(&format!("HTTP/1.1 {status} ")) && body.is_empty(),
            "{head:?}: {answer}"
        );
        assert!(!answered.to_lowercase().contains("x-request-id"), "{answer}");
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain-file");
    std::fs::write(&plain, "no program").unwrap();
    let config =
        format!("[agents.missing]\nprogram = \"no-such-program\"\n[agents.plain]\nprogram = {plain:?}\n");
    let server = TestServer::start_with(&config);
    for (kind, code) in [("missing", "program_missing"), ("plain", "program_not_executable")] {
        let id = server.launch_as(kind, "hi").await;
        server.wait_for_status(&id, "failed").await;
        let events = server.events(&id).await;
        let error = events.iter().find(|event| event["type"] == "error").unwrap();
        assert_eq!(error["metadata"]["error"]["class"], "process");
        assert_eq!(error["metadata"]["error"]["code"], code);
    }
    let types = server.get("/api/agent-types").await.to_string();
    assert!(types.contains("no-such-program"), "{types}");
}

#[tokio::test]
async fn a_second_server_on_the_folder_is_refused_and_disturbs_nothing() {
    let server = TestServer::start();
    let second = server.command(&["serve"]).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("in use by another server"), "{said}");
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    assert_eq!(text_of(&server.events(&id).await), "0 1 2 ");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_stops_the_start() {
    // Root may write everywhere, but cannot create a folder if a file with its name exists.
    let server = TestServer::start();
    let in_the_way = server.folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let mut command = std::process::Command::new(crate::harness::program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(in_the_way.join("data"));
    let output = command.current_dir(server.folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("file/data"), "{said}");
}

#[tokio::test]
async fn a_folder_to_which_others_can_write_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o770)).unwrap();
    let mut command = std::process::Command::new(crate::harness::program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
    let output = command.current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("other users can write") && said.contains("chmod 700"), "{said}");
    assert!(!folder.path().join("token").exists(), "nothing secret was put there");
}

/// Agents run as the same user as the server. The kernel lets such a process read the environment and memory of another
/// one, unless that process has forbidden it.
#[tokio::test]
async fn no_process_of_the_same_user_reads_the_servers_environment() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let (program, data) = (folder.path().join("tokenrail"), folder.path().join("data"));
    crate::harness::copy_program(&crate::harness::program(), &program);
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |program: &std::path::Path| {
        let mut command = std::process::Command::new(program);
        command.uid(NOBODY).gid(NOBODY).current_dir("/").stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let mut server = as_nobody(&program);
    let server = server.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data).spawn().unwrap();
    let mut server = Killed(server);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("serving on "), "{line}");
    let ordinary = Killed(as_nobody("/bin/sleep".as_ref()).arg("60").spawn().unwrap());
    let reads = |pid: u32| {
        let file = format!("/proc/{pid}/environ");
        as_nobody("/bin/cat".as_ref()).arg(file).stdout(Stdio::null()).status().unwrap().success()
    };
    assert!(!reads(server.0.id()));
    // The sleeping process shows that reading is possible otherwise. It may not have become `sleep` yet.
    let started = tokio::time::Instant::now();
    while !reads(ordinary.0.id()) {
        assert!(started.elapsed() < crate::harness::PATIENCE, "nobody can be read");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// A process that ends with its test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
