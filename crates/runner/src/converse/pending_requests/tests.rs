use std::sync::LazyLock;
use std::time::Duration;

use serde_json::value::RawValue;
use tokenrail_ports::testing::StoppedClock;
use tokio::time::Instant;

use super::*;
use crate::run_folder::ConverseLimits;

static CLOCK: LazyLock<StoppedClock> = LazyLock::new(|| StoppedClock::at(Timestamp(1_795_299_000_000)));

fn requests(unanswered: Unanswered) -> PendingRequests<'static> {
    let opening = Opening {
        images: Vec::new(),
        prompt: String::new(),
        session: None,
        model: None,
        cwd: "/".to_owned(),
        run: 3,
        limits: ConverseLimits::for_tests(),
        unanswered,
        files: false,
    };
    PendingRequests::new(&opening, &*CLOCK)
}

fn request(key: &str) -> NewRequest {
    NewRequest {
        key: key.to_owned(),
        tool_call_id: None,
        tool_name: "Write".to_owned(),
        input: RawValue::from_string("{}".to_owned()).unwrap(),
        options: vec![
            Choosable::new("always", "Always", OptionKind::AllowAlways),
            Choosable::new("yes", "Yes", OptionKind::AllowOnce),
            Choosable::new("no", "No", OptionKind::RejectOnce),
        ],
        accepts: Accepts::default(),
    }
}

fn line(line: &AddedLine) -> String {
    serde_json::to_string(line).unwrap()
}

fn answer(request: &str, option: Option<&str>) -> Answer {
    Answer::new(request.to_owned(), PermissionReply::of(option.map(str::to_owned)))
}

#[test]
fn the_first_answer_that_fits_settles_a_question() {
    let mut requests = requests(Unanswered::Reject);
    let (asked, settled) = requests.ask(request("k"), Instant::now());
    assert!(settled.is_none());
    assert!(
        line(&asked).starts_with(r#"{"tokenrail":"permission_request","requestId":"3-1","toolName":"Write""#)
    );
    for wrong in [answer("3-2", Some("yes")), answer("3-1", Some("maybe"))] {
        assert!(requests.answer(wrong).is_none());
    }
    let settled = requests.answer(answer("3-1", Some("yes"))).unwrap();
    assert_eq!((settled.key.as_str(), &settled.choice), ("k", &Choice::Option("yes".to_owned())));
    assert_eq!(
        line(&settled.line),
        r#"{"tokenrail":"permission_resolved","requestId":"3-1","optionId":"yes","by":"user"}"#
    );
    assert!(requests.answer(answer("3-1", Some("no"))).is_none(), "it is settled");
}

#[test]
fn what_is_answered_beyond_one_option_is_in_the_spool_if_the_request_accepts_it() {
    let reply = |options: &[&str], text: Option<&str>, note: Option<&str>| PermissionReply {
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        text: text.map(str::to_owned),
        note: note.map(str::to_owned),
    };
    let all = Accepts { note: true, text: true, several: true };
    for (reply, told) in [
        (reply(&["no"], None, Some("why")), r#""optionId":"no","by":"user","note":"why"}"#),
        (reply(&["yes", "also"], None, None), r#""optionId":"yes","by":"user","optionIds":["yes","also"]}"#),
        (reply(&["yes"], Some("t"), None), r#""optionId":"yes","by":"user","text":"t"}"#),
        (reply(&[], Some("t"), None), r#""by":"user","text":"t"}"#),
    ] {
        for accepts in [Accepts::default(), all] {
            let mut requests = requests(Unanswered::Reject);
            let mut request = NewRequest { accepts, ..request("k") };
            request.options.push(Choosable::new("also", "Also", OptionKind::AllowOnce));
            requests.ask(request, Instant::now());
            let settled = requests.answer(Answer::new("3-1".to_owned(), reply.clone()));
            assert_eq!(settled.is_some(), accepts == all, "{reply:?}");
            let Some(settled) = settled else { continue };
            assert!(line(&settled.line).ends_with(told), "{}", line(&settled.line));
            assert_eq!(reply_of(&settled.choice), reply);
        }
    }
}

#[test]
fn a_question_that_nobody_answers_is_settled_as_configured() {
    for (unanswered, option) in [(Unanswered::Reject, "no"), (Unanswered::Allow, "yes")] {
        let mut requests = requests(unanswered);
        let now = Instant::now();
        requests.ask(request("k"), now);
        let due = requests.next_deadline().unwrap();
        assert_eq!(due, now + Duration::from_mins(1));
        assert!(requests.take_expired(now).is_none());
        let settled = requests.take_expired(due).unwrap();
        assert_eq!(settled.choice, Choice::Option(option.to_owned()), "once, and not for ever");
        assert!(line(&settled.line).ends_with(r#""by":"timeout"}"#));
        assert_eq!(requests.next_deadline(), None);
    }
}

#[test]
fn a_question_says_until_when_it_waits_and_what_happens_then() {
    for (unanswered, option) in [(Unanswered::Reject, "no"), (Unanswered::Allow, "yes")] {
        let (asked, _) = requests(unanswered).ask(request("k"), Instant::now());
        let times = r#""askedAt":"2026-11-21T22:10:00.000Z","expiresAt":"2026-11-21T22:11:00.000Z""#;
        let end = format!(r#"],{times},"defaultOptionId":"{option}"}}"#);
        assert!(line(&asked).ends_with(&end), "{}", line(&asked));
    }
    let none = NewRequest { options: Vec::new(), ..request("k") };
    let (asked, _) = requests(Unanswered::Allow).ask(none, Instant::now());
    assert!(!line(&asked).contains("defaultOptionId"), "{}", line(&asked));
}

#[test]
fn one_question_too_many_is_settled_at_once() {
    let mut requests = requests(Unanswered::Reject);
    for key in ["a", "b"] {
        assert!(requests.ask(request(key), Instant::now()).1.is_none());
    }
    let (_, settled) = requests.ask(request("c"), Instant::now());
    assert_eq!(settled.unwrap().key, "c");
    assert!(requests.answer(answer("3-1", None)).is_some(), "those before it stay open");
}

#[test]
fn a_question_is_settled_by_a_cancel_or_taken_back() {
    let mut requests = requests(Unanswered::Allow);
    requests.ask(request("a"), Instant::now());
    requests.ask(request("b"), Instant::now());
    let taken_back = line(&requests.withdraw("b").unwrap());
    assert_eq!(taken_back, r#"{"tokenrail":"permission_resolved","requestId":"3-2","by":"agent"}"#);
    assert!(requests.withdraw("b").is_none());
    let cancelled = requests.take_cancelled().unwrap();
    assert_eq!((cancelled.key.as_str(), &cancelled.choice), ("a", &Choice::TurnCancelled));
    assert!(requests.take_cancelled().is_none());
}

#[test]
fn after_a_cancel_nothing_is_open() {
    let mut requests = requests(Unanswered::Allow);
    requests.cancel_turn();
    let settled = requests.ask(request("k"), Instant::now()).1.unwrap();
    assert_eq!(settled.choice, Choice::TurnCancelled);
    assert!(line(&settled.line).ends_with(r#""by":"cancel"}"#));
    assert!(requests.answer(answer("3-1", Some("yes"))).is_none());
}

#[test]
fn where_nobody_can_be_answered_nothing_is_open() {
    let mut requests = requests(Unanswered::Allow);
    requests.ask(request("a"), Instant::now());
    let closed = requests.close();
    assert_eq!(line(&closed[0]), r#"{"tokenrail":"permission_resolved","requestId":"3-1","by":"agent"}"#);
    assert!(requests.answer(answer("3-1", Some("yes"))).is_none());
    let settled = requests.ask(request("b"), Instant::now()).1.unwrap();
    assert_eq!(settled.choice, Choice::Dismissed);
}

#[test]
fn an_input_that_is_too_long_is_not_shown() {
    let long = format!("\"{}\"", "x".repeat(1 << 18));
    let input = RawValue::from_string(long).unwrap();
    let asked = requests(Unanswered::Reject).ask(NewRequest { input, ..request("k") }, Instant::now()).0;
    assert!(line(&asked).contains("(262146 bytes, too long to show)"), "{}", line(&asked));
}

#[test]
fn what_cannot_be_read_comes_as_a_string() {
    for (given, told) in [
        (r#"{"a":"\ud83d"}"#, r#""{\"a\":\"\\ud83d\"}""#),
        ("1e999", r#""1e999""#),
        (r#"{"a":"🙂"}"#, r#"{"a":"🙂"}"#),
    ] {
        let input = RawValue::from_string(given.to_owned()).unwrap();
        let asked = requests(Unanswered::Reject).ask(NewRequest { input, ..request("k") }, Instant::now()).0;
        assert!(line(&asked).contains(&format!(r#""input":{told},"#)), "{}", line(&asked));
    }
}
