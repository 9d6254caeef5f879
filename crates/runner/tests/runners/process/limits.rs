//! Limits for all processes of a run together.

use tokenrail_ports::ExitStatus;

use super::support::{Bench, rest, until};

const MIB: u64 = 1 << 20;
/// Fills a shell variable with 32 MiB.
const HOARD: &str = "hoard=$(head -c 33554432 /dev/zero | tr '\\0' x)";

#[tokio::test]
async fn a_run_with_too_many_processes_is_ended_with_all_of_them() {
    let mut bench = Bench::new(
        "trap '' TERM; echo ready
        i=0; while [ $i -lt 40 ]; do setsid sleep 1000 & i=$((i+1)); done; wait",
    );
    (bench.config.limits.agent_processes, bench.config.limits.look_ms) = (30, 10);
    let (_, end) = rest(&mut bench.start().await).await;
    let error = end.error.expect("it is told");
    assert_eq!((end.status, error.code.as_deref()), (ExitStatus::Signal(9), Some("processes_capped")));
    assert!(30 <= end.reaped, "all that it has started: {}", end.reaped);
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_supervisor_that_is_told_to_look_does_so_at_once() {
    let mut bench = Bench::new("sleep 1000 & sleep 1000 & sleep 1000 & echo ready; wait");
    // On its own, the supervisor would check after an hour.
    (bench.config.limits.agent_processes, bench.config.limits.look_ms) = (2, 3_600_000);
    let mut run = bench.start_and_hear("ready").await;
    std::fs::write(bench.run_folder().join("control"), "look\n").unwrap();
    let (_, end) = rest(&mut run).await;
    assert_eq!(end.error.and_then(|error| error.code).as_deref(), Some("processes_capped"));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_supervisor_that_is_told_to_look_right_after_a_count_counts_again() {
    // The agent tells its own supervisor the second time. The first count may be late, and end the agent before that.
    let mut bench = Bench::new(
        "set -- ../runs/*/control; echo ready; until [ -e go ]; do :; done
        sleep 1000 & sleep 1000 & sleep 1000 & echo look > $1; wait",
    );
    (bench.config.limits.agent_processes, bench.config.limits.look_ms) = (2, 3_600_000);
    let mut run = bench.start_and_hear("ready").await;
    std::fs::write(bench.run_folder().join("control"), "look\n").unwrap();
    std::fs::write(bench.work("go"), "").unwrap();
    let (_, end) = rest(&mut run).await;
    assert_eq!(end.error.and_then(|error| error.code).as_deref(), Some("processes_capped"));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn what_outlives_the_agent_and_grows_is_ended_without_a_grace() {
    let mut bench = Bench::new(
        "(trap '' TERM; touch deaf; while kill -0 $$; do sleep 0.01; done 2>/dev/null
        i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; wait) &
        until [ -e deaf ]; do sleep 0.01; done; echo bye",
    );
    (bench.config.limits.agent_processes, bench.config.limits.look_ms) = (30, 10);
    // These grace periods are long, because exceeding the limit must skip them.
    (bench.config.limits.leftover_grace_ms, bench.config.limits.kill_grace_ms) = (600_000, 1_200_000);
    let (_, end) = rest(&mut bench.start().await).await;
    let code = end.error.and_then(|error| error.code);
    assert_eq!((end.status, code.as_deref()), (ExitStatus::Code(0), Some("processes_capped")));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn whoever_takes_the_run_over_is_told_which_limit_has_ended_it() {
    let mut bench = Bench::new("sleep 1000 & sleep 1000 & wait");
    (bench.config.limits.agent_processes, bench.config.limits.look_ms) = (2, 10);
    drop(bench.start().await);
    until("it has ended", || bench.run_folder().join("exit.json").exists()).await;
    let (_, end) = rest(&mut bench.adopt().await.expect("its folder is there")).await;
    assert_eq!(end.error.and_then(|error| error.code).as_deref(), Some("processes_capped"));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_with_too_much_memory_is_ended() {
    let mut bench = Bench::new(&format!("{HOARD}; echo ready; sleep 1000"));
    (bench.config.limits.agent_memory_bytes, bench.config.limits.look_ms) = (16 * MIB, 10);
    let (_, end) = rest(&mut bench.start().await).await;
    let error = end.error.expect("it is told");
    assert_eq!((end.status, error.code.as_deref()), (ExitStatus::Signal(9), Some("memory_capped")));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let mut bench = Bench::new(&format!(
        "{HOARD}; i=0; while [ $i -lt 8 ]; do (sleep 0.5; :) & i=$((i+1)); done; echo ready; wait"
    ));
    (bench.config.limits.agent_memory_bytes, bench.config.limits.look_ms) = (160 * MIB, 10);
    let mut run = bench.start_and_hear("ready").await;
    let (_, end) = rest(&mut run).await;
    assert_eq!((end.status, end.error), (ExitStatus::Code(0), None));
}

#[tokio::test]
async fn a_limit_of_0_is_none() {
    let mut bench = Bench::new("sleep 0.2 & sleep 0.2 & wait");
    let limits = &mut bench.config.limits;
    (limits.agent_processes, limits.agent_memory_bytes, limits.look_ms) = (0, 0, 1);
    let (_, end) = rest(&mut bench.start().await).await;
    assert_eq!((end.status, end.error), (ExitStatus::Code(0), None));
}
