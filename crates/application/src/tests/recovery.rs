use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::AgentStatus;
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};

use super::harness::{Harness, hanging, harness, harness_with, tiny_limits, words};

fn lines(lines: &[&str]) -> Step {
    Step::Lines(lines.iter().map(|line| (*line).to_owned()).collect())
}

/// The server after a restart, on the same store.
fn next_life(h: &Harness, runner: ScriptedRunner) -> Harness {
    harness_with(Arc::clone(&h.store), Arc::new(runner), tiny_limits())
}

const SPOOL: [&str; 6] = ["session s1", "say Hel", "say lo", "noise", "end", "close Hello"];

#[tokio::test(start_paused = true)]
async fn a_new_life_goes_on_where_the_journal_ends_whatever_that_is() {
    for read_before in 0..SPOOL.len() {
        let first = vec![lines(&SPOOL[..read_before]), Step::Hang];
        let first = if read_before == 0 { vec![Step::Hang] } else { first };
        let h = harness(ScriptedRunner::new([first]));
        let id = h.launch("hi").await;
        h.wait_for(id, |_| true).await;
        // Paused time only advances if all tasks wait, so by then everything is saved.
        tokio::time::sleep(Duration::from_millis(1)).await;
        h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await;

        let runner = ScriptedRunner::new([]);
        runner.adopt_next(Some(vec![lines(&SPOOL)]));
        let second = next_life(&h, runner);
        assert_eq!(second.service.recover().await.unwrap(), 1);
        let events = second.watch(id).await;
        let expected = ["user hi", "+Hel", "+lo", "message \"Hello\" from 2 complete", "result completed -"];
        assert_eq!(words(&events), expected, "after {read_before} lines");
        let raw: Vec<_> = events.iter().filter_map(|event| event.raw.as_deref()).collect();
        assert_eq!(
            String::from_utf8(raw.join(&b'\n')).unwrap(),
            SPOOL.join("\n"),
            "no raw line lost or doubled"
        );
        assert_eq!(second.service.get(id).await.unwrap().status, AgentStatus::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_left_the_turn_is_interrupted_and_numbers_go_on() {
    let h = harness(ScriptedRunner::new([vec![lines(&["say half"]), Step::Hang]]));
    let id = h.launch("hi").await;
    h.wait_for(id, |event| event.body.is_delta()).await;
    h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await;

    let second = next_life(&h, ScriptedRunner::new([vec![lines(&["say new", "end", "close new"])]]));
    second.service.recover().await.unwrap();
    let interrupted =
        ["user hi", "+half", "message \"half\" from 2 interrupted", "result interrupted interrupted"];
    assert_eq!(words(&second.watch(id).await), interrupted);
    second.service.send(id, "again".into(), None).await.unwrap();
    let events = second.watch(id).await;
    assert_eq!(
        words(&events)[4..],
        ["user again", "+new", "message \"new\" from 6 complete", "result completed -"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waited_runs_in_the_next_life() {
    let (h, id) = hanging("one").await;
    h.service.send(id, "two".into(), None).await.unwrap();
    h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await;

    let runner = ScriptedRunner::new([vec![lines(&["close 2"])]]);
    runner.adopt_next(Some(vec![lines(&["close 1"])]));
    let second = next_life(&h, runner);
    second.service.recover().await.unwrap();
    let expected = ["user one", "result completed -", "user two", "result completed -"];
    assert_eq!(words(&second.watch(id).await), expected);
}

#[tokio::test(start_paused = true)]
async fn a_stop_at_any_moment_of_a_launch_interrupts_no_turn() {
    for seed in 1..=200 {
        let script = vec![lines(&["say Hello", "end", "close Hello"])];
        let (store, runner) = (Arc::new(MemoryStore::new(seed)), Arc::new(ScriptedRunner::new([script])));
        let h = harness_with(Arc::clone(&store), Arc::clone(&runner), tiny_limits());
        let id = h.launch("hi").await;
        for _ in 0..seed % 50 {
            tokio::task::yield_now().await;
        }
        assert!(h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await, "seed {seed}");

        let second = harness_with(store, runner, tiny_limits());
        second.service.recover().await.unwrap();
        let expected = ["user hi", "+Hello", "message \"Hello\" from 2 complete", "result completed -"];
        assert_eq!(words(&second.watch(id).await), expected, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_agent_began_by_itself_is_taken_up_too() {
    let spool = ["say a", "end", "close a", "next", "say b"];
    let h = harness(ScriptedRunner::new([vec![lines(&spool), Step::Hang]]));
    let id = h.launch("hi").await;
    h.wait_for(id, |event| event.turn.0 == 2 && event.body.is_delta()).await;
    h.service.shutdown(crate::AtStop::Keep, Duration::from_secs(1)).await;

    let runner = Arc::new(ScriptedRunner::new([]));
    runner.adopt_next(Some(vec![lines(&spool), lines(&["end", "close b"])]));
    let second = harness_with(Arc::clone(&h.store), Arc::clone(&runner), tiny_limits());
    second.service.recover().await.unwrap();
    let events = words(&second.watch(id).await);
    assert_eq!(events[4..], ["notice init", "+b", "message \"b\" from 6 complete", "result completed -"]);
    assert_eq!(runner.orders()[0].run.0, 1, "its process is that of the turn before it");
}
