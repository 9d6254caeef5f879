//! The real `claude` program in its interactive two-way mode.

use serde_json::{Value, json};

use crate::harness::{TestServer, processes_of_agent, text_of};
use crate::images::reach_the_model;
use crate::model_server::{Gate, ModelServer, Reply, claude};
use crate::real_agents::{Agent, SLOW, ended, stories};
use crate::real_questions::{
    is_told, is_told_what_the_user_has_chosen, is_told_why_it_is_refused, questions,
};

pub(crate) const TWO_WAY: Agent = Agent {
    kind: "claude-two-way",
    // Each turn has its own process, so that none is left after a turn.
    settings: "format = \"claude-two-way\"\nrest_s = 0",
    program: || vec![claude::program()],
    files: |_| {
        let settings = json!({ "permissions": { "allow": ["Bash(echo:*)"] } });
        vec![(".claude/settings.json", settings.to_string())]
    },
    environment: |url| {
        vec![
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", "dummy".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
    },
    shell,
    in_pieces: true,
    tells_results: true,
    launched: false,
};

pub(crate) fn shell(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command, "description": "Try it" }))
}

stories!(TWO_WAY);
questions!(TWO_WAY, shell);

fn databases(_: &str) -> (&'static str, Value) {
    choice(false)
}

fn several_databases(_: &str) -> (&'static str, Value) {
    choice(true)
}

fn choice(several: bool) -> (&'static str, Value) {
    let option = |label: &str| json!({ "label": label, "description": "for what is kept" });
    let question = json!({
        "question": "Which database?",
        "header": "Database",
        "options": [option("One file 🪶"), option("A server")],
        "multiSelect": several,
    });
    ("AskUserQuestion", json!({ "questions": [question] }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lets_the_user_choose() {
    is_told_what_the_user_has_chosen(&TWO_WAY, databases, "One file 🪶").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tells_the_model_the_note_of_a_rejection() {
    is_told_why_it_is_refused(&TWO_WAY, shell, "Use the *other* file 🙂").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tells_the_model_several_answers_and_a_text() {
    is_told(
        &TWO_WAY,
        several_databases,
        &json!({ "optionIds": ["answer_1", "answer_2"] }),
        "One file 🪶, A server",
    )
    .await;
    is_told(&TWO_WAY, databases, &json!({ "text": "Paper and a pen ✏" }), "Paper and a pen ✏").await;
}

async fn send(server: &TestServer, id: &str, content: &str) {
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": content })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shows_the_model_the_images_of_a_message() {
    reach_the_model(&TWO_WAY).await;
    reach_the_model(&Agent { settings: "", ..TWO_WAY }).await;
}

/// The default configuration: the process idles after a turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takes_further_messages_without_a_new_process() {
    const RESTING: Agent = Agent { settings: "", ..TWO_WAY };
    let gate = Gate::new();
    let words: Vec<String> = (0..20).map(|number| format!("w{number} 🙂 世")).collect();
    let third = Reply::text(words.clone()).gated(&gate);
    let model = ModelServer::start([Reply::text(["First."]), Reply::text(["Second."]), third]);
    let (mut server, _home) = RESTING.start(&model);
    let id = server.launch_as(RESTING.kind, "one").await;
    assert_eq!(ended(&server, &id).await["status"], "completed");
    let processes = processes_of_agent(&id);
    assert!(3 <= processes.len(), "supervisor, whoever speaks with it, and itself: {processes:?}");
    let is_here = |pid: &String| processes_of_agent(&id).contains(pid);

    send(&server, &id, "two").await;
    let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
    assert_eq!(server.wait_within(SLOW, &id, done).await["status"], "completed");
    assert_eq!(text_of(&server.events(&id).await), "First.Second.");
    assert!(processes.iter().all(is_here), "the same processes");

    send(&server, &id, "three").await;
    tokio::time::timeout(SLOW, model.request(3)).await.expect("the model is asked");
    gate.pass(10);
    let head = server.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap();
    server.wait_within(SLOW, &id, |agent| head < agent["head"].as_u64().unwrap()).await;
    server.kill_and_start_again();
    assert!(processes.iter().all(is_here), "the same processes still");
    gate.open();
    let done = |agent: &Value| agent["turn"] == 3 && agent["endedAt"].is_string();
    assert_eq!(server.wait_within(SLOW, &id, done).await["status"], "completed");
    assert_eq!(text_of(&server.events(&id).await), "First.Second.".to_owned() + &words.concat());
    // After a restart, no process of the earlier server idles.
    while !processes_of_agent(&id).is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Started by a launcher.
mod launcher {
    use super::TWO_WAY;
    use crate::real_agents::{Agent, stories};

    const LAUNCHER: Agent = Agent { launched: true, ..TWO_WAY };

    stories!(LAUNCHER, launched);
}
