//! Permission requests: shown, answered in time, too late, or never. The agent is a script that speaks the two-way
//! protocol of Claude Code.

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, processes_of_agent, text_of, write_script};

/// Sends one permission request, and prints how it was answered.
const AGENT: &str = r#"#!/bin/sh
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm -r build"},"tool_use_id":"t","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"rm:*"}],"behavior":"allow","destination":"session"}]}}'
read -r answer
case "$answer" in
  *updatedPermissions*) said='always allowed' ;;
  *'"allow"'*) said=allowed ;;
  *'"deny"'*) said=refused ;;
  *) said="told $answer" ;;
esac
echo '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"It was '"$said"'."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":""}'
"#;

/// A server with an agent that sends a permission request. `more` is added to its configuration block.
pub(crate) fn server(more: &str) -> TestServer {
    server_with(AGENT, more)
}

/// A server with an agent that requests permission for this input.
pub(crate) fn server_asking_for(input: &Value) -> TestServer {
    server_with(&AGENT.replace(r#"{"command":"rm -r build"}"#, &input.to_string()), "")
}

/// A server whose type `asking` is this script.
pub(crate) fn server_with(agent: &str, more: &str) -> TestServer {
    TestServer::start_with(&block_with(agent, more))
}

/// The configuration block of a type `asking` whose agent sends a permission request.
pub(crate) fn block() -> String {
    block_with(AGENT, "")
}

fn block_with(agent: &str, more: &str) -> String {
    let script = tempfile::tempdir().unwrap().keep().join("agent");
    write_script(&script, agent);
    let program = script.display();
    let block =
        format!("[agents.asking]\nformat = \"claude-two-way\"\nrest_s = 0\nprogram = \"{program}\"\n");
    block + more
}

/// An agent that has sent a permission request. Returns its id.
pub(crate) async fn asking(server: &TestServer) -> String {
    let id = server.launch_as("asking", "Clean up").await;
    server.wait_until(&id, |agent| 3 <= agent["head"].as_u64().unwrap()).await;
    id
}

fn path(id: &str) -> String {
    format!("/api/agents/{id}/permissions/1-1")
}

async fn said(server: &TestServer, id: &str) -> String {
    server.wait_for_status(id, "completed").await;
    text_of(&server.events(id).await)
}

async fn resolved(server: &TestServer, id: &str) -> Value {
    let events = server.events(id).await;
    let resolved = |event: &&Value| event["metadata"]["eventType"] == "permission_resolved";
    events.iter().find(resolved).expect("it is settled")["content"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_answer_reaches_the_agent_in_its_own_words() {
    let server = server("");
    for (answer, words) in [
        (json!({ "optionId": "allow" }), "It was allowed."),
        (json!({ "optionId": "allow_always" }), "It was always allowed."),
        (json!({ "optionId": "reject" }), "It was refused."),
        (json!({ "cancelled": true }), "It was refused."),
    ] {
        let id = asking(&server).await;
        let (status, told) = server.post(&path(&id), &answer).await;
        assert_eq!(status, 200, "{told}");
        assert_eq!(said(&server, &id).await, words);
        let mut expected = json!({ "requestId": "1-1", "by": "user" });
        if let Some(option) = answer.get("optionId") {
            expected["optionId"] = option.clone();
        }
        assert_eq!(resolved(&server, &id).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_answers_at_once_one_counts() {
    let server = server("");
    let id = asking(&server).await;
    let answers = ["allow", "reject", "allow_always", "reject", "allow"];
    let (id_path, server) = (path(&id), &server);
    let all = answers.map(|option| {
        let (path, answer) = (id_path.clone(), json!({ "optionId": option }));
        async move {
            let mut told = server.post(&path, &answer).await;
            // The agent has taken another answer and ended, and the server has not read that yet.
            while told.1["code"] == "capacity_exhausted" && told.1["retryable"] == true {
                told = server.post(&path, &answer).await;
            }
            (option, told)
        }
    });
    let told = futures_util::future::join_all(all).await;
    let counted = resolved(server, &id).await["optionId"].as_str().unwrap().to_owned();
    for (option, (status, answer)) in told {
        match status.as_u16() {
            200 => assert_eq!(option, counted),
            409 => assert_eq!(answer["code"], "already_resolved"),
            _ => panic!("{status}: {answer}"),
        }
    }
    said(server, &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_nobody_answers_ends_as_configured() {
    for (default, words) in [("reject", "It was refused."), ("allow", "It was allowed.")] {
        let server = server(&format!("permission_timeout_s = 1\npermission_default = \"{default}\"\n"));
        let id = asking(&server).await;
        assert_eq!(said(&server, &id).await, words);
        let resolved = resolved(&server, &id).await;
        assert_eq!((&resolved["by"], &resolved["optionId"]), (&json!("timeout"), &json!(default)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_outlives_the_server_and_silence_is_no_hang() {
    // A request may stay open for longer than an agent may be silent.
    let limits = "[limits]\nidle_timeout_s = 3\nstream_timeout_s = 3\n";
    let mut server = server(&format!("permission_timeout_s = 8\npermission_default = \"allow\"\n{limits}"));
    let id = asking(&server).await;
    server.kill_and_start_again();
    assert_eq!(said(&server, &id).await, "It was allowed.");
    assert_eq!(resolved(&server, &id).await["by"], "timeout");
    no_process_is_left(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_ends_while_it_asks_leaves_no_open_question() {
    let server = server("");
    let id = asking(&server).await;
    for process in processes_of_agent(&id) {
        let process = rustix::process::Pid::from_raw(process.parse().unwrap()).unwrap();
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
    server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    let (status, told) = server.post(&path(&id), &json!({ "optionId": "allow" })).await;
    assert_eq!((status.as_u16(), &told["code"]), (409, &json!("already_resolved")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_dies_with_whoever_speaks_with_it_also_where_no_server_is_there() {
    let mut server = server("");
    let id = asking(&server).await;
    server.kill_9();
    let supervisors = processes_of_agent(&id).into_iter().filter(|process| {
        let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("supervise")
    });
    for process in supervisors {
        let process = rustix::process::Pid::from_raw(process.parse().unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
    let gone = async {
        while !processes_of_agent(&id).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::harness::PATIENCE, gone).await.expect("no process is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_be_started_says_so() {
    let server = server_with("#!/no/such/interpreter\n", "");
    let id = server.launch_as("asking", "hi").await;
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(agent["error"]["code"], "spawn_failed", "{agent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_prints_for_ever_does_not_keep_the_turn_open() {
    let agent = "#!/bin/sh\nread -r prompt\n\
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}'\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"}'\n\
        yes '{\"type\":\"keep_alive\"}' &\n";
    let server = server_with(agent, "");
    let id = server.launch_as("asking", "hi").await;
    server.wait_for_status(&id, "completed").await;
    no_process_is_left(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_closes_its_input_cannot_be_answered() {
    let agent = AGENT.replace("read -r answer", "exec <&-; sleep 1");
    let server = server_with(&agent, "");
    let id = asking(&server).await;
    let (status, _) = server.post(&path(&id), &json!({ "optionId": "allow" })).await;
    assert_ne!(status, 500);
    server.wait_for_status(&id, "completed").await;
    let events = server.events(&id).await;
    let resolved = events.iter().filter(|event| event["metadata"]["eventType"] == "permission_resolved");
    assert_eq!(resolved.count(), 1, "{events:?}");
}
