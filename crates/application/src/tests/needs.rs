//! What agents need from a user: the permission requests that are open and saved.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokenrail_domain::{AgentId, AgentStatus, EventBody, Notice, PermissionReply, Timestamp};
use tokenrail_ports::testing::{AppendFault, MemoryStore, ScriptedRunner, Step};
use tokenrail_ports::{PermissionAnswer, StoreError};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::harness::{Harness, harness, harness_with, tiny_limits};
use crate::{LifecycleEvent, LifecycleReader, Needs, RequestPlace};

/// The time of the harness.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn needs(open_questions: usize) -> Needs {
    Needs { open_questions, waiting_since: (0 < open_questions).then_some(NOW) }
}

/// The status and the number of open requests in each update that was told so far.
fn told(reader: &mut LifecycleReader) -> Vec<(AgentStatus, usize)> {
    let mut told = Vec::new();
    while let Some(Some(Ok(item))) = reader.next().now_or_never() {
        if let LifecycleEvent::Updated { status, needs, .. } = &item.event {
            told.push((*status, needs.open_questions));
        }
    }
    told
}

/// How long anything may take, in virtual time.
const PATIENCE: Duration = Duration::from_mins(1);

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes to that");
}

async fn until_open(h: &Harness, id: AgentId, open: usize) {
    until(|| h.service.needs(id).open_questions == open).await;
}

fn asks(event: &EventBody) -> bool {
    matches!(event, EventBody::Notice(notice) if notice.subtype == Notice::PERMISSION_REQUEST)
}

fn lines(lines: &[&str]) -> Step {
    Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect())
}

/// The server after a restart, on the same store.
async fn next_life(h: &Harness, adopted: Vec<Step>) -> Harness {
    h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await;
    let runner = ScriptedRunner::new([]);
    runner.adopt_next(Some(adopted));
    harness_with(Arc::clone(&h.store), Arc::new(runner), tiny_limits())
}

use AgentStatus::{Cancelled, Completed, Failed, Running};

#[tokio::test(start_paused = true)]
async fn each_change_of_the_open_requests_is_told() {
    let script = vec![
        lines(&["ask 1-1 yes no"]),
        Step::UntilAnswered,
        lines(&["settle 1-1 yes"]),
        lines(&["ask 1-2 yes no"]),
        Step::UntilAnswered,
        lines(&["settle 1-2 no", "close done"]),
    ];
    let h = harness(ScriptedRunner::new([script]));
    let mut reader = h.service.lifecycle_events();
    let id = h.launch("go").await;
    for question in ["1-1", "1-2"] {
        until(|| h.service.list_open_requests(None, 1).items.iter().any(|open| open.request_id == question))
            .await;
        assert_eq!(h.service.needs(id), needs(1));
        let answer = PermissionAnswer { request_id: question.to_owned(), reply: PermissionReply::default() };
        let _ = h.service.answer(id, answer).await;
    }
    h.watch(id).await;
    assert_eq!(h.service.needs(id), needs(0));
    let told = told(&mut reader);
    let expected = [(Running, 0), (Running, 1), (Running, 0), (Running, 1), (Running, 0), (Completed, 0)];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_not_told_before_it_is_saved() {
    for seed in 1..=40 {
        let gate = Arc::new(Notify::new());
        let script = vec![Step::Gate(Arc::clone(&gate)), lines(&["ask 1-1 yes no"]), Step::Hang];
        let (store, runner) = (Arc::new(MemoryStore::new(seed)), Arc::new(ScriptedRunner::new([script])));
        let h = harness_with(store, runner, tiny_limits());
        let id = h.launch("go").await;
        h.wait_for(id, |_| true).await;
        for _ in 0..5 {
            h.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Busy));
        }
        gate.notify_one();
        until(|| h.service.needs(id) != needs(0)).await;
        assert!(h.store.saved(id).iter().any(|event| asks(&event.body)), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_adopted_agent_says_again_what_it_needs() {
    let spool = ["say a", "end", "ask 1-1 yes no", "ask 1-2 yes no", "settle 1-1 no"];
    let h = harness(ScriptedRunner::new([vec![lines(&spool), Step::Hang]]));
    let id = h.launch("go").await;
    until_open(&h, id, 1).await;

    let rest = lines(&["settle 1-2 yes", "close done"]);
    let second = next_life(&h, vec![lines(&spool), Step::UntilAnswered, rest]).await;
    let mut reader = second.service.lifecycle_events();
    second.service.recover().await.unwrap();
    until_open(&second, id, 1).await;
    assert_eq!(second.service.needs(id), needs(1));
    assert_eq!(
        told(&mut reader),
        [(Running, 1)],
        "once, and what was settled before is not open for a moment"
    );
    let answer =
        PermissionAnswer { request_id: "1-2".to_owned(), reply: PermissionReply::of(Some("yes".to_owned())) };
    second.service.answer(id, answer).await.unwrap();
    second.watch(id).await;
    assert_eq!(told(&mut reader), [(Running, 0), (Completed, 0)]);
}

/// The agent asked and was answered while no server ran, or before the server had read that.
#[tokio::test(start_paused = true)]
async fn what_an_adopted_agent_has_settled_meanwhile_is_not_needed() {
    let asked = ["ask 1-1 yes no"];
    let h = harness(ScriptedRunner::new([vec![lines(&asked), Step::Hang]]));
    let id = h.launch("go").await;
    until_open(&h, id, 1).await;
    let spool = ["ask 1-1 yes no", "settle 1-1 no", "ask 1-2 yes no"];
    let second = next_life(&h, vec![lines(&spool), Step::Hang]).await;
    second.service.recover().await.unwrap();
    second.wait_for(id, |event| event.sequence.0 == 4).await;
    until_open(&second, id, 1).await;
    let open = second.service.list_open_requests(None, 10).items;
    assert_eq!(open.iter().map(|open| open.request_id.as_str()).collect::<Vec<_>>(), ["1-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_leaves_nothing_open() {
    let hangs = vec![lines(&["ask 1-1 yes no"]), Step::Hang];
    let ends = vec![lines(&["ask 1-1 yes no"]), Step::UntilAnswered, lines(&["close done"])];
    let panics = vec![lines(&["ask 1-1 yes no"]), Step::UntilAnswered, Step::Panic];
    for (script, last) in [(hangs, Cancelled), (ends, Completed), (panics, Failed)] {
        let h = harness(ScriptedRunner::new([script]));
        let mut reader = h.service.lifecycle_events();
        let id = h.launch("go").await;
        until_open(&h, id, 1).await;
        if last == Cancelled {
            h.service.cancel(id).await.unwrap();
        } else {
            let _ = h
                .service
                .answer(
                    id,
                    PermissionAnswer { request_id: "1-1".to_owned(), reply: PermissionReply::default() },
                )
                .await;
        }
        h.watch(id).await;
        assert_eq!(h.service.needs(id), needs(0), "{last:?}");
        assert_eq!(told(&mut reader).last(), Some(&(last, 0)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_all_agents_are_listed_page_by_page() {
    let script = vec![lines(&["ask 1-1 yes no", "ask 1-2 yes no"]), Step::Hang];
    let h = harness(ScriptedRunner::new([script.clone(), script]));
    let (first, second) = (h.launch("one").await, h.launch("two").await);
    until_open(&h, first, 2).await;
    until_open(&h, second, 2).await;
    let (mut place, mut seen): (Option<RequestPlace>, Vec<_>) = (None, Vec::new());
    for left in [true, false] {
        let page = h.service.list_open_requests(place.as_ref(), if left { 3 } else { 100 });
        assert_eq!(page.more, left);
        place = page.items.last().map(|open| open.place());
        seen.extend(page.items.iter().map(|open| (open.agent, open.request_id.clone())));
    }
    let all = [(first, "1-1"), (first, "1-2"), (second, "1-1"), (second, "1-2")];
    assert_eq!(seen, all.map(|(agent, request)| (agent, request.to_owned())));
}
