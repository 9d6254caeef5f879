//! What the server promised before it died is kept after the next start.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, AgentStatus, EventBody, Timestamp, TurnNumber};
use tokenrail_ports::testing::{ScriptedRunner, Step};
use tokenrail_ports::{Deletion, ExitStatus, IAgentRepository, RunEnd};

use super::harness::{Harness, hanging, harness, harness_with, tiny_limits, words};

fn lines(lines: &[&str]) -> Step {
    Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect())
}

/// Restarts the server. `adopted` is what its runner finds of the run.
async fn next_life(h: &Harness, adopted: Option<Vec<Step>>) -> Harness {
    h.service.shutdown(crate::AtStop::Keep, Duration::from_mins(1)).await;
    h.store.take_appends(None);
    let runner = ScriptedRunner::new([]);
    runner.adopt_next(adopted);
    let next = harness_with(Arc::clone(&h.store), Arc::new(runner), tiny_limits());
    next.service.recover().await.unwrap();
    next
}

/// An agent in the middle of a message that cannot be told to stop.
async fn deaf() -> (Harness, AgentId) {
    let h = harness(ScriptedRunner::new([vec![lines(&["say half"]), Step::Hang]]));
    h.runner.fail_messages(u32::MAX);
    let id = h.launch("hi").await;
    h.wait_for(id, |event| event.body.is_delta()).await;
    (h, id)
}

fn adoptions() -> [Option<Vec<Step>>; 3] {
    let said = || lines(&["say half"]);
    let ended = RunEnd { status: ExitStatus::Signal(15), ..RunEnd::default() };
    [Some(vec![said(), Step::Hang]), Some(vec![said(), Step::End(ended)]), None]
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_finished_by_the_next_life_whatever_is_left_of_the_agent() {
    for adopted in adoptions() {
        let (h, id) = deaf().await;
        h.service.send(id, "waits".into(), None).await.unwrap();
        h.service.cancel(id).await.unwrap();
        let next = next_life(&h, adopted.clone()).await;
        next.service.cancel(id).await.unwrap();
        let mut events = words(&next.watch(id).await);
        events.retain(|word| word != "notice reaped");
        let expected = [
            "user hi",
            "+half",
            "message \"half\" from 2 cancelled",
            "result cancelled -",
            "user waits",
            "result cancelled -",
        ];
        assert_eq!(events, expected, "{adopted:?}");
        assert_eq!(next.service.get(id).await.unwrap().status, AgentStatus::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_has_run_out_is_the_reason_in_the_next_life_too() {
    for adopted in adoptions() {
        let (h, id) = deaf().await;
        tokio::time::sleep(Duration::from_secs(61)).await;
        h.service.cancel(id).await.unwrap();
        let next = next_life(&h, adopted.clone()).await;
        let events = words(&next.watch(id).await);
        assert_eq!(events.last().unwrap(), "result failed stream_timeout", "{adopted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_that_was_saved_first_is_that_of_the_verdict() {
    let h = harness(ScriptedRunner::new([vec![lines(&["say half"]), Step::Hang]]));
    let id = h.launch("hi").await;
    h.wait_for(id, |event| event.body.is_delta()).await;
    // The cancel is saved, but the run has not been told yet when the timer expires.
    h.store.cancel(id, Timestamp(5)).await.unwrap();
    assert_eq!(words(&h.watch(id).await).last().unwrap(), "result cancelled -");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_adopted_is_ended_with_its_turn() {
    let (h, id) = deaf().await;
    h.service.shutdown(crate::AtStop::Keep, Duration::from_mins(1)).await;
    h.store.take_appends(None);
    let runner = ScriptedRunner::new([]);
    runner.fail_adoptions(1);
    let next = harness_with(Arc::clone(&h.store), Arc::new(runner), tiny_limits());
    next.service.recover().await.unwrap();
    assert_eq!(words(&next.watch(id).await).last().unwrap(), "result failed spawn_failed");
    assert_eq!(next.runner.ended(), [(id, TurnNumber::FIRST)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_printed_too_much_is_cut_at_the_same_line_in_the_next_life() {
    let limits = || {
        let mut limits = tiny_limits();
        limits.run.spool_bytes = 12;
        limits
    };
    let spool = || vec![lines(&["say a", "say b", "say c", "say d", "end"]), Step::Hang];
    let expected = ["+a", "+b", "+c", "error output_capped"];
    for appends in [1, u32::MAX] {
        let h = harness(ScriptedRunner::new([]));
        let (store, runner) = (Arc::clone(&h.store), Arc::new(ScriptedRunner::new([spool()])));
        let h = harness_with(store, Arc::clone(&runner), limits());
        runner.fail_messages(u32::MAX);
        h.store.take_appends(Some(appends));
        let id = h.launch("hi").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        h.service.shutdown(crate::AtStop::Keep, Duration::from_mins(1)).await;
        h.store.take_appends(None);
        let runner = ScriptedRunner::new([]);
        runner.adopt_next(Some(spool()));
        let next = harness_with(Arc::clone(&h.store), Arc::new(runner), limits());
        next.service.recover().await.unwrap();
        assert_eq!(words(&next.watch(id).await)[1..5], expected, "with {appends} appends before");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_taken_up_can_be_cancelled() {
    let (h, id) = deaf().await;
    let next = next_life(&h, Some(vec![lines(&["say half"]), Step::Hang])).await;
    // Immediately after the start, before the task has adopted anything.
    next.service.cancel(id).await.unwrap();
    next.service.cancel(id).await.unwrap();
    assert_eq!(words(&next.watch(id).await).last().unwrap(), "result cancelled -");
    assert_eq!(next.runner.cancels(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_finished_by_the_next_life() {
    let (h, id) = deaf().await;
    h.service.send(id, "waits".into(), None).await.unwrap();
    h.store.delete(id, Timestamp(5), Deletion::KeepHistory).await.unwrap();
    let next = next_life(&h, Some(vec![lines(&["say half"]), Step::Hang])).await;
    let events = words(&next.watch(id).await);
    assert_eq!(events[4..], ["result cancelled -", "user waits", "result cancelled -"]);
    assert_eq!(next.service.get(id).await.unwrap().deleted_at, Some(Timestamp(5)));
    assert_eq!(next.runner.forgotten(), [], "what was not purged stays");
}

#[tokio::test(start_paused = true)]
async fn a_purge_is_finished_by_the_next_life() {
    let (h, id) = deaf().await;
    h.store.delete(id, Timestamp(5), Deletion::Purge).await.unwrap();
    let next = next_life(&h, Some(vec![lines(&["say half"]), Step::Hang])).await;
    while next.service.get(id).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!((next.runner.cancels(), next.runner.forgotten()), (1, vec![id]));
}

#[tokio::test(start_paused = true)]
async fn a_purge_removes_the_folder_that_was_made_and_what_runs_have_left() {
    let (h, id) = hanging("hi").await;
    assert_eq!(h.workspace.own_folders(), [id]);
    h.service.delete(id, Deletion::KeepHistory).await.unwrap();
    assert_eq!((h.workspace.own_folders(), h.runner.forgotten()), (vec![id], vec![]));
    h.service.delete(id, Deletion::Purge).await.unwrap();
    assert_eq!((h.workspace.own_folders(), h.runner.forgotten()), (vec![], vec![id]));
    assert!(matches!(h.service.delete(id, Deletion::Purge).await, Err(crate::Refusal::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn wherever_the_server_dies_the_turns_that_an_agent_begins_by_itself_are_all_there() {
    let spool =
        ["say a", "end", "close a", "next", "say b", "end", "close b", "twice c", "noise", "bare", "close d"];
    let script = || spool.iter().map(|line| Step::line(*line)).collect::<Vec<_>>();
    let calm = harness(ScriptedRunner::new([script()]));
    let id = calm.launch("hi").await;
    let expected = calm.watch(id).await;
    assert_eq!(expected.iter().filter(|event| matches!(event.body, EventBody::TurnResult(_))).count(), 5);
    let mut all_taken = false;
    for appends in 1.. {
        let h = harness(ScriptedRunner::new([script()]));
        h.store.take_appends(Some(appends));
        let id = h.launch("hi").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        all_taken |= !h.service.get(id).await.unwrap().status.is_active();
        let next = next_life(&h, Some(script())).await;
        let seen = next.watch(id).await;
        assert_eq!(words(&seen), words(&expected), "after {appends} appends");
        let turns =
            |events: &[tokenrail_domain::Event]| events.iter().map(|event| event.turn).collect::<Vec<_>>();
        assert_eq!(turns(&seen), turns(&expected), "after {appends} appends");
        if all_taken {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_runs_that_will_be_taken_up_outlive_the_start() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![lines(&["close it"])]]));
    let runs = h.launch("runs").await;
    h.wait_for(runs, |_| true).await;
    let ended = h.launch("ends").await;
    h.watch(ended).await;
    h.service.send(runs, "waits".into(), None).await.unwrap();
    let next = next_life(&h, None).await;
    let kept: Vec<_> = next.runner.swept().into_iter().flatten().collect();
    assert_eq!(kept, [(runs, TurnNumber::FIRST)]);
}

/// They are not forgotten, and neither is that the rest must be removed.
#[tokio::test(start_paused = true)]
async fn a_purge_whose_files_cannot_be_removed_is_tried_again() {
    let h = harness(ScriptedRunner::new([vec![Step::line("close a")]]));
    let id = h.launch("hi").await;
    h.watch(id).await;
    h.workspace.refuse_removals(6);
    h.service.delete(id, Deletion::Purge).await.unwrap();
    assert_eq!(h.workspace.own_folders(), [id], "its removal fails");
    assert_eq!(h.store.to_purge().await.unwrap(), [id], "the next start finds it too");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(h.workspace.own_folders(), []);
    assert!(h.store.saved_agent(id).is_none());
}
