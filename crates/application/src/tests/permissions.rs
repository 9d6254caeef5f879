//! Permission requests of agents, and their answers.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, EventBody, Notice, PermissionReply, ReplyFault};
use tokenrail_ports::testing::{AppendFault, MemoryStore, ScriptedRunner, Step};
use tokenrail_ports::{PermissionAnswer, StoreError};
use tokio::sync::Notify;

use super::harness::{Harness, harness, harness_with, tiny_limits, words};
use crate::{AnswerOutcome, Refusal, ReplyText};

fn answer(question: &str, option: Option<&str>) -> PermissionAnswer {
    PermissionAnswer {
        request_id: question.to_owned(),
        reply: PermissionReply::of(option.map(str::to_owned)),
    }
}

/// An agent that has sent a permission request. When it is answered, it prints `settled`.
async fn asking(settled: &str) -> (Harness, AgentId) {
    let script = vec![
        Step::line("ask 1-1 yes no"),
        Step::UntilAnswered,
        Step::line(settled),
        Step::line("close done"),
    ];
    let h = harness(ScriptedRunner::new([script]));
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    (h, id)
}

fn is(body: &EventBody, subtype: &str) -> bool {
    matches!(body, EventBody::Notice(notice) if notice.subtype == subtype)
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_handed_on_and_told_when_it_is_in_the_journal() {
    let (h, id) = asking("settle 1-1 yes").await;
    let given = answer("1-1", Some("yes"));
    assert_eq!(h.service.answer(id, given.clone()).await.unwrap(), AnswerOutcome::Settled);
    let events = h.service.events(id, tokenrail_domain::Sequence::START, None).await.unwrap().0;
    let (events, more) = (words(&events), h.watch(id).await);
    assert_eq!(h.runner.answers(), [given]);
    assert!(!events.is_empty());
    assert_eq!(
        words(&more),
        ["user go", "notice permission_request", "notice permission_resolved", "result completed -"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_told_when_the_agent_begins_a_turn_of_its_own_with_it() {
    let script = vec![
        Step::line("ask 1-1 yes no"),
        Step::UntilAnswered,
        Step::Lines(["settle 1-1 yes", "close done", "next"].map(str::to_owned).to_vec()),
        Step::Hang,
    ];
    let h = harness(ScriptedRunner::new([script]));
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    assert_eq!(h.service.answer(id, answer("1-1", Some("yes"))).await.unwrap(), AnswerOutcome::Settled);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_came_too_late_is_told_so() {
    // Another client has denied it, or it timed out.
    let (h, id) = asking("settle 1-1 no").await;
    let late = h.service.answer(id, answer("1-1", Some("yes"))).await;
    assert!(matches!(late, Err(Refusal::RequestSettled(_))), "{late:?}");
    h.watch(id).await;
    let later = h.service.answer(id, answer("1-1", Some("no"))).await;
    assert!(matches!(later, Err(Refusal::RequestSettled(_))), "its turn has ended: {later:?}");
    assert_eq!(h.runner.answers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_asked_and_not_offered_is_refused() {
    let (h, id) = asking("settle 1-1").await;
    for unknown in ["1-2", "2-1", "0-1", "x", "", "1-x"] {
        let refused = h.service.answer(id, answer(unknown, None)).await;
        assert!(matches!(&refused, Err(Refusal::RequestUnknown(_))), "{unknown}: {refused:?}");
    }
    let refused = h.service.answer(id, answer("1-1", Some("maybe"))).await;
    assert!(matches!(&refused, Err(Refusal::OptionUnknown { known }) if known == "yes, no"), "{refused:?}");
    assert_eq!(h.runner.answers(), []);
    assert_eq!(h.service.answer(id, answer("1-1", None)).await.unwrap(), AnswerOutcome::Settled);
}

/// An answer with everything that a request may accept.
fn rich(options: &[&str], text: Option<&str>, note: Option<&str>) -> PermissionAnswer {
    let reply = PermissionReply {
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        text: text.map(str::to_owned),
        note: note.map(str::to_owned),
    };
    PermissionAnswer { request_id: "1-1".to_owned(), reply }
}

#[tokio::test(start_paused = true)]
async fn what_a_request_does_not_accept_is_refused_with_advice_and_leaves_it_open() {
    let (h, id) = asking("settle 1-1").await;
    for (answer, fault) in [
        (rich(&["no"], None, Some("why")), ReplyFault::NoNote),
        (rich(&[], Some("text"), None), ReplyFault::NoText),
        (rich(&["yes", "no"], None, None), ReplyFault::NotSeveral),
    ] {
        let refused = h.service.answer(id, answer.clone()).await;
        assert!(
            matches!(&refused, Err(Refusal::ReplyNotAccepted(told)) if *told == fault),
            "{answer:?}: {refused:?}"
        );
        assert!(refused.unwrap_err().to_string().contains(';'), "it says what to do");
    }
    assert_eq!(h.runner.answers(), []);
    assert_eq!(h.service.answer(id, answer("1-1", None)).await.unwrap(), AnswerOutcome::Settled);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_another_note_than_the_one_that_settled_the_request_is_too_late() {
    let both_answered = Arc::new(Notify::new());
    let script = vec![
        Step::line("ask 1-1 yes no +"),
        Step::Gate(Arc::clone(&both_answered)),
        Step::line("settle 1-1 no this"),
        Step::line("close done"),
    ];
    let h = harness(ScriptedRunner::new([script]));
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    let (other, this) = (rich(&["no"], None, Some("other")), rich(&["no"], None, Some("this")));
    let mut answers =
        std::pin::pin!(futures_util::future::join(h.service.answer(id, other), h.service.answer(id, this)));
    while h.runner.answers().len() < 2 {
        assert!(futures_util::poll!(&mut answers).is_pending());
        tokio::task::yield_now().await;
    }
    both_answered.notify_one();
    let (other, this) = answers.await;
    assert!(matches!(other, Err(Refusal::RequestSettled(_))), "{other:?}");
    assert_eq!(this.unwrap(), AnswerOutcome::Settled);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_longer_than_the_limit_is_refused() {
    let mut limits = tiny_limits();
    limits.commands.answer_text_bytes = 4;
    let script = vec![Step::line("ask 1-1 yes no +"), Step::UntilAnswered, Step::line("settle 1-1 no 1234")];
    let runner = Arc::new(ScriptedRunner::new([script]));
    let h = harness_with(Arc::new(MemoryStore::new(1)), runner, limits);
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    for (answer, part) in [
        (rich(&["no"], None, Some("12345")), ReplyText::Note),
        (rich(&[], Some("12345"), None), ReplyText::Text),
    ] {
        let refused = h.service.answer(id, answer).await;
        assert!(
            matches!(refused, Err(Refusal::ReplyTooLong { part: long, limit: 4 }) if long == part),
            "{refused:?}"
        );
    }
    let fits = h.service.answer(id, rich(&["no"], None, Some("1234"))).await;
    assert_eq!(fits.unwrap(), AnswerOutcome::Settled);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_take_its_answer_leaves_it_open() {
    let script = vec![Step::line("ask 1-1 yes"), Step::UntilAnswered, Step::Hang];
    let h = harness(ScriptedRunner::new([script]));
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    let handed_on = h.service.answer(id, answer("1-1", Some("yes"))).await.unwrap();
    assert_eq!(handed_on, AnswerOutcome::HandedOn);
    h.service.cancel(id).await.unwrap();
    h.watch(id).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_a_run_that_is_not_found_again_in_time_is_not_told_to_come_too_late() {
    let (h, id) = asking("settle 1-1 yes").await;
    h.service.shutdown(crate::AtStop::Keep, std::time::Duration::from_mins(1)).await;
    // The new server has not adopted any run.
    let next = harness_with(Arc::clone(&h.store), Arc::new(ScriptedRunner::new([])), tiny_limits());
    let refused = next.service.answer(id, answer("1-1", Some("yes"))).await;
    assert!(matches!(refused, Err(Refusal::AnswerNotDelivered)), "{refused:?}");
}

/// In any order.
#[tokio::test(start_paused = true)]
async fn of_several_same_answers_at_the_same_moment_one_counts() {
    for seed in 1..=60 {
        let script = vec![
            Step::line("ask 1-1 yes no"),
            Step::UntilAnswered,
            Step::line("settle 1-1 yes"),
            Step::line("close done"),
        ];
        let (store, runner) = (Arc::new(MemoryStore::new(seed)), Arc::new(ScriptedRunner::new([script])));
        let h = harness_with(store, runner, tiny_limits());
        let id = h.launch("go").await;
        h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
        let mut asked = tokio::task::JoinSet::new();
        for option in ["yes"; 4] {
            let service = h.service.clone();
            asked.spawn(async move { (option, service.answer(id, answer("1-1", Some(option))).await) });
        }
        let told = asked.join_all().await;
        let (counted, late): (Vec<_>, Vec<_>) = told.into_iter().partition(|(_, told)| told.is_ok());
        assert!(matches!(counted[..], [("yes", Ok(AnswerOutcome::Settled))]), "seed {seed}: {counted:?}");
        assert!(late.iter().all(|(_, told)| matches!(told, Err(Refusal::RequestSettled(_)))), "{late:?}");
    }
}

/// The first client may disconnect and send its answer again.
#[tokio::test(start_paused = true)]
async fn an_answer_whose_client_has_gone_counts_for_the_one_who_waits() {
    let working = Arc::new(Notify::new());
    let script = vec![
        Step::line("ask 1-1 yes no"),
        Step::UntilAnswered,
        Step::Gate(Arc::clone(&working)),
        Step::line("settle 1-1 yes"),
        Step::line("close done"),
    ];
    let h = harness(ScriptedRunner::new([script]));
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    let (first, second) =
        (h.service.answer(id, answer("1-1", Some("yes"))), h.service.answer(id, answer("1-1", Some("yes"))));
    {
        let mut first = std::pin::pin!(first);
        while h.runner.answers().is_empty() {
            assert!(futures_util::poll!(&mut first).is_pending());
            tokio::task::yield_now().await;
        }
    }
    let settle = async {
        // Virtual time passes only when nothing else can happen: the second answer is where it waits.
        tokio::time::sleep(Duration::from_millis(1)).await;
        working.notify_one();
    };
    let (second, ()) = tokio::join!(second, settle);
    assert_eq!(second.unwrap(), AnswerOutcome::Settled);
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_count_if_the_disk_has_no_room_for_what_the_agent_made_of_it() {
    let script = vec![
        Step::line("ask 1-1 yes no"),
        Step::UntilAnswered,
        Step::line("say two"),
        Step::line("settle 1-1 yes"),
        Step::Hang,
    ];
    let mut limits = tiny_limits();
    limits.commands.answer_timeout = Duration::from_hours(1);
    limits.saving.retry_pause_max = Duration::from_secs(1);
    let h = harness_with(Arc::new(MemoryStore::new(7)), Arc::new(ScriptedRunner::new([script])), limits);
    let id = h.launch("go").await;
    h.wait_for(id, |event| is(&event.body, Notice::PERMISSION_REQUEST)).await;
    for _ in 0..120 {
        h.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Full));
    }
    let outcome = h.service.answer(id, answer("1-1", Some("yes"))).await;
    let journal = words(&h.watch(id).await);
    assert!(!journal.contains(&"notice permission_resolved".to_owned()), "{journal:?}");
    assert!(outcome.is_err(), "{outcome:?}, and the journal has {journal:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_agent_cannot_receive_can_be_given_again() {
    let (h, id) = asking("settle 1-1 yes").await;
    h.runner.fail_messages(1);
    let refused = h.service.answer(id, answer("1-1", Some("yes"))).await;
    assert!(matches!(refused, Err(Refusal::AnswerNotDelivered)), "{refused:?}");
    let again = h.service.answer(id, answer("1-1", Some("yes"))).await;
    assert_eq!(again.unwrap(), AnswerOutcome::Settled);
}
