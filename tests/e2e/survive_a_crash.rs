//! The server is killed in the middle of everything, and no reader loses a token or gets one twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use tokio::runtime::Handle;

use crate::follower::{Follower, Place, Way};
use crate::foreign_follower::{ForeignFollower, Vocabulary};
use crate::harness::{
    PATIENCE, TestServer, fake_config, no_process_is_left, numbers, outline, processes_of_agent, text_of,
    write_script,
};

const KILLS: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_outlives_its_server_again_and_again() {
    let mut server = TestServer::start();
    let deltas = 60_000;
    let hurry = server.folder.path().join("hurry");
    // Slow enough that the agent still runs after the last kill, however long the kills take.
    let script = json!({ "mode": "stream", "deltas": deltas, "pace_us": 2000, "hurry": hurry });
    let id = server.launch(&script).await;
    // Readers in the words of other protocols, with an agent of their own: they have more work with each event.
    let other_deltas = deltas / 6;
    let script = json!({ "deltas": other_deltas, "pace_us": 12_000, "hurry": hurry });
    let other = server.launch(&script).await;
    let place = Place::of(&server);
    let foreign: Vec<_> = Vocabulary::ALL
        .into_iter()
        .map(|vocabulary| ForeignFollower::new(place.clone(), &other, vocabulary).read_turns(1))
        .map(|reader| Handle::current().spawn(reader))
        .collect();
    let readers: Vec<_> = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo]
        .into_iter()
        .map(|way| {
            let mut follower = Follower::new(place.clone(), &id);
            Handle::current().spawn(async move {
                while follower.results() == 0 {
                    if !follower.read(way, usize::MAX >> 1).await {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
                follower
            })
        })
        .collect();
    let mut before = 0;
    for kill in 0..KILLS {
        // Wait for new events after each restart, so that each kill hits an active stream.
        let agent = server.wait_until(&id, |agent| before + 20 < agent["head"].as_u64().unwrap()).await;
        before = agent["head"].as_u64().unwrap();
        server.kill_and_start_again();
        assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running", "after kill {kill}");
    }
    std::fs::write(&hurry, "").unwrap();
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
        assert_eq!(text_of(&seen.events()), numbers(deltas));
    }
    for reader in foreign {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
        assert_eq!(seen.text(), numbers(other_deltas));
        seen.sees_the_same_again().await;
    }
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(deltas));
    no_process_is_left(&id).await;
}

/// Recordings of a real agent: with tools, with a sub-agent, with an answer that was begun again, and with emoji.
const RECORDED: [&str; 4] = ["many_tools", "subagent_partial", "err_drop_once_slow", "thinking_partial"];

/// Agents that print what a real agent has printed, line by line.
fn recorded_agents(folder: &Path) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude/2.1.330");
    let agents = RECORDED.map(|name| {
        let (program, file) = (folder.join(name), fixtures.join(name).with_extension("jsonl"));
        let hurry = folder.join("hurry");
        let pause = format!("[ -e '{}' ] || sleep 0.2", hurry.display());
        let print = format!("while IFS= read -r line; do printf '%s\\n' \"$line\"; {pause}; done");
        write_script(&program, &format!("#!/bin/sh\n{print} < '{}'\n", file.display()));
        format!(
            "[agents.{name}]\nformat = \"claude\"\nprogram = \"{}\"\npass_env = [\"PATH\"]\n",
            program.display()
        )
    });
    agents.concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_subagents_and_abandoned_messages_outlive_the_server_in_every_protocol() {
    let mut server = TestServer::prepare("");
    server.config = recorded_agents(server.folder.path());
    server.start_again();
    let place = Place::of(&server);
    let (mut agents, mut readers, mut followers) = (Vec::new(), Vec::new(), Vec::new());
    for name in RECORDED {
        let id = server.launch_as(name, "go").await;
        for way in [Way::Sse, Way::WebSocket, Way::SocketIo] {
            let follower = Follower::new(place.clone(), &id).read_to_a_result(way, std::iter::empty());
            followers.push((id.clone(), Handle::current().spawn(follower)));
        }
        for vocabulary in Vocabulary::ALL {
            let reader = ForeignFollower::new(place.clone(), &id, vocabulary).read_turns(1);
            readers.push(Handle::current().spawn(reader));
        }
        agents.push(id);
    }
    let mut kills = 0;
    let mut before = 0;
    loop {
        let (mut heads, mut running) = (0, false);
        for id in &agents {
            let agent = server.get(&format!("/api/agents/{id}")).await;
            heads += agent["head"].as_u64().unwrap();
            running |= agent["endedAt"].is_null();
        }
        if !running {
            break;
        }
        // Wait for new events after each restart, so that each kill hits active streams.
        if before + 10 < heads {
            (before, kills) = (heads, kills + 1);
            server.kill_and_start_again();
            if kills == RECORDED.len() {
                std::fs::write(server.folder.path().join("hurry"), "").unwrap();
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(RECORDED.len() <= kills, "it was killed only {kills} times");
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
        seen.sees_the_same_again().await;
    }
    for (id, follower) in followers {
        let seen = tokio::time::timeout(PATIENCE, follower).await.expect("in time").unwrap();
        assert_eq!(seen.events(), server.events(&id).await);
    }
    for id in agents {
        assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
        no_process_is_left(&id).await;
    }
}

#[tokio::test]
async fn what_the_agent_says_while_no_server_runs_is_taken_in_later() {
    let (mut server, id, [gate, touch]) = killed_after_ten().await;
    std::fs::write(&gate, "").unwrap();
    wait_for_file(&touch).await;
    server.start_again();
    completes_with_fifty(&server, &id).await;
}

#[tokio::test]
async fn without_server_and_supervisor_the_turn_is_interrupted_and_numbers_go_on() {
    let mut server = TestServer::start();
    let id = hangs_after_ten(&server).await;
    server.kill_9();
    kill_process(supervisor_of(&server, &id), Signal::KILL).unwrap();
    server.start_again();
    let agent = server.wait_until(&id, |agent| agent["status"] != "running").await;
    assert_eq!(agent["status"], "interrupted");
    no_process_is_left(&id).await;
    let events = server.events(&id).await;
    // The agent dies with its supervisor. If the new server was faster, it has ended the agent, and the journal says
    // so.
    let (reaped, said): (Vec<_>, Vec<_>) =
        events.iter().cloned().partition(|event| event["metadata"]["eventType"] == "reaped");
    assert!(reaped.len() <= 1);
    assert_eq!(outline(&said)[3..], ["content_delta", "message", "result"]);
    let closed = &said[said.len() - 2];
    assert_eq!(
        (&closed["metadata"]["outcome"], &closed["content"]),
        (&json!("interrupted"), &json!(numbers(10)))
    );

    let (_, accepted) = server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": "{}" })).await;
    assert_eq!(accepted["turn"], 2);
    server.wait_for_status(&id, "completed").await;
    let later = server.events(&id).await;
    assert_eq!(later[..events.len()], events, "what was said stays said, under its numbers");
}

#[tokio::test]
async fn a_result_that_nobody_was_there_to_read_still_counts() {
    let mut server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let script = json!({ "mode": "result_then_hang", "deltas": 5, "gate": gate, "gate_after": 2 });
    let id = server.launch(&script).await;
    server.wait_until(&id, |agent| agent["status"] == "running" && 2 < agent["head"].as_u64().unwrap()).await;
    server.kill_9();
    std::fs::write(&gate, "").unwrap();
    // A supervisor that is killed loses the output that it has not copied yet.
    wait_for_text(&server.data_dir().join(format!("runs/{id}-1/stdout")), "\"result\"").await;
    kill_process(supervisor_of(&server, &id), Signal::KILL).unwrap();
    server.start_again();
    let agent = server.wait_until(&id, |agent| agent["status"] != "running").await;
    assert_eq!(agent["status"], "completed");
}

#[tokio::test]
async fn a_graceful_stop_leaves_the_agents_unless_told_otherwise() {
    let mut server = TestServer::start_with(&fake_config());
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 20, "gate": gate, "gate_after": 5 })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    assert!(server.stop().success());
    assert!(!processes_of_agent(&id).is_empty(), "it lives on");
    std::fs::write(&gate, "").unwrap();
    server.start_again();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(20));
}

#[tokio::test]
async fn a_terminal_that_is_closed_stops_the_server_in_good_order_unless_it_was_told_to_stay() {
    let mut server = TestServer::start_with(&fake_config());
    for (how, stays) in [("--default-signal=HUP", false), ("--ignore-signal=HUP", true)] {
        assert!(server.stop().success());
        let plain = server.command(&["serve", "--log", "warn"]);
        let mut command = Command::new("env");
        command.arg(how).arg(plain.get_program()).args(plain.get_args());
        server.start_by(command).unwrap();
        let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
        if stays {
            server.launch_to_completion(&json!({ "deltas": 3 })).await;
        } else {
            assert!(server.wait().success());
            server.start_again();
        }
    }
}

#[tokio::test]
async fn an_agent_whose_type_is_gone_from_the_configuration_runs_on_until_it_is_back() {
    let (mut server, id, [gate, touch]) = killed_after_ten().await;
    server.config = fake_config().replace("[agents.fake]", "[agents.renamed]");
    server.start_again();
    std::fs::write(&gate, "").unwrap();
    wait_for_file(&touch).await;
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
    assert!(server.stop().success());
    server.config = fake_config();
    server.start_again();
    completes_with_fifty(&server, &id).await;
}

#[tokio::test]
async fn an_agent_whose_type_is_gone_can_be_cancelled_and_its_output_is_kept() {
    let mut server = TestServer::start();
    let id = hangs_after_ten(&server).await;
    server.kill_9();
    server.config = fake_config().replace("[agents.fake]", "[agents.renamed]");
    server.start_again();
    assert!(!processes_of_agent(&id).is_empty(), "it lives on");
    let (status, _) = server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(status, 202);
    server.wait_for_status(&id, "cancelled").await;
    no_process_is_left(&id).await;
    let spool = server.data_dir().join(format!("runs/{id}-1.kept/stdout"));
    assert!(std::fs::read_to_string(spool).unwrap().contains("\"9 \""));
}

#[tokio::test]
async fn where_only_the_supervisor_dies_nobody_says_that_the_server_did() {
    let server = TestServer::start();
    let id = hangs_after_ten(&server).await;
    kill_process(supervisor_of(&server, &id), Signal::KILL).unwrap();
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    let message = agent["error"]["message"].as_str().unwrap();
    assert_eq!(agent["status"], "interrupted");
    assert!(message.contains("supervisor") && !message.contains("the server"), "{message}");
}

/// A server that was killed after ten of an agent's fifty deltas, the agent, the gate that lets it go on, and the file
/// that it creates at its end.
async fn killed_after_ten() -> (TestServer, String, [PathBuf; 2]) {
    let mut server = TestServer::start();
    let files = ["gate", "done"].map(|name| server.folder.path().join(name));
    let script = json!({ "deltas": 50, "gate": files[0], "gate_after": 10, "touch": files[1] });
    let id = server.launch(&script).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    server.kill_9();
    (server, id, files)
}

/// Launches an agent, and waits until it has printed ten numbers, after which it hangs. Returns its id.
async fn hangs_after_ten(server: &TestServer) -> String {
    let id = server.launch(&json!({ "mode": "hang", "deltas": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    id
}

/// Waits until the agent has completed, having printed fifty numbers.
async fn completes_with_fifty(server: &TestServer, id: &str) {
    server.wait_for_status(id, "completed").await;
    assert_eq!(text_of(&server.events(id).await), numbers(50));
}

/// A script that takes a lock and then becomes the server: the lock shows whether any process still has what the server
/// inherited.
#[tokio::test]
async fn what_the_server_has_inherited_ends_with_it_and_reaches_no_agent() {
    let mut server = TestServer::start();
    assert!(server.stop().success());
    let lock = server.folder.path().join("lock");
    let serve = server.command(&["serve", "--log", "warn"]);
    let mut script = Command::new("/bin/sh");
    script.args(["-c", "exec 9>\"$0\"; flock -n 9 || exit 1; exec \"$@\""]).arg(&lock);
    script.arg(serve.get_program()).args(serve.get_args()).current_dir(server.folder.path());
    server.start_by(script).unwrap();
    let is_free = || Command::new("flock").arg("-n").arg(&lock).arg("true").status().unwrap().success();
    assert!(!is_free(), "the server holds it");
    let id = server.launch_to_completion(&json!({ "mode": "env_dump" })).await;
    let seen: Value = serde_json::from_str(&text_of(&server.events(&id).await)).unwrap();
    assert_eq!(seen["fds"].as_object().unwrap().keys().collect::<Vec<_>>(), ["0", "1", "2"]);
    let id = server.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    server.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    server.kill_9();
    assert!(!processes_of_agent(&id).is_empty());
    assert!(is_free(), "neither the agent nor its supervisor holds it");
}

async fn wait_for_file(path: &Path) {
    wait_for_text(path, "").await;
}

async fn wait_for_text(path: &Path, text: &str) {
    let started = tokio::time::Instant::now();
    while !std::fs::read_to_string(path).is_ok_and(|content| content.contains(text)) {
        assert!(started.elapsed() < crate::harness::PATIENCE, "{} never had {text:?}", path.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn supervisor_of(server: &TestServer, id: &str) -> Pid {
    let record = server.data_dir().join(format!("runs/{id}-1/supervisor.json"));
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    Pid::from_raw(i32::try_from(record["pid"].as_i64().unwrap()).unwrap()).unwrap()
}
