//! An interactive program takes further messages without a new process: between two turns it idles for a while. The
//! agent is a script that speaks the two-way protocol of Claude Code.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, processes_of_agent, text_of, write_script};

/// Prints its process id, its arguments and the prompt. The first word of the prompt says what it does.
const AGENT: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit
say() { printf '{"type":"assistant","message":{"id":"m%s","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$n" "$1"; }
n=0
while read -r line; do
  case "$line" in *'"type":"user"'*) ;; *) continue ;; esac
  n=$((n + 1))
  asked=$(printf '%s' "$line" | sed 's/.*"content":"\([^"]*\)".*/\1/')
  printf '%s\n' "$asked" >> asked
  echo '{"type":"system","subtype":"init","session_id":"s-1"}'
  say "$$ [$*] $asked."
  failed=false
  case "$asked" in
    gated*) until [ -e go ]; do sleep 0.01; done; say 'It is open.' ;;
    asking*)
      echo '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make"},"tool_use_id":"t"}}'
      read -r answer
      case "$answer" in *'"allow"'*) say Allowed. ;; *) say Refused. ;; esac ;;
    background*) echo '{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1"}]}' ;;
    failing*) failed=true ;;
    dying*) echo '{"type":"result","subtype":"success","is_error":false,"result":""}'; exit 3 ;;
  esac
  echo '{"type":"result","subtype":"success","is_error":'$failed',"result":""}'
done
"#;

fn server(more: &str) -> TestServer {
    let script = tempfile::tempdir().unwrap().keep().join("agent");
    write_script(&script, AGENT);
    let block = format!(
        "[agents.talking]\nformat = \"claude-two-way\"\nargs = []\nprogram = \"{}\"\n",
        script.display()
    );
    TestServer::start_with(&(block + more))
}

pub(crate) async fn send(server: &TestServer, id: &str, content: &str) {
    let (status, told) =
        server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": content })).await;
    assert!(status.is_success(), "{told}");
}

/// Waits until the agent has ended its turns. Returns the text and the outcome of each turn.
pub(crate) async fn turns(server: &TestServer, id: &str, count: usize) -> Vec<(String, String)> {
    loop {
        let events = server.events(id).await;
        let ended: Vec<_> = events.iter().filter_map(outcome).collect();
        if count <= ended.len() {
            assert_eq!(ended.len(), count);
            let turns = events.split_inclusive(|event| outcome(event).is_some());
            return turns.map(text_of).zip(ended).collect();
        }
        server.wait_until(id, |agent| agent["head"].as_u64() != Some(events.len() as u64)).await;
    }
}

fn outcome(event: &Value) -> Option<String> {
    let result = event["metadata"]["eventType"] == "result";
    result.then(|| event["metadata"]["outcome"].as_str().unwrap_or_default().to_owned())
}

/// The process id at the beginning of the text, and the rest.
fn pid(said: &str) -> (&str, &str) {
    said.split_once(' ').expect("a process id")
}

async fn one_turn(server: &TestServer) -> (String, String) {
    let id = server.launch_as("talking", "one").await;
    let said = turns(server, &id, 1).await;
    assert_eq!(pid(&said[0].0).1, "[] one.");
    let pid = pid(&said[0].0).0.to_owned();
    (id, pid)
}

pub(crate) fn gate(server: &TestServer, id: &str) -> PathBuf {
    server.data_dir().join("work").join(id).join("go")
}

pub(crate) async fn until_none_is_left(id: &str) {
    let started = tokio::time::Instant::now();
    while !processes_of_agent(id).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(30), "it never came to that");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Opens the agent's gate while no server runs.
pub(crate) fn opens_while_down(server: &mut TestServer, id: &str) {
    server.kill_9();
    std::fs::write(gate(server, id), "").unwrap();
    server.start_again();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn further_messages_go_to_the_same_process() {
    let server = server("");
    let (id, first) = one_turn(&server).await;
    send(&server, &id, "two").await;
    assert_eq!(turns(&server, &id, 2).await[1], (format!("{first} [] two."), "completed".to_owned()));
    send(&server, &id, "gated three").await;
    // These messages are queued.
    send(&server, &id, "four").await;
    send(&server, &id, "five 🪶").await;
    std::fs::write(gate(&server, &id), "").unwrap();
    let said = turns(&server, &id, 5).await;
    assert_eq!(said[2].0, format!("{first} [] gated three.It is open."));
    assert_eq!((&said[3].0, &said[4].0), (&format!("{first} [] four."), &format!("{first} [] five 🪶.")));
    assert!(!processes_of_agent(&id).is_empty(), "it waits for more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_has_waited_long_enough_ends_and_the_session_goes_on_in_another() {
    let server = server("rest_s = 1\nresume_args = [\"--resume\", \"{session}\"]\n");
    let (id, first) = one_turn(&server).await;
    until_none_is_left(&id).await;
    let runs = server.data_dir().join("runs");
    while 0 < std::fs::read_dir(&runs).unwrap().count() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    send(&server, &id, "two").await;
    let said = turns(&server, &id, 2).await;
    let (second, rest) = pid(&said[1].0);
    assert_eq!((rest, second == first), ("[--resume s-1] two.", false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_is_to_wait_each_turn_has_a_process() {
    for more in ["rest_s = 0\n", "[limits]\nresting_agents = 0\n"] {
        let server = server(more);
        let (id, first) = one_turn(&server).await;
        no_process_is_left(&id).await;
        send(&server, &id, "two").await;
        assert_ne!(pid(&turns(&server, &id, 2).await[1].0).0, first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_and_a_deletion_leave_no_process_that_waits() {
    let server = server("");
    let (cancelled, _) = one_turn(&server).await;
    let (status, told) = server.post(&format!("/api/agents/{cancelled}/cancel"), &json!({})).await;
    assert!(status.is_success(), "{told}");
    no_process_is_left(&cancelled).await;
    for purge in ["", "?purge=true"] {
        let (deleted, _) = one_turn(&server).await;
        let path = format!("/api/agents/{deleted}{purge}");
        let answer = server.request(reqwest::Method::DELETE, &path).send().await.unwrap();
        assert!(answer.status().is_success());
        no_process_is_left(&deleted).await;
    }
    assert_eq!(turns(&server, &cancelled, 1).await[0].1, "completed", "nothing was left to be cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_in_a_process_that_goes_on_is_cancelled_like_any() {
    let server = server("interrupt = false\n[limits]\ncancel_grace_s = 1\n");
    let (id, first) = one_turn(&server).await;
    send(&server, &id, "gated two").await;
    server.wait_until(&id, |agent| agent["status"] == "running" && 5 < agent["head"].as_u64().unwrap()).await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    let said = turns(&server, &id, 2).await;
    assert_eq!(said[1], (format!("{first} [] gated two."), "cancelled".to_owned()));
    no_process_is_left(&id).await;
    send(&server, &id, "three").await;
    let said = turns(&server, &id, 3).await;
    assert_ne!(pid(&said[2].0).0, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_in_a_process_that_goes_on_outlives_the_server() {
    let mut server = server("");
    let (id, first) = one_turn(&server).await;
    send(&server, &id, "gated two").await;
    server.wait_until(&id, |agent| agent["status"] == "running" && 5 < agent["head"].as_u64().unwrap()).await;
    opens_while_down(&mut server, &id);
    let said = turns(&server, &id, 2).await;
    assert_eq!(said[1], (format!("{first} [] gated two.It is open."), "completed".to_owned()));
    // After a restart, the process ends with its turn, because the server cannot know how it was started.
    until_none_is_left(&id).await;
    send(&server, &id, "three").await;
    assert_ne!(pid(&turns(&server, &id, 3).await[2].0).0, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_waits_ends_with_the_server_or_by_the_next_one() {
    let mut server = server("");
    let (id, first) = one_turn(&server).await;
    server.kill_and_start_again();
    no_process_is_left(&id).await;
    send(&server, &id, "two").await;
    assert_ne!(pid(&turns(&server, &id, 2).await[1].0).0, first);
    assert!(server.stop().success());
    assert_eq!(processes_of_agent(&id), [""; 0], "it ends with the server");
    assert_eq!(std::fs::read_dir(server.data_dir().join("runs")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_a_later_turn_are_told_from_those_of_an_earlier_one() {
    let server = server("");
    let id = server.launch_as("talking", "asking one").await;
    for (turn, option, words) in [(1, "allow", "Allowed."), (2, "reject", "Refused.")] {
        let asked = |event: &Value| {
            event["metadata"]["eventType"] == "permission_request"
                && event["content"]["requestId"] == format!("{turn}-1")
        };
        while !server.events(&id).await.iter().any(asked) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let path = format!("/api/agents/{id}/permissions/{turn}-1");
        let (status, told) = server.post(&path, &json!({ "optionId": option })).await;
        assert_eq!(status, 200, "{told}");
        let said = turns(&server, &id, turn).await;
        assert!(said[turn - 1].0.ends_with(words), "{said:?}");
        if turn == 1 {
            send(&server, &id, "asking two").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_fails_dies_or_works_on_takes_no_further_message() {
    let server = server("");
    for (prompt, outcome) in [("failing", "failed"), ("background", "completed"), ("dying", "completed")] {
        let id = server.launch_as("talking", prompt).await;
        let said = turns(&server, &id, 1).await;
        assert_eq!(said[0].1, outcome);
        send(&server, &id, "two").await;
        let again = turns(&server, &id, 2).await;
        assert_ne!(pid(&again[1].0).0, pid(&said[0].0).0, "{prompt}");
        assert_eq!(again[1].1, "completed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_too_many_that_wait_the_oldest_ends() {
    let server = server("[limits]\nresting_agents = 2\n");
    let mut agents = Vec::new();
    for _ in 0..3 {
        agents.push(one_turn(&server).await);
    }
    until_none_is_left(&agents[0].0).await;
    for (id, first) in &agents[1..] {
        send(&server, id, "two").await;
        assert_eq!(pid(&turns(&server, id, 2).await[1].0).0, first);
    }
}

/// The server is killed at a different time in each round: before the process gets the message, after that, or after it
/// has answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_given_twice_whenever_the_server_is_killed() {
    let mut server = server("");
    let mut outcomes = Vec::new();
    for delay_ms in [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30] {
        let (id, _) = one_turn(&server).await;
        send(&server, &id, "two").await;
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        server.kill_and_start_again();
        let (said, outcome) = turns(&server, &id, 2).await.swap_remove(1);
        let asked = std::fs::read_to_string(server.data_dir().join("work").join(&id).join("asked")).unwrap();
        match outcome.as_str() {
            "completed" => assert_eq!((asked.as_str(), said.ends_with("] two.")), ("one\ntwo\n", true)),
            "interrupted" => assert_eq!((asked.as_str(), said.as_str()), ("one\n", "")),
            _ => panic!("after {delay_ms} ms: {outcome}, {asked:?}, {:?}", server.events(&id).await.last()),
        }
        // A turn that was started after the last restart leaves an idle process.
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        until_none_is_left(&id).await;
        outcomes.push(outcome);
    }
    println!("{outcomes:?}");
    assert!(outcomes.contains(&"completed".to_owned()));
}
