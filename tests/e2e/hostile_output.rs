//! Output that is valid JSON, but not readable for every parser: it hides nothing, and all other output stays readable.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::harness::{TestServer, program};

/// The inputs of the tool calls. Each is valid JSON, but some parsers refuse it.
fn inputs() -> Vec<String> {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    vec![
        r#"{"command":"shred one","n":1e400}"#.to_owned(),
        format!(r#"{{"command":"shred two","n":{deep}}}"#),
        r#"{"command":"shred three","n":"\ud800"}"#.to_owned(),
    ]
}

/// The output of such an agent.
fn lines() -> String {
    let call = |(number, input): (usize, String)| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"toolu_{number}","name":"Bash","input":{input}}}],"stop_reason":null,"usage":{{"output_tokens":1}}}},"session_id":"5e551011-0000-4000-8000-000000000001","parent_tool_use_id":null}}"#
        )
    };
    let result = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"num_turns":1,"result":"done","session_id":"5e551011-0000-4000-8000-000000000001","total_cost_usd":0.1,"usage":{"output_tokens":1e999}}"#;
    let lines = inputs().into_iter().enumerate().map(call).chain([result.to_owned()]);
    lines.map(|line| line + "\n").collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_call_is_seen_and_every_agent_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    std::fs::write(&file, lines()).unwrap();
    let print = format!("cat >/dev/null; cat '{}'", file.display());
    let args = json!(["-c", print, "sh"]);
    let server = TestServer::start_with(&format!("[agents.hostile]\nprogram = \"/bin/sh\"\nargs = {args}\n"));
    let output = server.command(&["run", "--type", "hostile", "hi"]).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    for command in ["shred one", "shred two", "shred three"] {
        assert!(shown.contains(command), "{command} is hidden: {shown}\n{output:?}");
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    // This test reads the answers with a parser that refuses such values.
    let agents = server.get("/api/agents").await;
    let id = agents[0]["id"].as_str().unwrap();
    assert_eq!(agents[0]["usage"], r#"{"output_tokens":1e999}"#);
    let events = server.get(&format!("/api/agents/{id}/messages?raw=true")).await;
    let calls: Vec<&Value> =
        events.as_array().unwrap().iter().filter(|event| event["type"] == "tool").collect();
    let seen: Vec<_> = calls.iter().map(|call| call["content"]["input"].as_str().unwrap()).collect();
    assert_eq!(seen, inputs());
    let raw = events.as_array().unwrap().iter().filter_map(|event| event["raw"].as_str());
    assert!(raw.collect::<String>().contains(&lines()[..200]), "what was printed is kept as it was");
    let output = server.command(&["ls"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(id));
}

/// A server of another version, whose second event and whose agent this program cannot read.
fn answer(mut connection: TcpStream) -> std::io::Result<()> {
    let mut request = String::new();
    let mut reader = BufReader::new(connection.try_clone()?);
    reader.read_line(&mut request)?;
    let mut line = String::from("x");
    while !line.trim().is_empty() {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let event = |number: u32, content: &str| {
        let data = format!(
            r#"{{"sequenceNumber":{number},"content":{content},"metadata":{{"eventType":"user_message"}}}}"#
        );
        format!("id: {number}\nevent: x\ndata: {data}\n\n")
    };
    let (kind, body) = if request.contains("/events") {
        ("text/event-stream", event(1, "\"one\"") + &event(2, "[1e400]") + &event(3, "\"three\""))
    } else if request.contains("/status") {
        ("application/json", r#"{"status":"completed"}"#.to_owned())
    } else {
        ("application/json", r#"[{"id":"odd","usage":1e400},{"id":"even","status":"completed"}]"#.to_owned())
    };
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n");
    write!(connection, "{head}connection: close\r\n\r\n{body}")
}

#[test]
fn what_cannot_be_read_is_shown_as_it_came_and_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let _ = answer(connection);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let command = |args: &[&str]| {
        let mut command = std::process::Command::new(program());
        command.args(args).args(["--listen", &address, "--data-dir"]).arg(folder.path().join("data"));
        let output = command.current_dir(folder.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, shown, said) = command(&["tail", "01a211c1-1e34-7650-bd56-614a0b2d3fec"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(shown.contains("> one\n") && shown.contains(r#""content":[1e400]"#), "{shown}");
    assert!(shown.contains("> three\n"), "{shown}");
    assert!(
        said.contains("cannot decode event 2 (") && said.contains("; it is printed as received"),
        "{said}"
    );
    let (code, shown, said) = command(&["ls"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(shown.contains(r#"{"id":"odd","usage":1e400}"#) && shown.contains("even  completed"), "{shown}");
    assert!(
        said.contains("cannot decode this agent (") && said.contains("; it is printed as received"),
        "{said}"
    );
    let (code, shown, _) = command(&["ls", "--json"]);
    assert_eq!((code, shown.lines().next()), (Some(0), Some(r#"{"id":"odd","usage":1e400}"#)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_that_cannot_be_written_is_told_and_is_no_success() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 5 })).await;
    for args in [&["token"][..], &["ls"], &["doctor"], &["--help"], &["tail", &id], &["tail", "--json", &id]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = server.command(args).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("No space left on device") && !said.contains("output closed"), "{said}");
        let again = format!("to continue: tokenrail tail {id} --since 0");
        assert_eq!(said.contains(&again), args[0] == "tail", "{said}");
    }
}
