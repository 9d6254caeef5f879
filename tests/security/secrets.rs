//! S18, S19, S21: what must not appear anywhere else, and what must not be more than text.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_agent};
use crate::socket::Socket;
use crate::started::Started;

/// Words that appear nowhere else.
const FIXED: &str = "canary-fixed-env-3f9a";
const PASSED: &str = "canary-passed-env-77c1";
const OF_SERVER: &str = "canary-server-env-b02d";
const PROMPT: &str = "canary-prompt-51e8";
const OUTPUT: &str = "canary-output-94aa";
const STDERR: &str = "canary-stderr-c6d3";
const QUERY: &str = "canary-query-1d27";
const HEADER: &str = "canary-header-e5b4";
const NAME: &str = "canary-name-08f6";
const CANARIES: [&str; 9] = [FIXED, PASSED, OF_SERVER, PROMPT, OUTPUT, STDERR, QUERY, HEADER, NAME];

#[tokio::test]
async fn s18_secrets_stand_in_no_log_no_metric_no_error_and_not_where_they_need_not() {
    let config = format!(
        "[agents.fake]\nprogram = \"{}\"\npass_env = [\"PASSED_KEY\"]\nenv = {{ FIXED_KEY = \"{FIXED}\" }}\n\
         [agents.missing]\nprogram = \"no-such-program\"\nenv = {{ FIXED_KEY = \"{FIXED}\" }}\n",
        fake_agent().display()
    );
    let mut server = TestServer::start_with(&config);
    server.kill_9();
    let env = [("PASSED_KEY", PASSED), ("SERVER_KEY", OF_SERVER)];
    let mut started = Started::start_on(server, &[], &["--log", "debug", "--stop-agents"], &env);
    let server = &started.server;
    let said = everything_that_can_go_wrong(server).await;
    let metrics = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let types = server.get("/api/agent-types").await.to_string();
    let token = server.token().to_owned();
    // An agent that still runs at the end, and has to be stopped.
    let runs = json!({ "mode": "hang", "say": [OUTPUT], "complain": STDERR }).to_string();
    server.launch_as("fake", &format!("{runs}\n{PROMPT}")).await;
    let database = files(&server.data_dir(), "tokenrail.db");
    let kept = server.data_dir();
    let serving = started.log();
    let log = started.end();
    assert!(log[serving.len()..].contains("stopping"), "with what is said at the end: {log}");
    assert!(log.contains("serving address"), "the log is there: {log}");

    let secrets: Vec<&str> = CANARIES.iter().copied().chain([token.as_str()]).collect();
    for secret in secrets {
        for (place, text) in
            [("the log", &log), ("the metrics", &metrics), ("problems", &said), ("types", &types)]
        {
            assert!(!text.contains(secret), "{secret} stands in {place}:\n{text}");
        }
    }
    let holds = |secret: &str| memchr::memmem::find(&database, secret.as_bytes()).is_some();
    assert!(holds(PROMPT) && holds(NAME), "this test can find things in the database");
    for secret in [FIXED, PASSED, OF_SERVER, QUERY, HEADER, &token] {
        assert!(!holds(secret), "{secret} stands in the database");
    }
    for secret in [FIXED, PASSED, OF_SERVER, QUERY, HEADER] {
        assert_eq!(files_with(&kept, secret), [""; 0], "{secret} is kept on the disk");
    }
    assert_eq!(files_with(&kept, &token), ["token"]);
}

#[tokio::test]
async fn s18_a_fault_of_the_program_is_told_without_what_it_was_about() {
    let env = [("RUST_BACKTRACE", "0")];
    let mut server = TestServer::start();
    server.kill_9();
    let mut started = Started::start_on(server, &[], &["--test-routes"], &env);
    let server = &started.server;
    let answer = server.request(Method::GET, &format!("/test/panic/{PROMPT}")).send().await;
    let told = match answer {
        Ok(answer) => answer.text().await.unwrap_or_default(),
        Err(error) => error.without_url().to_string(),
    };
    assert!(!told.contains(PROMPT), "{told}");
    server.launch_to_completion(&json!({ "deltas": 2 })).await;
    let log = started.end();
    assert!(log.contains("a thread panicked") && log.contains("rest/panic.rs:"), "{log}");
    assert!(!log.contains(PROMPT), "{log}");
}

/// Requests existing and missing things, with a canary in every place. Returns the problems.
async fn everything_that_can_go_wrong(server: &TestServer) -> String {
    let script = json!({ "say": [OUTPUT], "complain": STDERR }).to_string();
    let prompt = format!("{script}\n{PROMPT}");
    let mut problems = String::new();
    for (kind, mode) in [("fake", "stream"), ("fake", "crash"), ("missing", "stream")] {
        let prompt = prompt.replace("{\"complain", &format!("{{\"mode\":\"{mode}\",\"complain"));
        let body = json!({ "type": kind, "prompt": prompt, "name": NAME, "metadata": { "x": NAME } });
        let (status, agent) = server.post("/api/agents", &body).await;
        assert_eq!(status, 201, "{agent}");
        let id = agent["agentId"].as_str().unwrap();
        server.wait_until(id, |agent| agent["endedAt"].is_string()).await;
        let mut socket = Socket::open(server, &format!("?x={QUERY}")).await;
        socket.say("subscribe", &json!({ "agentId": id, "since": 0 })).await;
        socket.hear_of("subscribed").await;
        socket.say(HEADER, &json!({ "x": PROMPT })).await;
        problems += &socket.hear_of("error").await.to_string();
    }
    let wrong = [
        json!({ "type": PROMPT, "prompt": PROMPT }),
        json!({ "type": "fake", "prompt": PROMPT, "cwd": format!("/{PROMPT}") }),
        json!({ "type": "fake", "prompt": PROMPT, "model": format!("-{PROMPT}"), "sessionId": format!("-{NAME}") }),
        json!([PROMPT]),
        Value::from(PROMPT),
    ];
    for body in wrong {
        problems += &server.post("/api/agents", &body).await.1.to_string();
    }
    let cut = format!("{{\"prompt\": \"{PROMPT}");
    let requests = [
        server.request(Method::POST, "/api/agents").header("content-type", "application/json").body(cut),
        server.request(Method::GET, &format!("/api/agents?x={QUERY}&limit={QUERY}")).header("x-key", HEADER),
        server
            .request(Method::GET, &format!("/{QUERY}"))
            .header("cookie", HEADER)
            .header("user-agent", HEADER),
        server.request(Method::GET, &format!("/api/agents/{QUERY}/messages")),
        server
            .http
            .get(format!("http://{}/api/agents?ticket={QUERY}", server.authority()))
            .bearer_auth(HEADER),
        server.http.get(format!("http://{}/ws?ticket={QUERY}", server.authority())),
        server.request(Method::PUT, "/api/agents").body(PROMPT),
    ];
    for request in requests {
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_client_error(), "{}", answer.status());
        problems += &answer.text().await.unwrap();
    }
    // Only the client that sends an unknown name is told the setting that would allow it. No log contains the name.
    for (header, name, setting) in [
        ("host", HEADER.to_owned(), "allowed_hosts"),
        ("origin", format!("http://{HEADER}"), "allowed_origins"),
    ] {
        let refused = server.request(Method::GET, "/api/agents").header(header, &name).send().await.unwrap();
        let problem: Value = refused.json().await.unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&name) && detail.contains(setting), "{problem}");
    }
    problems
}

/// The bytes of all files in a folder whose names begin with this.
fn files(folder: &Path, name: &str) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(name));
    named.flat_map(|path| std::fs::read(path).unwrap()).collect()
}

/// The files in a folder, at any depth, that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path)
                .is_ok_and(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some())
            {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// Text that could forge a line of the log, or control a terminal that shows it.
const HOSTILE: &str =
    "x\n2026-01-01T00:00:00.000000Z  INFO forged\r\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}";

#[tokio::test]
async fn s19_nobody_writes_lines_of_the_log() {
    for format in ["text", "json"] {
        let config = format!(
            "[agents.fake]\nprogram = \"{}\"\n[agents.missing]\nprogram = \"no-such-program\"\n",
            fake_agent().display()
        );
        let started = Started::start(&config, &[], &["--log", "trace", "--log-format", format]);
        let server = &started.server;
        for kind in ["fake", "missing", HOSTILE] {
            for mode in ["stream", "crash"] {
                let script = json!({ "mode": mode, "say": [HOSTILE], "complain": HOSTILE });
                let prompt = format!("{script}\n{HOSTILE}");
                let body = json!({ "type": kind, "prompt": prompt, "name": HOSTILE, "metadata": { HOSTILE: HOSTILE } });
                let (status, agent) = server.post("/api/agents", &body).await;
                if status == 201 {
                    let id = agent["agentId"].as_str().unwrap();
                    server.wait_until(id, |agent| agent["endedAt"].is_string()).await;
                }
            }
        }
        for path in ["/%0aforged", "/%1b%5b2J?%0d%0aforged=%1b", "/api/agents/%0aforged"] {
            server.request(Method::GET, path).send().await.unwrap();
        }
        let log = started.stop();
        assert!(10 < log.lines().count(), "{format}: the log is there: {log}");
        for line in log.lines().filter(|line| !line.starts_with("warning: running as root")) {
            let forged = line.starts_with("2026-01-01") || line.starts_with("forged");
            assert!(!forged, "{format}: {line:?}");
            let control = line.chars().find(|c| c.is_control() && *c != '\t');
            assert_eq!(control, None, "{format}: {line:?}");
            if format == "json" {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "{line:?}");
            }
        }
    }
}

/// Sequences that do more than colour text: titles, the clipboard, links, queries to the terminal.
const SEQUENCES: [&str; 14] = [
    "\u{1b}]0;title\u{7}",
    "\u{1b}]2;title\u{1b}\\",
    "\u{1b}]8;;http://evil.test\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}P$qm\u{1b}\\",
    "\u{1b}P1000p\u{1b}\\",
    "\u{1b}_application\u{1b}\\",
    "\u{1b}^privacy\u{1b}\\",
    "\u{1b}Xstring\u{1b}\\",
    "\u{1b}[6n",
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}[?1049h",
    "\u{9d}0;title\u{9c}",
    "\u{9b}6n",
];

#[tokio::test]
async fn s21_what_agents_say_does_nothing_to_a_terminal() {
    let server = TestServer::start();
    let whole = SEQUENCES.concat();
    let split: Vec<String> = whole.chars().map(String::from).collect();
    for say in [vec![whole.clone()], split] {
        let prompt = json!({ "say": say, "complain": whole, "mode": "stream" }).to_string();
        let body = json!({ "type": "fake", "prompt": format!("{prompt}\n{whole}"), "name": whole });
        let (_, agent) = server.post("/api/agents", &body).await;
        let id = agent["agentId"].as_str().unwrap();
        server.wait_for_status(id, "completed").await;
        for words in [&["tail", id, "--since", "0"][..], &["ls"]] {
            let shown = on_a_terminal(&server, words);
            assert!(shown.contains("title") || words == ["ls"], "it is shown: {shown:?}");
            // Only the program's own colours remain.
            let rest = shown.split("\u{1b}[").skip(1);
            for after in rest {
                let end = after.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap_or(after.len());
                assert!(matches!(&after[end..=end], "m" | "K"), "{words:?}: {after:?}");
            }
            let bare = shown.replace("\u{1b}[", "");
            let control = bare.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
            assert_eq!(control, None, "{words:?}: {bare:?}");
        }
    }
}

/// Runs the program on its own terminal, and returns what it has shown.
fn on_a_terminal(server: &TestServer, words: &[&str]) -> String {
    let usual = server.command(words);
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy());
    let line: Vec<_> = std::iter::once(usual.get_program()).chain(usual.get_args()).map(quoted).collect();
    let output = std::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"])
        .current_dir(server.folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
