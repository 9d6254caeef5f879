//! Models with an HTTP API: the real program calls a scripted one on 127.0.0.1.
//!
//! * here: responses that succeed, in each of the three APIs
//! * [`failures`]: responses that fail, as the APIs report it; [`upstream`]: what no API should send
//! * [`survival`]: cancels, silence, and a server that is killed in the middle

mod failures;
mod survival;
mod upstream;

use std::fs::File;

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, outline, text_of};
use crate::model_server::{ModelServer, Reply};

/// The key. It must not appear anywhere.
const KEY: &str = "sk-canary-5b1e93d7-must-stand-nowhere";
const KEY_VARIABLE: &str = "MODEL_TEST_KEY";

/// The three APIs, by the name of their format.
const APIS: [&str; 3] = ["anthropic", "openai-chat", "openai-responses"];

/// Text that must arrive unchanged: composed emoji, other scripts, and characters that are special in JSON or lines.
const PIECES: [&str; 7] =
    ["Hel", "lo \u{0}", "👩‍👩‍👧‍👦", "世界 héé", "\u{2028}\r\n\n", "\"\\ </script>", " \u{feff}end"];

/// A server with an agent type for each API at that address.
fn server_for(url: &str, more: &str) -> TestServer {
    let config = APIS.map(|api| {
        let base = if api == "anthropic" { url.to_owned() } else { format!("{url}/v1") };
        format!(
            "[agents.{api}]\nrunner = \"http\"\nformat = \"{api}\"\nbase_url = \"{base}\"\n\
             api_key_env = \"{KEY_VARIABLE}\"\nmodel = \"a-model\"\nsystem = \"Be kind\"\n"
        )
    });
    let config = config.concat();
    let mut server = TestServer::start_with(&format!("{more}\n{config}"));
    server.stop();
    start_with_key(&mut server);
    server
}

/// Starts the server with the key in its environment. Its log is the file `log`.
fn start_with_key(server: &mut TestServer) {
    let mut command = server.command(&["serve", "--log", "debug"]);
    let log = File::options().create(true).append(true).open(server.folder.path().join("log")).unwrap();
    command.env(KEY_VARIABLE, KEY).stderr(log);
    server.start_by(command).unwrap();
}

async fn ended(server: &TestServer, id: &str) -> (Value, Vec<Value>) {
    let active = ["initializing", "running"];
    let agent = server.wait_until(id, |agent| active.iter().all(|word| agent["status"] != *word)).await;
    no_process_is_left(id).await;
    (agent, server.events(id).await)
}

/// Launches an agent and waits for the end of its turn.
async fn turn(server: &TestServer, api: &str, prompt: &str) -> (Value, Vec<Value>) {
    let id = server.launch_as(api, prompt).await;
    ended(server, &id).await
}

/// Sends another message to an agent, and waits for the end of that turn.
async fn next_turn(server: &TestServer, id: &str, prompt: &str) -> (Value, Vec<Value>) {
    let (status, answer) =
        server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": prompt })).await;
    assert!(status.is_success(), "{answer}");
    server.wait_until(id, |agent| agent["turn"] == answer["turn"]).await;
    ended(server, id).await
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["metadata"]["eventType"] == kind).collect()
}

fn deltas(events: &[Value]) -> String {
    of_type(events, "content_delta").iter().map(|event| event["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_answer_is_shown_in_its_pieces_and_kept_byte_for_byte() {
    for api in APIS {
        let model = ModelServer::start_without_tools([Reply::text(PIECES)]);
        let server = server_for(model.url(), "");
        let (agent, events) = turn(&server, api, "Say héllo 👋").await;
        assert_eq!(agent["status"], "completed", "{api}: {agent}");
        assert_eq!(text_of(&events), PIECES.concat(), "{api}");
        assert_eq!(deltas(&events), PIECES.concat(), "{api}");
        assert_eq!(of_type(&events, "content_delta").len(), PIECES.len(), "{api}");
        let expected = ["user_message", "init", "content_delta", "message", "message_delta", "result"];
        assert_eq!(outline(&events), expected, "{api}");
        assert!(agent["usage"].as_object().is_some_and(|usage| !usage.is_empty()), "{api}: {agent}");
        let request = model.request(1).await;
        assert_eq!(request.conversation(), ["user: Say héllo 👋"], "{api}");
        assert_eq!(request.body()["model"], "a-model");
        let key = match api {
            "anthropic" => request.header("x-api-key").map(ToOwned::to_owned),
            _ => request.header("authorization").map(|value| value.replace("Bearer ", "")),
        };
        assert_eq!(key.as_deref(), Some(KEY), "{api}");
    }
}

#[tokio::test]
async fn reasoning_and_tool_calls_are_shown() {
    for api in APIS {
        let input = json!({ "city": "Zürich 🏔", "days": [1, 2] });
        let reply = Reply::thinking(["Hm", "… 🤔"]).saying(["I ", "look."]).calling("get_weather", input);
        let model = ModelServer::start_without_tools([reply]);
        let server = server_for(model.url(), "");
        let (agent, events) = turn(&server, api, "The weather?").await;
        assert_eq!(agent["status"], "completed", "{api}: {agent}");
        let message = of_type(&events, "message")[0];
        let blocks = message["content"].as_array().unwrap();
        let kinds: Vec<_> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["reasoning", "text", "tool_use"], "{api}: {message}");
        assert_eq!((&blocks[0]["text"], &blocks[1]["text"]), (&json!("Hm… 🤔"), &json!("I look.")), "{api}");
        let calls = of_type(&events, "tool_use");
        assert_eq!(calls.len(), 1, "{api}");
        let call = calls[0].to_string();
        assert!(call.contains("get_weather") && call.contains("Zürich 🏔"), "{api}: {call}");
    }
}

async fn said_before(model: &ModelServer, request: usize) -> Vec<String> {
    model.request(request).await.conversation()
}

#[tokio::test]
async fn the_next_turn_brings_what_was_said_before() {
    for api in APIS {
        let failing = Reply::text(["Half of"]).then_error("overloaded_error", "Overloaded");
        let script = [Reply::text(["Noted: ", "plum"]), failing, Reply::text(["Plum"]), Reply::text(["Yes"])];
        let model = ModelServer::start_without_tools(script);
        let mut server = server_for(model.url(), "");
        let id = server.launch_as(api, "Remember plum").await;
        ended(&server, &id).await;
        let (agent, _) = next_turn(&server, &id, "What is a plum?").await;
        assert_eq!(agent["status"], "failed", "{api}: {agent}");
        next_turn(&server, &id, "Which word?").await;
        let said = [
            "user: Remember plum",
            "assistant: Noted: plum",
            "user: What is a plum?",
            "assistant: Half of",
            "user: Which word?",
        ];
        assert_eq!(said_before(&model, 3).await, said, "{api}");
        // The history is in the journal, so a restart does not lose it.
        server.stop();
        start_with_key(&mut server);
        let (agent, events) = next_turn(&server, &id, "Sure?").await;
        assert_eq!(agent["status"], "completed", "{api}: {agent}");
        let conversation = said_before(&model, 4).await;
        assert_eq!(conversation[..5], said, "{api}");
        assert_eq!(conversation[5..], ["assistant: Plum", "user: Sure?"], "{api}");
        assert_eq!(text_of(&events), "Noted: plumHalf ofPlumYes", "{api}");
    }
}

#[tokio::test]
async fn of_a_long_history_the_oldest_turns_are_left_out() {
    let model = ModelServer::start_without_tools(["one", "two", "three"].map(|answer| Reply::text([answer])));
    let server = server_for(model.url(), "[limits]\nmodel_history_bytes = 12\n");
    let id = server.launch_as("anthropic", "first").await;
    ended(&server, &id).await;
    next_turn(&server, &id, "second").await;
    next_turn(&server, &id, "third").await;
    let expected = ["user: second", "assistant: two", "user: third"];
    assert_eq!(model.request(3).await.conversation(), expected);
}

#[tokio::test]
async fn stored_answers_say_the_same_when_they_are_read_again() {
    let call = Reply::thinking(["Hm"]).saying(PIECES).calling("ls", json!({ "path": "/" }));
    let failing = Reply::text(["Half ", "of"]).then_error("api_error", "Oh no");
    let refusing = Reply::error(503, "overloaded_error", "Later");
    let script = std::iter::repeat_n([call, failing, refusing], APIS.len()).flatten();
    let model = ModelServer::start_without_tools(script);
    let mut server = server_for(model.url(), "");
    for api in APIS {
        for _ in 0..3 {
            turn(&server, api, "Go on").await;
        }
    }
    server.stop();
    let output = server.command(&["reparse", "--all"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    start_with_key(&mut server);
}

#[tokio::test]
async fn a_launch_names_the_model_or_the_configuration_does() {
    let model = ModelServer::start_without_tools([Reply::text(["Hi"])]);
    let config = format!(
        "[agents.any]\nrunner = \"http\"\nformat = \"openai-chat\"\nbase_url = \"{}/v1/\"\n\
         parameters = {{ temperature = 0.5, stop = [\"x\"] }}\nmax_tokens = 9\n",
        model.url()
    );
    let server = TestServer::start_with(&config);
    let (agent, events) = turn(&server, "any", "Hi").await;
    let error = of_type(&events, "error")[0];
    assert_eq!(agent["error"]["code"], "model_missing", "{error}");
    let body = json!({ "type": "any", "prompt": "Hi", "model": "a/model:1b" });
    let (_, agent) = server.post("/api/agents", &body).await;
    let (agent, _) = ended(&server, agent["agentId"].as_str().unwrap()).await;
    assert_eq!(agent["status"], "completed", "{agent}");
    let request = model.request(1).await;
    let body = request.body();
    assert_eq!((&body["model"], &body["temperature"]), (&json!("a/model:1b"), &json!(0.5)));
    assert_eq!((&body["stop"], &body["max_tokens"]), (&json!(["x"]), &json!(9)));
    assert_eq!(request.header("authorization"), None, "no key, no header");
}

#[tokio::test]
async fn doctor_and_the_list_of_types_say_what_is_there_and_what_is_missing() {
    let model = ModelServer::start_without_tools([]);
    let server = server_for(model.url(), "");
    let types = server.get("/api/agent-types").await;
    let of = |name: &str| types.as_array().unwrap().iter().find(|kind| kind["type"] == name).unwrap().clone();
    let (own, official) = (of("anthropic"), of("anthropic-api"));
    assert_eq!((&own["runner"], &own["format"]), (&json!("http"), &json!("anthropic")), "{own}");
    assert_eq!(own["program"], model.url(), "{own}");
    let can = &own["can"];
    assert_eq!(
        (&can["deltas"], &can["resume"], &can["interrupt"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert_eq!(own["available"], true, "the server has the key: {own}");
    assert_eq!(official["program"], "https://api.anthropic.com", "{official}");
    assert!(!types.to_string().contains(KEY));
    let mut command = server.command(&["doctor"]);
    let output = command.env_remove(KEY_VARIABLE).env("ANTHROPIC_API_KEY", KEY).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let missing = format!(
        "the environment variable {KEY_VARIABLE} is not set; set it to the API key for {} and restart the server",
        model.url()
    );
    assert!(said.contains(&missing), "{said}");
    assert!(
        said.contains("agents.anthropic-api: https://api.anthropic.com; supports: streaming, resume"),
        "{said}"
    );
    assert!(!said.contains(KEY), "{said}");
}
