use std::borrow::Cow;

use tokenrail_ports::AddedLine;

use super::*;
use crate::run_folder::{ConverseLimits, Unanswered};

fn conversation(session: Option<&str>) -> CodexConversation {
    saying(FilePrompt { text: "Hi".to_owned(), files: Vec::new() }, session)
}

fn saying(prompt: FilePrompt, session: Option<&str>) -> CodexConversation {
    let opening = Opening {
        prompt: String::new(),
        images: Vec::new(),
        session: session.map(str::to_owned),
        model: Some("gpt".to_owned()),
        cwd: "/work".to_owned(),
        turn: 1,
        limits: ConverseLimits::for_tests(),
        unanswered: Unanswered::Reject,
        files: false,
    };
    CodexConversation::new(opening, prompt)
}

/// The response to that line, and whether the turn is over.
fn to_line(conversation: &mut CodexConversation, line: &str) -> (Vec<String>, bool) {
    let mut out = Outbox::default();
    conversation.line(line.as_bytes(), &mut out);
    (said(&out), out.over)
}

fn said(out: &Outbox) -> Vec<String> {
    String::from_utf8(out.to_program.clone()).unwrap().lines().map(str::to_owned).collect()
}

/// A conversation whose turn is running.
fn running() -> CodexConversation {
    let mut conversation = conversation(None);
    conversation.open(&mut Outbox::default());
    for answer in [
        r#"{"id":1,"result":{}}"#,
        r#"{"id":2,"result":{"thread":{"id":"t"}}}"#,
        r#"{"id":3,"result":{"turn":{"id":"u"}}}"#,
    ] {
        assert!(!to_line(&mut conversation, answer).1);
    }
    conversation
}

#[test]
fn a_turn_is_asked_for_step_by_step() {
    let mut conversation = conversation(None);
    let mut out = Outbox::default();
    conversation.open(&mut out);
    assert!(said(&out)[0].starts_with(r#"{"jsonrpc":"2.0","id":1,"method":"initialize""#));
    assert!(matches!(out.added[..], [AddedLine::Sent { id: 1, method: Cow::Borrowed("initialize") }]));
    assert_eq!(
        to_line(&mut conversation, r#"{"id":1,"result":{"userAgent":"x"}}"#).0,
        [
            r#"{"jsonrpc":"2.0","method":"initialized"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"thread/start","params":{"cwd":"/work","model":"gpt"}}"#,
        ]
    );
    assert_eq!(
        to_line(&mut conversation, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#).0,
        [
            r#"{"jsonrpc":"2.0","id":3,"method":"turn/start","params":{"threadId":"t","input":[{"type":"text","text":"Hi"}]}}"#
        ]
    );
}

#[test]
fn a_session_is_resumed() {
    let mut conversation = conversation(Some("old"));
    conversation.open(&mut Outbox::default());
    let (said, _) = to_line(&mut conversation, r#"{"id":1,"result":{}}"#);
    assert!(
        said[1].contains(r#""method":"thread/resume","params":{"threadId":"old","cwd":"/work""#),
        "{said:?}"
    );
    assert!(to_line(&mut conversation, r#"{"id":2,"error":{"code":-32600,"message":"no such thread"}}"#).1);
}

#[test]
fn the_turn_ends_with_its_own_end() {
    let mut conversation = running();
    let end = |thread: &str| format!(r#"{{"method":"turn/completed","params":{{"threadId":"{thread}"}}}}"#);
    assert!(!to_line(&mut conversation, &end("another")).1);
    assert!(to_line(&mut conversation, &end("t")).1);
}

#[test]
fn questions_are_answered_in_the_programs_words() {
    for (choice, decision) in [
        (Choice::Option("accept".to_owned()), "accept"),
        (Choice::Option("acceptForSession".to_owned()), "acceptForSession"),
        (Choice::Option("decline".to_owned()), "decline"),
        (Choice::Dismissed, "decline"),
        (Choice::TurnCancelled, "cancel"),
    ] {
        let mut conversation = running();
        let mut out = Outbox::default();
        let asked = r#"{"id":"a","method":"item/commandExecution/requestApproval","params":{"itemId":"call_1","command":"ls"}}"#;
        conversation.line(asked.as_bytes(), &mut out);
        let request = &out.asked[0];
        assert_eq!(request.tool_call_id.as_deref(), Some("call_1"));
        let mut out = Outbox::default();
        conversation.answer("\"a\"", &choice, &mut out);
        assert_eq!(
            said(&out),
            [format!(r#"{{"jsonrpc":"2.0","id":"a","result":{{"decision":"{decision}"}}}}"#)]
        );
    }
}

#[test]
fn a_cancel_interrupts_the_turn_as_soon_as_it_is_known() {
    let interrupt =
        r#"{"jsonrpc":"2.0","id":4,"method":"turn/interrupt","params":{"threadId":"t","turnId":"u"}}"#;
    let mut early = conversation(None);
    early.open(&mut Outbox::default());
    to_line(&mut early, r#"{"id":1,"result":{}}"#);
    to_line(&mut early, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    let mut out = Outbox::default();
    early.cancel(&mut out);
    assert!(out.is_empty());
    assert_eq!(to_line(&mut early, r#"{"id":3,"result":{"turn":{"id":"u"}}}"#).0, [interrupt]);

    let (mut late, mut out) = (running(), Outbox::default());
    late.cancel(&mut out);
    assert_eq!(said(&out), [interrupt]);
}

#[test]
fn no_request_of_the_program_is_left_without_an_answer() {
    let (said, over) = to_line(&mut running(), r#"{"id":7,"method":"item/tool/call","params":{}}"#);
    assert_eq!(
        said,
        [
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"this client does not support this request"}}"#
        ]
    );
    assert!(!over);
}

#[test]
fn images_are_sent_as_paths_before_the_text_because_codex_repeats_every_message() {
    let prompt = FilePrompt { text: "What is this?".to_owned(), files: vec!["/runs/1/image-1-0".to_owned()] };
    let mut conversation = saying(prompt, None);
    conversation.open(&mut Outbox::default());
    to_line(&mut conversation, r#"{"id":1,"result":{}}"#);
    let start = to_line(&mut conversation, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#).0;
    let input = r#""input":[{"type":"localImage","path":"/runs/1/image-1-0"},{"type":"text","text":"What is this?"}]"#;
    assert!(start[0].contains(input), "{start:?}");
}

#[test]
fn an_answer_that_is_too_long_to_be_read_ends_the_turn_that_waits_for_it() {
    let mut conversation = conversation(Some("old"));
    conversation.open(&mut Outbox::default());
    to_line(&mut conversation, r#"{"id":1,"result":{}}"#);
    let mut out = Outbox::default();
    conversation.line_too_long(&mut out);
    assert!(out.over);
    let [AddedLine::Error(failure)] = &out.added[..] else { panic!("{:?}", out.added) };
    assert_eq!(failure.code.as_deref(), Some("answer_too_long"));

    let mut out = Outbox::default();
    running().line_too_long(&mut out);
    assert!(out.is_empty(), "it is output of the turn");
}
