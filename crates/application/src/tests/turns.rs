use std::sync::Arc;

use tokenrail_domain::{AgentStatus, EventBody, SessionId, TurnNumber, TurnOutcome, TurnState};
use tokenrail_ports::testing::{AppendFault, ScriptedRunner, Step};
use tokenrail_ports::{ExitStatus, RunEnd, StoreError};
use tokio::sync::Notify;

use super::harness::{harness, words};

fn script(lines: &[&str]) -> Vec<Step> {
    vec![Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect())]
}

async fn check(steps: Vec<Step>, expected: &[&str]) {
    let h = harness(ScriptedRunner::new([steps]));
    let id = h.launch("hi").await;
    assert_eq!(words(&h.watch(id).await), expected);
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_its_prompt_its_messages_and_one_result() {
    check(
        script(&["say Hel", "say lo", "end", "tool Bash", "returned ok", "say Bye", "end", "close Bye"]),
        &[
            "user hi",
            "+Hel",
            "+lo",
            "message \"Hello\" from 2 complete",
            "call Bash",
            "returns \"ok\"",
            "+Bye",
            "message \"Bye\" from 7 complete",
            "result completed -",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_result_the_open_message_is_kept_and_the_turn_has_failed() {
    let end = RunEnd { status: ExitStatus::Code(0), stderr: "boom".into(), ..RunEnd::default() };
    let mut steps = script(&["say half"]);
    steps.push(Step::End(end));
    check(
        steps,
        &["user hi", "+half", "error no_result", "message \"half\" from 2 failed", "result failed no_result"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_message_is_not_completed() {
    check(
        script(&["say wrong", "retry", "say right", "end", "close right"]),
        &[
            "user hi",
            "+wrong",
            "abandoned",
            "+right",
            "message \"right\" from 4 complete",
            "result completed -",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn lines_that_display_nothing_go_with_the_next_event() {
    let h = harness(ScriptedRunner::new([script(&[
        "noise",
        "",
        "say x",
        "end",
        "more noise",
        "close x",
        "tail",
    ])]));
    let id = h.launch("hi").await;
    let events = h.watch(id).await;
    let raw: Vec<_> = events.iter().map(|e| e.raw.as_deref().map(String::from_utf8_lossy)).collect();
    let expected = [None, Some("noise\n\nsay x"), Some("end"), Some("more noise\nclose x\ntail")];
    assert_eq!(raw, expected.map(|raw| raw.map(Into::into)));
}

#[tokio::test(start_paused = true)]
async fn an_overlong_line_is_reported_and_the_turn_goes_on() {
    let mut steps = script(&["say a"]);
    steps.push(Step::LongLine { length_bytes: 1 << 30 });
    steps.extend(script(&["end", "close a"]));
    check(
        steps,
        &["user hi", "+a", "error line_too_long", "message \"a\" from 2 complete", "result completed -"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_missing_ends_the_turn() {
    let h = harness(ScriptedRunner::new([]));
    let id = h.launch("hi").await;
    let expected = ["user hi", "error program_missing", "result failed program_missing"];
    assert_eq!(words(&h.watch(id).await), expected);
    let agent = h.service.get(id).await.unwrap();
    assert_eq!(agent.status, AgentStatus::Failed);
    assert_eq!(agent.error.unwrap().code.as_deref(), Some("program_missing"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_agent_is_ended_by_the_timers_with_their_codes() {
    let hang = |lines: &[&str]| {
        let mut steps = script(lines);
        steps.push(Step::Hang);
        steps
    };
    check(hang(&["note x"]), &["user hi", "notice x", "error idle_timeout", "result failed idle_timeout"])
        .await;
    check(
        hang(&["say x"]),
        &[
            "user hi",
            "+x",
            "error stream_timeout",
            "message \"x\" from 2 failed",
            "result failed stream_timeout",
        ],
    )
    .await;
    let tool = &["user hi", "call Bash", "error turn_timeout", "result failed turn_timeout"];
    check(hang(&["tool Bash"]), tool).await;
    check(
        hang(&["say x", "end", "close x"]),
        &["user hi", "+x", "message \"x\" from 2 complete", "result completed -"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_closes_what_is_open() {
    let mut steps = script(&["say half"]);
    steps.push(Step::Hang);
    let h = harness(ScriptedRunner::new([steps]));
    let id = h.launch("hi").await;
    h.wait_for(id, |event| event.body.is_delta()).await;
    h.service.cancel(id).await.unwrap();
    h.service.cancel(id).await.unwrap();
    let expected =
        ["user hi", "+half", "notice reaped", "message \"half\" from 2 cancelled", "result cancelled -"];
    assert_eq!(words(&h.watch(id).await), expected);
    assert_eq!(h.runner.cancels(), 1);
    assert_eq!(h.service.get(id).await.unwrap().status, AgentStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_later_message_resumes_the_session() {
    let first = script(&["session s1", "say a", "end", "close a"]);
    let h = harness(ScriptedRunner::new([first, script(&["say b", "end", "close b"])]));
    let id = h.launch("one").await;
    h.watch(id).await;
    let accepted = h.service.send(id, "two".into(), None).await.unwrap();
    assert_eq!(accepted.turn.0, 2);
    let events = h.watch(id).await;
    assert_eq!(
        words(&events)[4..],
        ["user two", "+b", "message \"b\" from 6 complete", "result completed -"]
    );
    assert_eq!(events[5].turn.0, 2);
    let sessions: Vec<_> = h.runner.orders().into_iter().map(|order| order.session).collect();
    assert_eq!(sessions, [None, SessionId::new("s1").ok()]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_may_be_a_path_is_told_and_never_gone_on_with() {
    let first = script(&["session s1", "session ../../etc", "say a", "end", "close a"]);
    let again = script(&["session /s2", "say b", "end", "close b"]);
    let h = harness(ScriptedRunner::new([first, again, script(&["close c"]), script(&["close d"])]));
    let id = h.launch("one").await;
    let told =
        ["user one", "error session_invalid", "+a", "message \"a\" from 3 complete", "result completed -"];
    assert_eq!(words(&h.watch(id).await), told, "the turn goes on");
    h.service.send(id, "two".into(), None).await.unwrap();
    h.watch(id).await;
    h.service.send(id, "three".into(), None).await.unwrap();
    h.watch(id).await;
    assert_eq!(
        h.service.get(id).await.unwrap().session,
        None,
        "what it was called before is not its session"
    );
    // A session id that an older version stored.
    h.store.set_session(id, "/s2");
    h.service.send(id, "four".into(), None).await.unwrap();
    let events = h.watch(id).await;
    assert_eq!(
        words(&events[events.len() - 3..]),
        ["user four", "error session_invalid", "result completed -"]
    );
    let sessions: Vec<_> = h.runner.orders().into_iter().map(|order| order.session).collect();
    assert!(sessions.iter().all(Option::is_none), "{sessions:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_queue_while_a_turn_runs_and_a_cancel_drops_them() {
    let gate = Arc::new(Notify::new());
    let first = vec![Step::Gate(gate.clone()), Step::line("close 1")];
    let h =
        harness(ScriptedRunner::new([first, script(&["close 2"]), vec![Step::Hang], script(&["close 4"])]));
    let id = h.launch("one").await;
    h.wait_for(id, |event| matches!(event.body, EventBody::UserMessage { .. })).await;
    assert_eq!(h.service.send(id, "two".into(), None).await.unwrap().queued, 1);
    assert_eq!(h.service.send(id, "three".into(), None).await.unwrap().queued, 2);
    assert!(matches!(h.service.send(id, "four".into(), None).await, Err(crate::Refusal::QueueFull)));
    gate.notify_one();
    let third = |event: &tokenrail_domain::Event| matches!(&event.body, EventBody::UserMessage { content, .. } if content == "three");
    h.wait_for(id, third).await;
    h.service.send(id, "dropped".into(), None).await.unwrap();
    h.service.cancel(id).await.unwrap();
    let events = words(&h.watch(id).await);
    assert_eq!(
        events[2..],
        [
            "user two",
            "result completed -",
            "user three",
            "notice reaped",
            "result cancelled -",
            "user dropped",
            "result cancelled -"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_agent_begins_by_itself_is_one_more_turn() {
    let h = harness(ScriptedRunner::new([script(&[
        "say a", "end", "close a", "next", "say b", "end", "close b",
    ])]));
    let id = h.launch("hi").await;
    let events = h.watch(id).await;
    assert_eq!(
        words(&events),
        [
            "user hi",
            "+a",
            "message \"a\" from 2 complete",
            "result completed -",
            "notice init",
            "+b",
            "message \"b\" from 6 complete",
            "result completed -"
        ]
    );
    let turns: Vec<_> = events.iter().map(|event| event.turn.0).collect();
    assert_eq!(turns, [1, 1, 1, 1, 2, 2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_begins_without_a_word_takes_its_number_all_the_same() {
    let lines = ["say a", "end", "close a", "bare", "noise", "bare", "say b", "end", "close b"];
    let h = harness(ScriptedRunner::new([script(&lines)]));
    let id = h.launch("hi").await;
    let events = h.watch(id).await;
    let turns: Vec<_> =
        words(&events).into_iter().zip(events.iter().map(|event| event.turn.0)).skip(3).collect();
    let expected = [
        ("result completed -", 1),
        ("notice turn_began", 2),
        ("error no_result", 2),
        ("result failed no_result", 2),
        ("notice turn_began", 3),
        ("+b", 3),
        ("message \"b\" from 9 complete", 3),
        ("result completed -", 3),
    ];
    assert_eq!(turns, expected.map(|(word, turn)| (word.to_owned(), turn)));
    let raw =
        |index: usize| String::from_utf8_lossy(events[index].raw.as_deref().unwrap_or_default()).into_owned();
    assert_eq!(
        (raw(3), raw(4)),
        ("close a".to_owned(), "bare".to_owned()),
        "each line goes with its own turn"
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_its_own_never_takes_a_number_that_another_one_had() {
    let gate = Arc::new(Notify::new());
    let mut first = vec![Step::Gate(gate.clone())];
    first.extend(script(&["close 1", "next", "close own"]));
    let h = harness(ScriptedRunner::new([first, script(&["close 2", "next", "close own"])]));
    let id = h.launch("one").await;
    h.wait_for(id, |_| true).await;
    assert_eq!(h.service.send(id, "two".into(), None).await.unwrap().turn.0, 2);
    gate.notify_one();
    let mut turns: Vec<_> = h.watch(id).await.iter().map(|event| event.turn.0).collect();
    turns.dedup();
    assert_eq!(turns, [1, 3, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_asked_to_stop_is_asked_again() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang]]));
    h.runner.fail_messages(3);
    let id = h.launch("hi").await;
    h.wait_for(id, |_| true).await;
    h.service.cancel(id).await.unwrap();
    assert_eq!(words(&h.watch(id).await)[1..], ["notice reaped", "result cancelled -"]);
    assert_eq!(h.runner.cancels(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_never_ends_counts_for_the_limit_of_output() {
    let unfinished = Step::Unfinished { bytes: (4 << 30) + 1 };
    let expected = &["user hi", "error output_capped", "result failed output_capped"];
    check(vec![unfinished, Step::Hang], expected).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_prints_a_long_line_slowly_is_not_silent() {
    let (gate, piece) = (Arc::new(Notify::new()), Step::Unfinished { bytes: 10 });
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.extend([piece.clone(), Step::Gate(gate.clone())]);
    }
    steps.extend(script(&["close it"]));
    let h = harness(ScriptedRunner::new([steps]));
    let id = h.launch("hi").await;
    for _ in 0..3 {
        tokio::time::sleep(std::time::Duration::from_secs(400)).await;
        gate.notify_one();
    }
    assert_eq!(words(&h.watch(id).await), ["user hi", "result completed -"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_delays_and_loses_nothing() {
    let unknown = || StoreError::OutcomeUnknown("pulled the plug".into());
    for fault in [AppendFault::BeforeSaving(StoreError::Busy), AppendFault::AfterSaving(unknown())] {
        let gate = Arc::new(Notify::new());
        let mut steps = vec![Step::Gate(gate.clone())];
        steps.extend(script(&["say a", "say b", "end", "close ab"]));
        let h = harness(ScriptedRunner::new([steps]));
        let id = h.launch("hi").await;
        h.wait_for(id, |event| matches!(event.body, EventBody::UserMessage { .. })).await;
        h.store.fail_next_append(fault);
        gate.notify_one();
        let expected = ["user hi", "+a", "+b", "message \"ab\" from 2 complete", "result completed -"];
        assert_eq!(words(&h.watch(id).await), expected);
        assert_eq!(h.service.stats().write_retries, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_turn_is_cancelled_and_the_others_go_on() {
    let hang = || {
        let mut steps = script(&["say x"]);
        steps.push(Step::Hang);
        steps
    };
    let h = harness(ScriptedRunner::new([hang(), script(&["say y", "end", "close y"])]));
    let id = h.launch("one").await;
    h.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    for prompt in ["two", "three"] {
        h.service.send(id, prompt.into(), None).await.unwrap();
    }
    // A queued turn. The running one continues.
    h.service.cancel_turn(id, TurnNumber(2)).await.unwrap();
    assert_eq!(h.service.get(id).await.unwrap().status, AgentStatus::Running);
    // A turn that does not exist, then the running one, then the same again.
    for turn in [9, 1, 1] {
        h.service.cancel_turn(id, TurnNumber(turn)).await.unwrap();
    }
    h.watch(id).await;
    h.service.cancel_turn(id, TurnNumber(3)).await.unwrap();
    let turns = h.service.turns(id, TurnNumber(0), 10).await.unwrap();
    let ends: Vec<_> = turns.iter().map(|turn| turn.state).collect();
    let ended = TurnState::Ended;
    let cancelled = ended(TurnOutcome::Cancelled);
    assert_eq!(ends, [cancelled, cancelled, ended(TurnOutcome::Completed)]);
}
