use std::borrow::Cow;

use serde_json::{Value, json};
use tokenrail_ports::{AddedLine, FailureLine};

use super::*;
use crate::run_folder::{ConverseLimits, Unanswered};

mod sessions;

const CWD: &str = "/work";

fn opening() -> Opening {
    Opening {
        prompt: "Say \"hi\"".to_owned(),
        images: Vec::new(),
        session: None,
        model: None,
        cwd: CWD.to_owned(),
        run: 2,
        limits: ConverseLimits {
            line_bytes: 1 << 20,
            read_bytes: 1 << 10,
            permission_timeout_ms: 1000,
            idle_ms: 0,
            exit_grace_ms: 1000,
            open_questions: 8,
            unread_bytes: 1 << 20,
            file_bytes: 1 << 10,
        },
        unanswered: Unanswered::Reject,
        files: true,
    }
}

/// A conversation and its output.
struct Talk {
    conversation: AcpConversation,
    out: Outbox,
}

impl Talk {
    /// Begins a conversation, and answers `initialize` with these capabilities.
    fn begin(opening: Opening, agent: &Value) -> Self {
        let prompt = opening.prompt.clone().into();
        Self::begin_with(opening, prompt, agent)
    }

    fn begin_with(opening: Opening, prompt: EncodedPrompt, agent: &Value) -> Self {
        let conversation = AcpConversation::new(opening, prompt);
        let mut talk = Self { conversation, out: Outbox::default() };
        talk.conversation.open(&mut talk.out);
        let [initialize] = &talk.said()[..] else { panic!("one request") };
        assert_eq!(initialize["method"], "initialize");
        talk.answer(initialize, agent);
        talk
    }

    /// A conversation with a session named `s`, whose prompt was sent.
    fn prompted() -> Self {
        let mut talk = Self::begin(opening(), &json!({ "protocolVersion": 1 }));
        let new = talk.only();
        assert_eq!(new["method"], "session/new");
        assert_eq!(new["params"], json!({ "cwd": CWD, "mcpServers": [] }));
        talk.answer(&new, &json!({ "sessionId": "s" }));
        talk.expect_prompt();
        talk
    }

    /// The messages to the agent since the last call.
    fn said(&mut self) -> Vec<Value> {
        let said = std::mem::take(&mut self.out.to_program);
        let lines = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    #[track_caller]
    fn only(&mut self) -> Value {
        let mut said = self.said();
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    fn line(&mut self, line: &Value) {
        self.conversation.line(line.to_string().as_bytes(), &mut self.out);
    }

    fn answer(&mut self, request: &Value, result: &Value) {
        // Agents write the fields in any order.
        self.line(&json!({ "result": result, "jsonrpc": "2.0", "id": request["id"] }));
    }

    fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        self.line(&json!({ "id": request["id"], "error": { "code": code, "message": message } }));
    }

    #[track_caller]
    fn expect_prompt(&mut self) -> Value {
        let prompt = self.only();
        assert_eq!(prompt["method"], "session/prompt");
        let text = json!([{ "type": "text", "text": "Say \"hi\"" }]);
        assert_eq!(prompt["params"]["prompt"], text);
        assert!(!self.out.over);
        prompt
    }

    #[track_caller]
    fn expect_failure(&self, expected: &str) {
        assert!(self.out.over);
        let Some(AddedLine::Error(FailureLine { code, .. })) = self.out.added.last() else {
            panic!("{:?}", self.out.added)
        };
        assert_eq!(code.as_deref(), Some(expected));
    }

    fn ask(&mut self, id: &Value, options: &Value) {
        let call = json!({ "toolCallId": "c", "title": "Run it", "kind": "execute", "rawInput": { "command": "ls" } });
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        self.line(&json!({ "id": id, "method": "session/request_permission", "params": params }));
    }
}

fn yes_and_no() -> Value {
    json!([
        { "optionId": "y", "name": "Yes", "kind": "allow_once" },
        { "optionId": "n", "name": "No", "kind": "reject_once" },
    ])
}

#[test]
fn a_turn_is_a_session_and_a_prompt_until_its_answer() {
    let mut talk = Talk::prompted();
    assert!(matches!(
        &talk.out.added[..],
        [.., AddedLine::Sent { id: 3, method: Cow::Borrowed("session/prompt") }]
    ));
    talk.line(&json!({ "method": "session/update", "params": {} }));
    assert!(!talk.out.over && !talk.out.idle);
    talk.line(&json!({ "id": 3, "result": { "stopReason": "end_turn" } }));
    assert!(talk.out.idle);
}

#[test]
fn a_session_is_resumed_or_else_loaded() {
    let go_on = || Opening { session: Some("old".to_owned()), ..opening() };
    let both = json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } });
    let mut talk = Talk::begin(go_on(), &json!({ "protocolVersion": 1, "agentCapabilities": both }));
    let resume = talk.only();
    assert_eq!(resume["method"], "session/resume");
    assert_eq!(resume["params"], json!({ "sessionId": "old", "cwd": CWD, "mcpServers": [] }));
    talk.answer(&resume, &json!({}));
    assert_eq!(talk.expect_prompt()["params"]["sessionId"], "old");

    let load = json!({ "loadSession": true });
    let mut talk = Talk::begin(go_on(), &json!({ "protocolVersion": 1, "agentCapabilities": load }));
    let load = talk.only();
    assert_eq!(load["method"], "session/load");
    talk.answer(&load, &Value::Null);
    talk.expect_prompt();
}

#[test]
fn the_prompt_waits_until_a_session_that_is_loaded_has_told_what_it_was() {
    let go_on = Opening { session: Some("old".to_owned()), ..opening() };
    let agent = json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } });
    let mut talk = Talk::begin(go_on, &agent);
    let load = talk.only();
    talk.answer(&load, &json!({ "modes": { "currentModeId": "plan" } }));
    let mode = talk.only();
    assert_eq!(mode["method"], "session/set_mode");
    assert_eq!(mode["params"], json!({ "sessionId": "old", "modeId": "plan" }));
    talk.refuse(&mode, -32603, "whatever");
    talk.expect_prompt();
}

#[test]
fn the_model_is_set_in_the_way_that_the_agent_offers() {
    let wish = || Opening { model: Some("large".to_owned()), ..opening() };
    let option = json!({ "configOptions": [{ "id": "mode", "category": "mode" }, { "id": "m", "category": "model" }] });
    let asked = [
        (option, "session/set_config_option", json!({ "sessionId": "s", "configId": "m", "value": "large" })),
        (json!({ "models": {} }), "session/set_model", json!({ "sessionId": "s", "modelId": "large" })),
    ];
    for (mut begun, method, params) in asked {
        let mut talk = Talk::begin(wish(), &json!({ "protocolVersion": 1 }));
        let new = talk.only();
        begun["sessionId"] = "s".into();
        talk.answer(&new, &begun);
        let set = talk.only();
        assert_eq!((&set["method"], &set["params"]), (&json!(method), &params));
        talk.answer(&set, &json!({}));
        talk.expect_prompt();
    }
    let mut talk = Talk::begin(wish(), &json!({ "protocolVersion": 1 }));
    let new = talk.only();
    talk.answer(&new, &json!({ "sessionId": "s" }));
    talk.expect_failure("model_unsupported");
}

#[test]
fn a_login_that_needs_nobody_is_tried_once() {
    let methods = json!([{ "id": "oauth", "name": "Browser" }, { "id": "gemini-api-key", "name": "Key" }]);
    let mut talk = Talk::begin(opening(), &json!({ "protocolVersion": 1, "authMethods": methods }));
    let new = talk.only();
    talk.refuse(&new, LOGIN_REQUIRED, "no key");
    let login = talk.only();
    assert_eq!(
        (&login["method"], &login["params"]["methodId"]),
        (&json!("authenticate"), &json!("gemini-api-key"))
    );
    talk.answer(&login, &json!({}));
    let new = talk.only();
    assert_eq!(new["method"], "session/new");
    talk.refuse(&new, LOGIN_REQUIRED, "still no key");
    talk.expect_failure("login_required");
    let Some(AddedLine::Error(FailureLine { text, class, .. })) = talk.out.added.last() else {
        panic!("an error")
    };
    assert!(text.contains("still no key") && text.contains("Browser, Key"), "{text}");
    assert_eq!(*class, ErrorClass::Authentication);
}

#[test]
fn a_refused_request_ends_the_turn() {
    let mut talk = Talk::begin(opening(), &json!({ "protocolVersion": 1 }));
    let new = talk.only();
    talk.refuse(&new, -32603, "no");
    assert!(talk.out.over);
    let talk = Talk::begin(opening(), &json!({ "protocolVersion": 2 }));
    talk.expect_failure("version_unsupported");
}

#[test]
fn a_question_is_answered_with_the_option_that_was_chosen() {
    let mut talk = Talk::prompted();
    for (choice, outcome) in [
        (Choice::Option("y".to_owned()), json!({ "outcome": "selected", "optionId": "y" })),
        (Choice::Dismissed, json!({ "outcome": "selected", "optionId": "n" })),
        (Choice::TurnCancelled, json!({ "outcome": "cancelled" })),
    ] {
        talk.ask(&json!("an id"), &yes_and_no());
        let request = talk.out.asked.pop().unwrap();
        assert_eq!((request.tool_name.as_str(), request.tool_call_id.as_deref()), ("execute", Some("c")));
        assert_eq!(request.input.get(), r#"{"command":"ls"}"#);
        talk.conversation.answer(&request.key, &choice, &mut talk.out);
        let answer = talk.only();
        assert_eq!((&answer["id"], &answer["result"]["outcome"]), (&json!("an id"), &outcome));
        // A second answer has no effect.
        talk.conversation.answer(&request.key, &choice, &mut talk.out);
        assert_eq!(talk.said(), [Value::Null; 0]);
    }
}

#[test]
fn a_question_that_nobody_can_answer_is_answered_at_once() {
    let mut talk = Talk::prompted();
    talk.ask(&json!(0), &json!([]));
    assert_eq!(talk.only()["result"]["outcome"]["outcome"], "cancelled");
    talk.conversation.cancel(&mut talk.out);
    assert_eq!(
        talk.only(),
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } })
    );
    let told = serde_json::to_string(talk.out.added.last().unwrap()).unwrap();
    assert_eq!(told, r#"{"tokenrail":"cancel"}"#);
    talk.ask(&json!(1), &yes_and_no());
    assert_eq!(talk.only()["result"]["outcome"]["outcome"], "cancelled");
    assert!(talk.out.asked.is_empty() && !talk.out.over);
}

#[test]
fn a_question_may_be_taken_back() {
    let mut talk = Talk::prompted();
    talk.ask(&json!(5), &yes_and_no());
    talk.line(&json!({ "method": "$/cancel_request", "params": { "requestId": 6 } }));
    assert_eq!(talk.said(), [Value::Null; 0]);
    talk.line(&json!({ "method": "$/cancel_request", "params": { "requestId": 5 } }));
    assert_eq!(talk.only()["error"]["code"], CANCELLED);
    assert_eq!(talk.out.withdrawn, ["5"]);
}

#[test]
fn what_an_agent_keeps_to_itself_is_described_by_what_it_shows() {
    let mut talk = Talk::prompted();
    let call = json!({ "toolCallId": "c", "title": "Set it", "kind": "other", "rawInput": {}, "locations": [], "content": [7] });
    let params = json!({ "toolCall": call, "options": yes_and_no() });
    talk.line(&json!({ "id": 0, "method": "session/request_permission", "params": params }));
    let request = talk.out.asked.pop().unwrap();
    assert_eq!(
        (request.tool_name.as_str(), request.input.get()),
        ("Set it", r#"{"title":"Set it","content":[7]}"#)
    );
}

#[test]
fn a_cancel_before_the_prompt_ends_the_conversation() {
    let mut talk = Talk::begin(opening(), &json!({ "protocolVersion": 1 }));
    let new = talk.only();
    talk.conversation.cancel(&mut talk.out);
    assert!(talk.out.over);
    talk.answer(&new, &json!({ "sessionId": "s" }));
    assert_eq!(talk.said(), [Value::Null; 0]);
}

#[test]
fn no_request_of_the_agent_stays_without_an_answer() {
    let mut talk = Talk::prompted();
    for method in ["terminal/create", "elicitation/create", "_own/thing"] {
        talk.line(&json!({ "id": method, "method": method, "params": {} }));
        let answer = talk.only();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(method), &json!(METHOD_NOT_FOUND)));
    }
    for line in ["", "{", "[]", "7", "{\"id\":99,\"result\":{}}", "{\"id\":null,\"method\":7}"] {
        talk.conversation.line(line.as_bytes(), &mut talk.out);
    }
    assert_eq!(talk.said(), [Value::Null; 0]);
}

fn with_image() -> EncodedPrompt {
    EncodedPrompt::with_image("What is this?", "image/png", "iVBO")
}

#[test]
fn an_agent_that_says_so_gets_images() {
    let agent =
        json!({ "protocolVersion": 1, "agentCapabilities": { "promptCapabilities": { "image": true } } });
    let mut talk = Talk::begin_with(opening(), with_image(), &agent);
    let new = talk.only();
    talk.answer(&new, &json!({ "sessionId": "s" }));
    let blocks = json!([
        { "type": "image", "mimeType": "image/png", "data": "iVBO" },
        { "type": "text", "text": "What is this?" },
    ]);
    assert_eq!(talk.only()["params"]["prompt"], blocks);
}

#[test]
fn an_agent_that_accepts_no_images_gets_no_part_of_the_prompt() {
    for agent in [json!({ "image": false }), json!({})] {
        let agent = json!({ "protocolVersion": 1, "agentCapabilities": { "promptCapabilities": agent } });
        let mut talk = Talk::begin_with(opening(), with_image(), &agent);
        let new = talk.only();
        talk.answer(&new, &json!({ "sessionId": "s" }));
        assert!(talk.said().is_empty());
        talk.expect_failure("images_unsupported");
    }
}

#[test]
fn a_refused_image_does_not_end_a_session_that_lives_only_in_the_process() {
    let mut talk = Talk::begin(opening(), &json!({ "protocolVersion": 1 }));
    let new = talk.only();
    talk.answer(&new, &json!({ "sessionId": "s" }));
    let prompt = talk.expect_prompt();
    talk.answer(&prompt, &json!({ "stopReason": "end_turn" }));
    talk.out = Outbox::default();
    talk.conversation.further_turn(with_image(), &mut talk.out);
    assert!(talk.said().is_empty());
    assert!(talk.out.idle && !talk.out.over);
    let added = serde_json::to_value(&talk.out.added).unwrap();
    assert_eq!(added[0]["code"], "images_unsupported", "{added}");
    talk.out = Outbox::default();
    talk.conversation.further_turn("And now?".to_owned().into(), &mut talk.out);
    assert_eq!(talk.only()["method"], "session/prompt");
}
