//! An ACP agent keeps its conversation in its process, which idles between two turns. Otherwise an agent that cannot
//! load a session would have only one turn. If the conversation is lost, the user is told.

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, write_script};
use crate::idle::{opens_while_down, send, turns, until_none_is_left};

/// Prints its process id, the number of prompts in its session, and the prompt. The first word of the prompt says what
/// it does. Its first argument says what it can do with an earlier session.
const AGENT: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
say() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$session" "$1"; }
n=0
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      [ "$1" = forgets ] && able=false || able=true
      answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":'$able'}}' ;;
    *'"method":"session/new"'*) session=s-$$; answer '{"sessionId":"'$session'"}' ;;
    *'"method":"session/load"'*)
      [ "$1" = lost ] && { refuse -32002 'Resource not found'; continue; }
      session=loaded; n=100; answer '{}' ;;
    *'"method":"session/prompt"'*)
      n=$((n + 1))
      asked=$(printf '%s' "$line" | sed 's/.*"text":"\([^"]*\)".*/\1/')
      say "$$ $n $asked."
      case "$asked" in
        gated*) until [ -e go ]; do sleep 0.01; done; say 'It is open.' ;;
        failing*) refuse -32603 Overloaded; continue ;;
      esac
      answer '{"stopReason":"end_turn"}' ;;
  esac
done
"#;

fn server(can: &str, more: &str) -> TestServer {
    let script = tempfile::tempdir().unwrap().keep().join("agent");
    write_script(&script, AGENT);
    let block = format!(
        "[agents.talking]\nrunner = \"acp\"\nargs = [\"{can}\"]\nprogram = \"{}\"\n",
        script.display()
    );
    TestServer::start_with(&(block + more))
}

/// The process id, the number of prompts in the session, and the prompt.
fn parts(said: &str) -> (&str, &str, &str) {
    let (pid, rest) = said.split_once(' ').expect("a process id");
    let (count, asked) = rest.split_once(' ').expect("a count");
    (pid, count, asked)
}

async fn one_turn(server: &TestServer) -> (String, String) {
    let id = server.launch_as("talking", "one").await;
    let said = turns(server, &id, 1).await;
    let (pid, count, asked) = parts(&said[0].0);
    assert_eq!((count, asked), ("1", "one."));
    (id, pid.to_owned())
}

/// Waits for a piece of a message, which may continue.
async fn until_said(server: &TestServer, id: &str, words: &str) {
    let is_piece = |event: &Value| {
        event["metadata"]["eventType"] == "content_delta"
            && event["content"].as_str().unwrap().contains(words)
    };
    while !server.events(id).await.iter().any(is_piece) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The turns with a lost session, and what the user is told.
async fn lost(server: &TestServer, id: &str) -> Vec<(u64, Value)> {
    let events = server.events(id).await;
    let lost = events.iter().filter(|event| event["metadata"]["eventType"] == "session_lost");
    lost.map(|event| (event["metadata"]["turn"].as_u64().unwrap_or(0), event["metadata"]["data"].clone()))
        .collect()
}

/// The second turn has a new session, and the user is told.
async fn begins_anew(server: &TestServer, id: &str, first: &str) {
    let said = turns(server, id, 2).await;
    let (pid, count, asked) = parts(&said[1].0);
    assert_eq!((count, asked, said[1].1.as_str()), ("1", "two.", "completed"));
    assert_ne!(pid, first);
    let lost = lost(server, id).await;
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0].1["sessionId"], format!("s-{first}"));
    assert!(lost[0].1["text"].as_str().unwrap().contains("without the earlier conversation"), "{lost:?}");
    let agent = server.get(&format!("/api/agents/{id}")).await;
    assert_eq!(agent["sessionId"], format!("s-{pid}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_cannot_load_a_session_remembers_it() {
    let server = server("forgets", "");
    let (id, first) = one_turn(&server).await;
    for (number, asked, outcome) in
        [(2, "two", "completed"), (3, "failing", "failed"), (4, "four", "completed")]
    {
        send(&server, &id, asked).await;
        let said = turns(&server, &id, number).await;
        let expected = (format!("{first} {number} {asked}."), outcome.to_owned());
        assert_eq!(said[number - 1], expected);
    }
    assert_eq!(lost(&server, &id).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_has_waited_long_enough_begins_anew_and_says_so() {
    for can in ["forgets", "lost"] {
        let server = server(can, "rest_s = 1\n");
        let (id, first) = one_turn(&server).await;
        until_none_is_left(&id).await;
        send(&server, &id, "two").await;
        begins_anew(&server, &id, &first).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_can_load_its_session_does() {
    let server = server("loads", "rest_s = 1\n");
    let (id, first) = one_turn(&server).await;
    until_none_is_left(&id).await;
    send(&server, &id, "two").await;
    let said = turns(&server, &id, 2).await;
    let (pid, count, asked) = parts(&said[1].0);
    assert_eq!((count, asked, pid == first), ("101", "two.", false));
    assert_eq!(lost(&server, &id).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_cancel_the_next_turn_begins_anew_and_says_so() {
    let server = server("forgets", "interrupt = false\n[limits]\ncancel_grace_s = 1\n");
    let id = server.launch_as("talking", "gated one").await;
    until_said(&server, &id, "gated one").await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    let said = turns(&server, &id, 1).await;
    assert_eq!(said[0].1, "cancelled");
    no_process_is_left(&id).await;
    send(&server, &id, "two").await;
    let events = server.events(&id).await;
    let said = events.iter().find(|event| event["metadata"]["eventType"] == "content_delta").unwrap();
    begins_anew(&server, &id, parts(said["content"].as_str().unwrap()).0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_when_the_server_dies_is_lost_and_the_user_is_told() {
    let mut server = server("forgets", "");
    let (id, first) = one_turn(&server).await;
    server.kill_and_start_again();
    no_process_is_left(&id).await;
    send(&server, &id, "two").await;
    begins_anew(&server, &id, &first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_in_a_process_that_goes_on_outlives_the_server() {
    let mut server = server("loads", "");
    let (id, first) = one_turn(&server).await;
    send(&server, &id, "gated two").await;
    until_said(&server, &id, "gated two").await;
    opens_while_down(&mut server, &id);
    let said = turns(&server, &id, 2).await;
    assert_eq!(said[1], (format!("{first} 2 gated two.It is open."), "completed".to_owned()));
    // After a restart, the process ends with its turn, because the server cannot know how it was started.
    until_none_is_left(&id).await;
    send(&server, &id, "three").await;
    assert_eq!(parts(&turns(&server, &id, 3).await[2].0).1, "101");
}
