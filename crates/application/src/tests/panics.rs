use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::AgentStatus;
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};
use tokio::sync::Notify;

use super::harness::{harness, harness_with, tiny_limits, words};
use crate::RunLimits;
use crate::agent_task::{Acquired, AgentTask, Cleaned};

fn lines(lines: &[&str]) -> Step {
    Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_its_turn_and_its_agent_and_the_next_turn_runs() {
    let gate = Arc::new(Notify::new());
    let first = vec![lines(&["say a"]), Step::Gate(Arc::clone(&gate)), Step::Panic];
    let h = harness(ScriptedRunner::new([first, vec![lines(&["close two"])]]));
    h.runner.adopt_next(Some(vec![lines(&["say a"]), Step::Hang]));
    let id = h.launch("one").await;
    h.wait_for(id, |event| event.body.is_delta()).await;
    h.service.send(id, "two".into(), None).await.unwrap();
    gate.notify_one();
    let first = ["user one", "+a", "error internal", "message \"a\" from 2 failed", "result failed internal"];
    let second = ["user two", "result completed -"];
    assert_eq!(words(&h.watch(id).await), [&first[..], &second].concat());
    assert_eq!(h.runner.cancels(), 1, "what was left of the agent is stopped");
    assert_eq!(h.service.stats().invariant_violations, 1);
    assert_eq!(h.service.stats().active_agents, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_always_panics_is_left_alone() {
    let h = harness(ScriptedRunner::new([vec![Step::Panic], vec![lines(&["close two"])]]));
    h.runner.adopt_next(Some(vec![Step::Panic]));
    let id = h.launch("one").await;
    assert_eq!(words(&h.watch(id).await), ["user one", "error internal", "result failed internal"]);
    assert_eq!(h.service.get(id).await.unwrap().status, AgentStatus::Failed);
    h.service.send(id, "two".into(), None).await.unwrap();
    assert_eq!(words(&h.watch(id).await)[3..], ["user two", "result completed -"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_while_a_panic_is_cleaned_up_is_not_forgotten() {
    let h = harness(ScriptedRunner::new([vec![lines(&["close one"])]]));
    let id = h.launch("one").await;
    h.watch(id).await;
    let core = &h.service.core;
    let tail = core.tails.of(id);
    let handle = core.poke_or_register(id, &tail).expect("the agent has no task");
    let task = AgentTask {
        core: Arc::clone(core),
        agent: id,
        handle: Arc::clone(&handle),
        tail,
        cancel_on_disconnect: false,
        replay: None,
        is_here: true,
        acquired: Acquired::AsUsual,
    };
    let (cleaned, ()) = tokio::join!(task.clean_up(), async { handle.poke() });
    assert!(matches!(cleaned, Cleaned::Continues), "the message came after the store was asked");
    assert!(matches!(task.clean_up().await, Cleaned::Retired));
    assert!(core.task_handle(id).is_none(), "the next message gets a task of its own");
}

#[tokio::test(start_paused = true)]
async fn limits_that_no_clock_can_tell_are_none() {
    let most = Duration::MAX;
    let mut limits = tiny_limits();
    limits.run = RunLimits {
        turn_timeout: most,
        idle_timeout: most,
        stream_timeout: most,
        result_grace: most,
        disconnect_grace: most,
        ..limits.run
    };
    let runner = ScriptedRunner::new([vec![lines(&["say a", "end", "close a"])]]);
    let h = harness_with(Arc::new(MemoryStore::new(7)), Arc::new(runner), limits);
    let id = h.launch("hi").await;
    let expected = ["user hi", "+a", "message \"a\" from 2 complete", "result completed -"];
    assert_eq!(words(&h.watch(id).await), expected);
}
