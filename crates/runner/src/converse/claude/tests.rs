use super::*;

const QUESTION: &str = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/x","content":"\ud83d"},"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}],"tool_use_id":"toolu_1"}}"#;

fn said(out: &Outbox) -> Vec<String> {
    String::from_utf8(out.to_program.clone()).unwrap().lines().map(str::to_owned).collect()
}

fn asked() -> (ClaudeConversation, Outbox) {
    let (mut conversation, mut out) = (ClaudeConversation::new("Hi 🙂".to_owned()), Outbox::default());
    conversation.line(QUESTION.as_bytes(), &mut out);
    (conversation, out)
}

fn answered(choice: &Choice) -> Vec<String> {
    let (mut conversation, mut out) = (asked().0, Outbox::default());
    conversation.answer("q1", choice, &mut out);
    said(&out)
}

#[test]
fn the_prompt_is_a_message_of_the_user() {
    let mut out = Outbox::default();
    ClaudeConversation::new("Hi 🙂\n".to_owned()).open(&mut out);
    assert_eq!(
        said(&out),
        [
            r#"{"type":"user","message":{"role":"user","content":"Hi 🙂\n"},"parent_tool_use_id":null,"session_id":""}"#
        ]
    );
}

#[test]
fn images_are_blocks_before_the_text() {
    let expected = r#"{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},{"type":"text","text":"What is this?"}]},"parent_tool_use_id":null,"session_id":""}"#;
    let prompt = || EncodedPrompt::with_image("What is this?", "image/png", "iVBO");
    let (mut conversation, mut out) = (ClaudeConversation::new(prompt()), Outbox::default());
    conversation.open(&mut out);
    assert_eq!(said(&out), [expected]);
    conversation.line(SUCCESS.as_bytes(), &mut out);
    let mut out = Outbox::default();
    conversation.further_turn(prompt(), &mut out);
    assert_eq!(said(&out), [expected]);
    let mut out = Outbox::default();
    conversation.further_turn("And now?".to_owned().into(), &mut out);
    assert!(said(&out)[0].contains(r#""content":"And now?""#), "without the images of earlier turns");
}

#[test]
fn a_result_ends_the_turn_and_nothing_else_does() {
    let (mut conversation, mut out) = (ClaudeConversation::new(String::new()), Outbox::default());
    for line in [r#"{"type":"assistant","message":{"content":"result"}}"#, "nonsense", "[]", r#"{"type":5}"#]
    {
        conversation.line(line.as_bytes(), &mut out);
    }
    assert!(out.is_empty());
    conversation.line(br#"{"duration_api_ms":1,"type":"result"}"#, &mut out);
    assert!(out.over);
}

/// The state and output of a conversation after these lines.
fn heard(lines: &[&str]) -> (ClaudeConversation, Outbox) {
    let (mut conversation, mut out) = (ClaudeConversation::new(String::new()), Outbox::default());
    for line in lines {
        conversation.line(line.as_bytes(), &mut out);
    }
    (conversation, out)
}

const SUCCESS: &str = r#"{"is_error":false,"type":"result","subtype":"success"}"#;

#[test]
fn a_program_that_has_done_what_it_was_asked_rests_and_takes_more() {
    let (mut conversation, out) = heard(&[SUCCESS]);
    assert!(out.idle && !out.over);
    let mut out = Outbox::default();
    conversation.further_turn("And now?".to_owned().into(), &mut out);
    conversation.line(br#"{"type":"system","subtype":"init"}"#, &mut out);
    assert!(said(&out)[0].contains(r#""content":"And now?""#));
    assert!(!out.over && !out.idle);
    conversation.line(SUCCESS.as_bytes(), &mut out);
    assert!(out.idle);
}

#[test]
fn a_program_that_has_failed_or_goes_on_by_itself_does_not_become_idle() {
    let task = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b"}]}"#;
    let none = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[]}"#;
    let started = r#"{"type":"system","subtype":"task_started","task_id":"b","is_backgrounded":true}"#;
    let put_there =
        r#"{"type":"system","subtype":"task_updated","task_id":"b","patch":{"is_backgrounded":true}}"#;
    for lines in [
        &[r#"{"type":"result","subtype":"success","is_error":true}"#][..],
        &[r#"{"type":"result","subtype":"error_during_execution","is_error":false}"#],
        &[task, SUCCESS],
        &[started, SUCCESS],
        &[put_there, SUCCESS],
        // The task has ended, and the program will report that.
        &[task, none, SUCCESS],
    ] {
        let (_, out) = heard(lines);
        assert!(out.over && !out.idle, "{lines:?}");
    }
    let slow = r#"{"type":"system","subtype":"task_started","task_id":"b","is_backgrounded":false}"#;
    assert!(heard(&[slow, SUCCESS]).1.idle, "that is a tool which takes its time");
}

#[test]
fn a_program_that_speaks_while_it_rests_is_asked_nothing_more() {
    for line in [
        r#"{"type":"system","subtype":"init"}"#,
        r#"{"type":"stream_event","event":{"type":"message_start"}}"#,
        r#"{"type":"assistant","message":{}}"#,
        SUCCESS,
    ] {
        assert!(heard(&[SUCCESS, line]).1.over, "{line}");
    }
    assert!(!heard(&[SUCCESS, r#"{"type":"system","subtype":"status"}"#]).1.over, "that is no speech");
}

#[test]
fn a_question_offers_what_the_program_understands() {
    let (_, out) = asked();
    let request = &out.asked[0];
    assert_eq!((request.tool_name.as_str(), request.tool_call_id.as_deref()), ("Write", Some("toolu_1")));
    assert_eq!(request.input.get(), r#"{"file_path":"/x","content":"\ud83d"}"#, "as given");
    let kinds: Vec<_> = request.options.iter().map(|option| option.kind).collect();
    assert_eq!(kinds, [OptionKind::AllowOnce, OptionKind::AllowAlways, OptionKind::RejectOnce]);
}

#[test]
fn what_would_be_allowed_from_now_on_is_told() {
    let name = |suggestions: &str| {
        let (mut conversation, mut out) = (ClaudeConversation::new(String::new()), Outbox::default());
        let line = format!(
            r#"{{"type":"control_request","request_id":"q","request":{{"subtype":"can_use_tool","permission_suggestions":{suggestions}}}}}"#
        );
        conversation.line(line.as_bytes(), &mut out);
        let options = std::mem::take(&mut out.asked[0].options);
        options.into_iter().find(|option| option.kind == OptionKind::AllowAlways).map(|option| option.name)
    };
    for (suggestions, words) in [
        (
            r#"[{"type":"setMode","mode":"acceptEdits","destination":"session"}]"#,
            Some("Always allow edits (for this session)"),
        ),
        (
            r#"[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"npm test:*"}],"behavior":"allow","destination":"localSettings"}]"#,
            Some("Always allow Bash(npm test:*) (saved in localSettings)"),
        ),
        (
            r#"[{"type":"addDirectories","directories":["/tmp"],"destination":"session"},{"type":"somethingElse"}]"#,
            None,
        ),
        (
            r#"[{"type":"addRules","rules":[{"toolName":"x"}],"behavior":"deny","destination":"session"}]"#,
            None,
        ),
        ("[]", None),
        ("null", None),
    ] {
        assert_eq!(name(suggestions).as_deref(), words, "{suggestions}");
    }
}

#[test]
fn answers_are_told_in_the_programs_words() {
    let choose = |option: &str| answered(&Choice::Option(option.to_owned()));
    let response = |body: &str| {
        format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"q1","response":{body}}}}}"#
        )
    };
    let input = r#"{"file_path":"/x","content":"\ud83d"}"#;
    assert_eq!(choose("allow"), [response(&format!(r#"{{"behavior":"allow","updatedInput":{input}}}"#))]);
    let always = format!(
        r#"{{"behavior":"allow","updatedInput":{input},"updatedPermissions":[{{"type":"setMode","mode":"acceptEdits","destination":"session"}}]}}"#
    );
    assert_eq!(choose("allow_always"), [response(&always)]);
    assert_eq!(
        choose("reject"),
        [response(r#"{"behavior":"deny","message":"The user rejected this action."}"#)]
    );
    let note = "use \"the other\" file 🙂".to_owned();
    assert_eq!(
        answered(&Choice::OptionWithNote { option: REJECT.to_owned(), note }),
        [response(
            r#"{"behavior":"deny","message":"The user rejected this action and says: use \"the other\" file 🙂"}"#
        )]
    );
    assert!(answered(&Choice::Dismissed)[0].contains(r#""behavior":"deny""#));
    assert!(answered(&Choice::TurnCancelled).is_empty(), "the interrupt takes it back");
}

#[test]
fn a_cancel_interrupts() {
    let (mut conversation, mut out) = asked();
    conversation.cancel(&mut out);
    assert_eq!(
        said(&out),
        [r#"{"type":"control_request","request_id":"interrupt","request":{"subtype":"interrupt"}}"#]
    );
    conversation.line(br#"{"type":"control_cancel_request","request_id":"q1"}"#, &mut out);
    assert_eq!(out.withdrawn, ["q1"]);
}

#[test]
fn no_request_of_the_program_is_left_without_an_answer() {
    let (mut conversation, mut out) = (ClaudeConversation::new(String::new()), Outbox::default());
    conversation.line(
        br#"{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback"}}"#,
        &mut out,
    );
    assert_eq!(
        said(&out),
        [
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"h","error":"this client does not support this request"}}"#
        ]
    );
}

const SURVEY: &str = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which database?","header":"DB","options":[{"label":"SQLite 🪶","description":"one file"},{"label":"PostgreSQL","description":"a server"}],"multiSelect":false},{"question":"Which colour?","options":[{"label":"red"},{"label":"blue"}],"multiSelect":true}]},"tool_use_id":"toolu_1"}}"#;

/// A conversation that lets the user choose, and the keys of its two requests.
fn survey() -> (ClaudeConversation, Outbox) {
    let (mut conversation, mut out) = (ClaudeConversation::new(String::new()), Outbox::default());
    conversation.line(SURVEY.as_bytes(), &mut out);
    (conversation, out)
}

fn chosen(option: &str) -> Choice {
    Choice::Option(option.to_owned())
}

#[test]
fn what_the_user_is_to_choose_is_asked_question_by_question_and_told_together() {
    let (mut conversation, out) = survey();
    let [first] = &out.asked[..] else { panic!("{:?}", out.asked) };
    let names: Vec<_> = first.options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(names, ["SQLite 🪶", "PostgreSQL", "Decline to answer"]);
    assert!(first.input.get().starts_with(r#"{"question":"Which database?""#), "the question alone");
    let mut out = Outbox::default();
    conversation.answer(&first.key, &chosen("answer_1"), &mut out);
    assert!(out.to_program.is_empty(), "there is another question");
    let second = out.asked.pop().unwrap();
    assert_ne!(second.key, first.key);
    conversation.answer(&second.key, &chosen("answer_1"), &mut out);
    let [told] = &said(&out)[..] else { panic!("{:?}", said(&out)) };
    assert!(
        told.contains(r#""request_id":"q1","response":{"behavior":"allow","updatedInput":{"questions":[{"#)
    );
    assert!(
        told.ends_with(r#""answers":{"Which colour?":"red","Which database?":"SQLite 🪶"}}}}}"#),
        "{told}"
    );
}

/// Answers the first question of the survey with `red` and the second with `choice`. Returns what the program receives.
fn colours(choice: &Choice) -> String {
    let (mut conversation, out) = survey();
    let mut later = Outbox::default();
    conversation.answer(&out.asked[0].key, &chosen("answer_1"), &mut later);
    let second = later.asked.pop().unwrap();
    conversation.answer(&second.key, choice, &mut later);
    said(&later).pop().unwrap()
}

#[test]
fn several_answers_and_a_text_are_one_string_for_the_program() {
    let composed = |options: &[&str], text: Option<&str>| Choice::Composed {
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        text: text.map(str::to_owned),
    };
    for (choice, answer) in [
        (composed(&["answer_1", "answer_2"], None), "red, blue"),
        (composed(&["answer_2"], Some("a little \"pink\"")), r#"blue, a little \"pink\""#),
        (composed(&[], Some("none, please")), "none, please"),
    ] {
        let told = colours(&choice);
        let expected = format!(r#""answers":{{"Which colour?":"{answer}","Which database?":"SQLite 🪶"}}"#);
        assert!(told.contains(&expected), "{told}");
    }
}

#[test]
fn a_request_says_whether_it_takes_a_note_a_text_or_several_answers() {
    let accepts = |out: &Outbox| out.asked[0].accepts;
    assert_eq!(accepts(&asked().1), Accepts { note: true, text: false, several: false });
    let (mut conversation, out) = survey();
    assert_eq!(accepts(&out), Accepts { note: true, text: true, several: false });
    let mut later = Outbox::default();
    conversation.answer(&out.asked[0].key, &chosen("answer_1"), &mut later);
    assert_eq!(accepts(&later), Accepts { note: true, text: true, several: true });
}

#[test]
fn who_does_not_answer_one_question_answers_none() {
    for (choice, words) in [
        (chosen(REJECT), "declined to answer."),
        (
            Choice::OptionWithNote { option: REJECT.to_owned(), note: "neither".to_owned() },
            "declined to answer and says: neither",
        ),
        (Choice::Composed { options: Vec::new(), text: None }, "declined"),
        (Choice::Dismissed, "The question was not answered"),
        (chosen("answer_9"), "declined"),
    ] {
        let (mut conversation, mut out) = survey();
        let key = out.asked[0].key.clone();
        conversation.answer(&key, &choice, &mut out);
        assert_eq!(out.asked.len(), 1, "no more questions");
        assert!(
            said(&out)[0].contains(r#""behavior":"deny""#) && said(&out)[0].contains(words),
            "{:?}",
            said(&out)
        );
    }
}

#[test]
fn what_the_user_is_to_choose_can_be_taken_back_and_what_is_no_choice_can_be_allowed() {
    let (mut conversation, out) = survey();
    let mut later = Outbox::default();
    conversation.line(br#"{"type":"control_cancel_request","request_id":"q1"}"#, &mut later);
    assert_eq!(later.withdrawn, [out.asked[0].key.clone()]);
    let strange = SURVEY.replace("options", "choices");
    let mut out = Outbox::default();
    conversation.line(strange.as_bytes(), &mut out);
    assert_eq!(out.asked[0].options[0].option_id, ALLOW);
}
