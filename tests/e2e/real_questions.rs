//! What every agent that sends permission requests must do with the real server: how they are shown and answered.

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left};
use crate::model_server::{ModelServer, Reply};
use crate::real_agents::{Agent, SLOW, ended};

/// A tool call that needs permission.
pub(crate) type Forbidden = fn(command: &str) -> (&'static str, Value);

/// An agent that waits for permission to create a file.
struct Asking {
    server: TestServer,
    _home: tempfile::TempDir,
    model: ModelServer,
    id: String,
    /// The file that it wants to create.
    wanted: std::path::PathBuf,
    question: Value,
}

impl Asking {
    async fn start(agent: &Agent, forbidden: Forbidden) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
        let wanted = folder.join("made");
        let (tool, input) = forbidden(&format!("touch {}", wanted.display()));
        let model = ModelServer::start([Reply::tool_call(tool, input), Reply::text(["As ", "you say."])]);
        let (server, home) = agent.start(&model);
        let id = server.launch_as(agent.kind, "Make it").await;
        let question = question(&server, &id).await;
        Self { server, _home: home, model, id, wanted, question }
    }

    /// The option of that kind.
    fn option(&self, kind: &str) -> Value {
        let options = self.question["options"].as_array().unwrap();
        options.iter().find(|option| option["kind"] == kind).expect("the option is there")["optionId"].clone()
    }

    fn path(&self) -> String {
        let request = self.question["requestId"].as_str().unwrap();
        format!("/api/agents/{}/permissions/{request}", self.id)
    }

    /// Answers, and checks that the result of the tool call has these words when the model gets it.
    async fn tells_the_model(&self, answer: &Value, words: &str) {
        let (status, told) = self.server.post(&self.path(), answer).await;
        assert_eq!(status, 200, "{told}");
        let ended = ended(&self.server, &self.id).await;
        assert_eq!(ended["status"], "completed", "{ended}");
        let said = self.model.requests()[1].conversation();
        let mut told = said.iter().filter(|line| !line.starts_with("assistant: "));
        assert!(told.any(|line| line.contains(words)), "{said:?}");
    }

    /// How the permission request was settled.
    async fn resolved(&self) -> Value {
        let events = self.server.events(&self.id).await;
        let resolved = |event: &&Value| event["metadata"]["eventType"] == "permission_resolved";
        let resolved: Vec<_> = events.iter().filter(resolved).collect();
        assert_eq!(resolved.len(), 1, "a question is settled once");
        resolved[0]["content"].clone()
    }
}

/// Waits for the agent's permission request.
async fn question(server: &TestServer, id: &str) -> Value {
    let asked = async {
        loop {
            let events = server.events(id).await;
            let asked = |event: &&Value| event["metadata"]["eventType"] == "permission_request";
            if let Some(event) = events.iter().find(asked) {
                return event["content"].clone();
            }
            let agent = server.get(&format!("/api/agents/{id}")).await;
            assert!(agent["endedAt"].is_null(), "it has ended without a question: {agent} {events:?}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SLOW, asked).await.expect("the agent asks")
}

pub(crate) async fn is_allowed_to_do_it(agent: &Agent, forbidden: Forbidden) {
    let asking = Asking::start(agent, forbidden).await;
    assert!(asking.question["toolName"].as_str().is_some_and(|tool| !tool.is_empty()), "{}", asking.question);
    assert!(asking.question["input"].to_string().contains("touch"), "{}", asking.question);
    let nonsense = json!({ "optionId": "no such option" });
    let (status, problem) = asking.server.post(&asking.path(), &nonsense).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("validation_failed")), "{problem}");
    assert!(!asking.wanted.exists(), "it has waited");

    let allow = asking.option("allow_once");
    let (status, answer) = asking.server.post(&asking.path(), &json!({ "optionId": allow })).await;
    assert_eq!((status.as_u16(), &answer["state"]), (200, &json!("selected")), "{answer}");
    let resolved = asking.resolved().await;
    assert_eq!((&resolved["optionId"], &resolved["by"]), (&allow, &json!("user")));
    let (status, problem) = asking.server.post(&asking.path(), &json!({ "optionId": allow })).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("already_resolved")), "{problem}");

    let ended = ended(&asking.server, &asking.id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(asking.wanted.exists(), "it has done what it was allowed to");
}

/// The agent lets the user choose between these options.
pub(crate) async fn is_told_what_the_user_has_chosen(agent: &Agent, choice: Forbidden, words: &str) {
    let asking = Asking::start(agent, choice).await;
    let options = asking.question["options"].as_array().unwrap();
    let chosen = options.iter().find(|option| option["name"] == words).expect("it can be chosen");
    asking.tells_the_model(&json!({ "optionId": chosen["optionId"] }), words).await;
}

/// The agent gets this answer, and tells it to the model in these words.
pub(crate) async fn is_told(agent: &Agent, choice: Forbidden, answer: &Value, words: &str) {
    Asking::start(agent, choice).await.tells_the_model(answer, words).await;
}

pub(crate) async fn is_told_why_it_is_refused(agent: &Agent, forbidden: Forbidden, note: &str) {
    let asking = Asking::start(agent, forbidden).await;
    assert_eq!(asking.question["accepts"]["note"], true, "{}", asking.question);
    let answer = json!({ "optionId": asking.option("reject_once"), "note": note });
    asking.tells_the_model(&answer, note).await;
    assert!(!asking.wanted.exists(), "it has not done what it was not allowed to");
    assert_eq!(asking.resolved().await["note"], note);
}

pub(crate) async fn is_refused_and_goes_on_without_it(agent: &Agent, forbidden: Forbidden) {
    let asking = refused(agent, forbidden).await;
    // Some agents send another request after the turn has ended.
    assert!(2 <= asking.model.requests().len(), "the model was told");
}

pub(crate) async fn is_refused_and_ends_its_turn(agent: &Agent, forbidden: Forbidden) {
    let asking = refused(agent, forbidden).await;
    assert_eq!(asking.model.requests().len(), 1, "the model was not asked again");
}

async fn refused(agent: &Agent, forbidden: Forbidden) -> Asking {
    let asking = Asking::start(agent, forbidden).await;
    let reject = asking.option("reject_once");
    let (status, answer) = asking.server.post(&asking.path(), &json!({ "optionId": reject })).await;
    assert_eq!(status, 200, "{answer}");
    let ended = ended(&asking.server, &asking.id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(!asking.wanted.exists(), "it has not done what it was not allowed to");
    asking
}

pub(crate) async fn asks_a_server_that_is_killed_and_is_answered_by_the_next(
    agent: &Agent,
    forbidden: Forbidden,
) {
    let mut asking = Asking::start(agent, forbidden).await;
    asking.server.kill_9();
    asking.server.start_again();
    assert_eq!(question(&asking.server, &asking.id).await, asking.question, "it is asked once");
    let allow = asking.option("allow_once");
    let (status, answer) = asking.server.post(&asking.path(), &json!({ "optionId": allow })).await;
    assert_eq!(status, 200, "{answer}");
    let ended = ended(&asking.server, &asking.id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(asking.resolved().await["optionId"], allow);
    assert!(asking.wanted.exists());
}

pub(crate) async fn is_cancelled_while_it_waits_for_an_answer(agent: &Agent, forbidden: Forbidden) {
    let asking = Asking::start(agent, forbidden).await;
    asking.server.post(&format!("/api/agents/{}/cancel", asking.id), &json!({})).await;
    assert_eq!(ended(&asking.server, &asking.id).await["status"], "cancelled");
    assert_eq!(asking.resolved().await["by"], "cancel");
    no_process_is_left(&asking.id).await;
    assert!(!asking.wanted.exists());
    let (status, problem) = asking.server.post(&asking.path(), &json!({ "cancelled": true })).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("already_resolved")), "{problem}");
}

/// The stories of one agent with permission requests, one test each.
macro_rules! questions {
    ($agent:ident, $forbidden:ident) => {
        $crate::real_questions::questions! { $agent, $forbidden,
            is_allowed_to_do_it
            is_refused_and_goes_on_without_it
            asks_a_server_that_is_killed_and_is_answered_by_the_next
            is_cancelled_while_it_waits_for_an_answer
        }
    };
    ($agent:ident, $forbidden:ident, $($story:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                $crate::real_questions::$story(&$agent, $forbidden).await;
            }
        )*
    };
}
pub(crate) use questions;
