//! The real `claude` program with the real server and a scripted model. Every test here needs the program;
//! `cargo xtask test` fetches it.
mod real_claude {
    use serde_json::{Value, json};

    use crate::harness::{TestServer, no_process_is_left, outline, text_of};
    use crate::model_server::{Gate, ModelServer, Reply, claude};

    const HARD_TEXT: [&str; 5] =
        ["Grüße 👩‍👩‍👧‍👦, ", "世界! ", "\u{2028}\u{0000}\t", "e\u{301} ", "🙂\n```rust\nfn main() {}\n```\n"];

    fn start(model: &ModelServer, more_args: &[&str]) -> TestServer {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
        TestServer::start_with(&claude::block(model, &home, more_args))
    }

    async fn ended(server: &TestServer, id: &str) -> Value {
        server.wait_until(id, |agent| agent["endedAt"].is_string() && agent["status"] != "running").await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_turns_of_one_session_say_what_the_model_said_byte_for_byte() {
        let model = ModelServer::start([
            Reply::text(HARD_TEXT),
            Reply::thinking(["Hm, ", "yes."]).saying(["Second."]),
        ]);
        let server = start(&model, &[]);
        let id = server.launch_as("claude-code", "Say something hard: 世界 🙂").await;
        let agent = ended(&server, &id).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        assert_eq!(text_of(&server.events(&id).await), HARD_TEXT.concat());

        let path = format!("/api/agents/{id}/messages");
        server.post(&path, &json!({ "content": "And now?" })).await;
        server.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
        let conversation = model.requests().last().unwrap().conversation().join("\n");
        assert!(
            conversation.contains("Say something hard: 世界 🙂"),
            "turn two knows turn one: {conversation}"
        );
        let rows = server.get(&path).await;
        assert_eq!(text_of(rows.as_array().unwrap()), HARD_TEXT.concat() + "Second.");
        let events = server.events(&id).await;
        let reasoning: String = events
            .iter()
            .filter(|event| event["metadata"]["eventType"] == "thinking_delta")
            .map(|event| event["content"].as_str().unwrap())
            .collect();
        assert_eq!(reasoning, "Hm, yes.");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_tool_call_is_shown_with_its_result() {
        let call = Reply::tool_call("Bash", json!({ "command": "echo 'hällo 👋'", "description": "Greet" }));
        let model = ModelServer::start([call.saying(["Let me see. "]), Reply::text(["Done."])]);
        let server = start(&model, &["--allowedTools", "Bash(echo:*)"]);
        let id = server.launch_as("claude-code", "Greet me").await;
        assert_eq!(ended(&server, &id).await["status"], "completed");
        let events = server.events(&id).await;
        let of = |kind: &str| events.iter().find(|event| event["metadata"]["eventType"] == kind).unwrap();
        assert_eq!(of("tool_use")["content"]["input"]["command"], "echo 'hällo 👋'");
        assert_eq!(of("tool_use")["metadata"]["toolCallId"], of("tool_result")["metadata"]["toolCallId"]);
        assert_eq!(of("tool_result")["content"], "hällo 👋");
        assert_eq!(text_of(&events), "Let me see. Done.");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_cancel_in_mid_text_keeps_the_text_and_leaves_no_process() {
        let model = ModelServer::start([Reply::text(["One ", "two "]).then_silence()]);
        let server = start(&model, &[]);
        let id = server.launch_as("claude-code", "Count").await;
        let started = tokio::time::Instant::now();
        while !server.events(&id).await.iter().any(|event| event["content"] == "two ") {
            assert!(started.elapsed() < crate::harness::PATIENCE, "the words never came");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        assert_eq!(ended(&server, &id).await["status"], "cancelled");
        no_process_is_left(&id).await;
        let events = server.events(&id).await;
        assert_eq!(text_of(&events), "One two ");
        let message = events.iter().find(|event| event["metadata"]["eventType"] == "message").unwrap();
        assert_eq!(message["metadata"]["outcome"], "cancelled");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_model_that_is_overloaded_and_recovers_costs_a_notice() {
        let overloaded = Reply::error(529, "overloaded_error", "Overloaded").retry_after_s(0);
        let model = ModelServer::start([overloaded, Reply::text(["Here ", "I am."])]);
        let server = start(&model, &[]);
        let id = server.launch_as("claude-code", "Hello?").await;
        assert_eq!(ended(&server, &id).await["status"], "completed");
        let events = server.events(&id).await;
        assert!(outline(&events).contains(&"api_retry".to_owned()), "{:?}", outline(&events));
        assert_eq!(text_of(&events), "Here I am.");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn it_outlives_a_server_that_is_killed_in_mid_text() {
        let gate = Gate::new();
        let words: Vec<String> = (0..40).map(|number| format!("w{number} 🙂 ")).collect();
        let model = ModelServer::start([Reply::text(words.clone()).gated(&gate)]);
        let mut server = start(&model, &[]);
        let id = server.launch_as("claude-code", "Go").await;
        for said in words.chunks(10) {
            gate.pass(said.len());
            let last = said.last().unwrap();
            let started = tokio::time::Instant::now();
            while !server.events(&id).await.iter().any(|event| event["content"] == **last) {
                assert!(started.elapsed() < crate::harness::PATIENCE, "the words never came");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            server.kill_and_start_again();
        }
        gate.open();
        assert_eq!(ended(&server, &id).await["status"], "completed");
        assert_eq!(text_of(&server.events(&id).await), words.concat());
    }
}

/// What its processes must do, as those of all agents.
mod real_claude_tools {
    use serde_json::json;

    use crate::real_agents::{Agent, stories};
    use crate::real_claude_two_way::TWO_WAY;

    const ONE_WAY: Agent = Agent {
        kind: "claude",
        files: |_| {
            let settings = json!({ "permissions": { "allow": ["Bash(env:*)", "Bash(sleep:*)"] } });
            vec![(".claude/settings.json", settings.to_string())]
        },
        ..TWO_WAY
    };

    const LAUNCHED: Agent = Agent { launched: true, ..ONE_WAY };

    stories! { ONE_WAY, is_cancelled_while_its_tool_runs_and_leaves_no_process }

    mod launcher {
        use super::LAUNCHED;

        crate::real_agents::stories!(LAUNCHED, launched);
    }
}
