//! S10, S12, S22, S23: the bodies of requests.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config, text_of};
use crate::raw::{self, Answer, HANDSHAKE};

/// The server may not grow by more than this because of one client's requests.
const MEMORY_BYTES: u64 = 64 << 20;

async fn post(server: &TestServer, path: &str, lines: &[&str], body: &[u8]) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    let lines: Vec<&str> = lines.iter().copied().chain([length.as_str()]).collect();
    let mut request = raw::request(server, "POST", path, &lines).into_bytes();
    request.extend_from_slice(body);
    raw::send(server, request).await.expect("an answer")
}

async fn launch(server: &TestServer, body: &[u8]) -> (u16, String) {
    let answer = post(server, "/api/agents", &["Content-Type: application/json"], body).await;
    (answer.status, answer.code())
}

async fn agents(server: &TestServer) -> usize {
    server.get("/api/agents").await.as_array().unwrap().len()
}

#[tokio::test]
async fn s10_what_a_client_says_about_ids_owners_and_programs_means_nothing() {
    let server = TestServer::start();
    let mine = "0195bd2f-0a00-7000-8000-000000000001";
    let prompt = json!({ "mode": "env_dump" }).to_string();
    let (status, agent) = server
        .post(
            "/api/agents",
            &json!({
                "type": "fake", "prompt": prompt, "id": mine, "agentId": mine, "status": "completed", "turn": 7,
                "head": 99, "queued": 3, "owner": "admin", "scopes": ["admin"], "role": "system", "sequence": 5,
                "createdAt": "1999-01-01T00:00:00.000Z", "endedAt": "1999-01-01T00:00:00.000Z", "token": "x",
                "program": "/bin/sh", "args": ["-c", "true"], "env": { "EVIL": "1" }, "url": "http://127.0.0.1:9",
                "options": { "program": "/bin/sh", "args": ["-c", "true"], "env": { "EVIL": "1" } },
                "metadata": { "env": { "EVIL": "1" } },
            }),
        )
        .await;
    assert_eq!(status, 201, "{agent}");
    let id = agent["agentId"].as_str().unwrap();
    assert_ne!(id, mine);
    assert_ne!(agent["status"], "completed");
    assert_eq!((&agent["turn"], agent["createdAt"].as_str().unwrap() < "2000"), (&json!(1), false));
    server.wait_for_status(id, "completed").await;
    let seen: Value = serde_json::from_str(&text_of(&server.events(id).await)).unwrap();
    assert_eq!(seen["env"]["EVIL"], Value::Null);
    assert!(seen["cmdline"][0].as_str().unwrap().ends_with("fake-agent"), "{seen}");
    assert!(!seen["cmdline"].to_string().contains("-c"), "{seen}");

    let message =
        json!({ "content": "{}", "turn": 1, "role": "assistant", "sequenceNumber": 1, "type": "response" });
    let (status, accepted) = server.post(&format!("/api/agents/{id}/messages"), &message).await;
    assert_eq!((status.as_u16(), &accepted["turn"]), (202, &json!(2)));
    server.wait_until(id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
    let events = server.events(id).await;
    let said = events.iter().rfind(|event| event["metadata"]["eventType"] == "user_message").unwrap();
    assert_eq!((&said["role"], &said["type"]), (&json!("user"), &json!("user")));
}

#[tokio::test]
async fn s12_what_would_become_an_option_or_a_path_is_no_model_and_no_session() {
    let server = TestServer::start();
    let long = "m".repeat(129);
    let models = [
        "--help",
        "-p",
        "",
        " ",
        "a b",
        "a\tb",
        "a\nb",
        "a\u{0}b",
        "opus;id",
        "$(id)",
        "`id`",
        "a|b",
        "a\\b",
        "é",
        "٣",
        "１",
        "a\u{202e}b",
        "a\u{200b}b",
        "{model}",
        "a,b",
        "a=b",
        &long,
    ];
    for model in models {
        let (status, problem) =
            server.post("/api/agents", &json!({ "type": "fake", "prompt": "{}", "model": model })).await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("validation_failed")), "{model:?}");
        assert_eq!(problem["errors"][0]["pointer"], "/model");
        assert!(model.trim().len() < 3 || !problem.to_string().contains(model), "no echo: {problem}");
    }
    let long = "s".repeat(129);
    let paths = ["/etc/passwd", "../a", "..", ".a", "a/b", "a\\b", "a..b"];
    for session in
        ["--help", "-", "", " ", "a b", "a\nb", "a\u{0}b", "é", "\u{7f}", &long].into_iter().chain(paths)
    {
        let (status, problem) = server
            .post("/api/agents", &json!({ "type": "fake", "prompt": "{}", "sessionId": session }))
            .await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("validation_failed")), "{session:?}");
    }
    let outside =
        ["../../etc/passwd", "%2e%2e", "a/../b", "-1", "0", "01900000-0000-7000-8000-00000000000G", "%00"];
    for id in outside {
        for (method, rest) in
            [(Method::GET, ""), (Method::GET, "/events"), (Method::POST, "/cancel"), (Method::DELETE, "")]
        {
            let method = method.as_str();
            let path = format!("/api/agents/{id}{rest}");
            let answer = raw::send(&server, raw::request(&server, method, &path, &[])).await.unwrap();
            assert!(matches!(answer.status, 400 | 404 | 405), "{method} {path}: {}", answer.head);
        }
    }
    assert_eq!(agents(&server).await, 0);
}

#[tokio::test]
async fn s22_json_that_is_too_much_or_none_is_refused_and_costs_nothing() {
    let server = TestServer::start();
    let good = |rest: &str| format!("{{\"type\":\"fake\",\"prompt\":\"{{}}\"{rest}}}").into_bytes();
    let utf16: Vec<u8> =
        String::from_utf8(good("")).unwrap().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bom = [b"\xef\xbb\xbf".as_slice(), &good("")].concat();
    let deep =
        |open: &str, close: &str| format!(",\"metadata\":{}1{}", open.repeat(10_000), close.repeat(10_000));
    let cases: [(&str, Vec<u8>, &[u16]); 17] = [
        ("deep arrays", deep("[", "]").into_bytes(), &[400]),
        ("deep objects", good(&deep("{\"a\":", "}")), &[400]),
        ("deep and open", "[".repeat(500_000).into_bytes(), &[400]),
        ("deep in a string is not deep", good(",\"model\":\"[[[\""), &[422]),
        ("a million elements", good(&format!(",\"metadata\":[{}0]", "0,".repeat(400_000))), &[422]),
        ("ten million elements", good(&format!(",\"metadata\":[{}0]", "0,".repeat(10_000_000))), &[413]),
        ("a key of 1 MiB", good(&format!(",\"{}\":1", "k".repeat(1 << 20))), &[413]),
        ("a long key", good(&format!(",\"{}\":1,\"name\":1", "k".repeat(900_000))), &[422]),
        ("a field twice", good(",\"prompt\":\"other\""), &[400]),
        ("a field twice, by an escape", good(",\"pr\\u006fmpt\":\"other\""), &[400]),
        ("a number that is too large", good(",\"name\":1e400"), &[400, 422]),
        ("not a number", good(",\"name\":NaN"), &[400]),
        ("a comment", good("/**/,\"x\":1,"), &[400]),
        ("a byte order mark", bom, &[400]),
        ("UTF-16", utf16, &[400]),
        ("bytes that are no text", b"{\"type\":\"fake\",\"prompt\":\"\xff\xfe\"}".to_vec(), &[400]),
        ("half a character", good(",\"name\":\"\\ud800\""), &[400, 422]),
    ];
    let before = resident_bytes(server.pid());
    for (what, body, expected) in cases {
        let (status, code) = launch(&server, &body).await;
        assert!(expected.contains(&status), "{what}: {status} {code}");
        let known = matches!(code.as_str(), "malformed_json" | "validation_failed" | "payload_too_large");
        assert!(known, "{what}: {code}");
    }
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(grown < MEMORY_BYTES, "{grown} bytes more");
    assert_eq!(agents(&server).await, 0);
    server.launch(&json!({})).await;
}

#[tokio::test]
async fn s23_nothing_is_unpacked() {
    let server = TestServer::start();
    let body = b"{\"type\":\"fake\",\"prompt\":\"{}\"}";
    for coding in ["gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", "chunked", ""] {
        let lines = ["Content-Type: application/json", &format!("Content-Encoding: {coding}")];
        for path in ["/api/agents", "/api/tickets"] {
            let answer = post(&server, path, &lines, body).await;
            let found = (answer.status, answer.code());
            assert_eq!(found, (415, "content_encoding_refused".to_owned()), "{coding} at {path}");
        }
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json5",
        "text/json",
    ] {
        let answer = post(&server, "/api/agents", &[&format!("Content-Type: {kind}")], body).await;
        assert_eq!((answer.status, answer.code()), (415, "unsupported_media_type".to_owned()), "{kind}");
    }
    assert_eq!(agents(&server).await, 0);
}

#[tokio::test]
async fn s23_a_websocket_is_never_compressed() {
    let server = TestServer::start();
    let offer =
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-webkit-deflate-frame";
    let lines: Vec<&str> = HANDSHAKE.iter().copied().chain([offer]).collect();
    let answer = raw::send(&server, raw::request(&server, "GET", "/ws", &lines)).await.unwrap();
    assert_eq!(answer.status, 101);
    assert_eq!(answer.header("sec-websocket-extensions"), None);
    let lines = ["Accept: text/event-stream", "Accept-Encoding: gzip, br"];
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let path = format!("/api/agents/{id}/events");
    for lines in [&lines[..], &lines[1..]] {
        let answer = raw::send(&server, raw::request(&server, "GET", &path, lines)).await.unwrap();
        assert_eq!((answer.status, answer.header("content-encoding")), (200, None));
    }
}

#[tokio::test]
async fn s22_a_limit_of_the_body_is_the_configured_one() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nrequest_bytes = 200\n"));
    let body = |length: usize| format!("{:length$}", "{\"type\":\"fake\",\"prompt\":\"{}\"}").into_bytes();
    assert_eq!(launch(&server, &body(201)).await, (413, "payload_too_large".to_owned()));
    assert_eq!(launch(&server, &body(200)).await.0, 201);
}

pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
