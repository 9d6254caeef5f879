//! Runs that no server will read any more.

use std::collections::BTreeSet;
use std::fs;

use tokenrail_domain::{AgentId, Timestamp, TurnNumber};
use tokenrail_ports::{IRuns as _, RunOutput};

use super::support::{Bench, first, next, rest};

const HANGS: &str = "(setsid sleep 1000 &) ; echo one; sleep 1000";

#[tokio::test]
async fn a_run_that_nobody_takes_up_is_ended_with_all_that_it_has_started() {
    let bench = Bench::new(HANGS);
    let run = bench.start_and_hear("one").await;
    drop(run);
    fs::create_dir(bench.config.runs.join("notes-1")).unwrap();
    let runs = bench.runs();
    let keep = BTreeSet::from([(bench.order.agent, bench.order.run)]);
    assert_eq!(runs.sweep(&keep).await.unwrap(), 0);
    assert!(!bench.processes().is_empty(), "it is to be taken up");

    assert_eq!(runs.sweep(&BTreeSet::from([(bench.order.agent, TurnNumber(2))])).await.unwrap(), 1);
    assert!(!bench.run_folder().exists());
    bench.assert_nothing_left().await;
    assert_eq!(runs.sweep(&BTreeSet::new()).await.unwrap(), 0);
    assert!(bench.config.runs.join("notes-1").exists(), "what is no run stays");
}

#[tokio::test]
async fn a_spool_that_was_kept_stays_until_its_agent_is_forgotten() {
    let mut bench = Bench::new("head -c 100000 /dev/zero | tr '\\0' 'x'; echo");
    bench.config.limits.line_bytes = 1000;
    let mut run = bench.start().await;
    rest(&mut run).await;
    run.leave().await;
    let kept = bench.run_folder().with_extension("kept");
    let runs = bench.runs();
    runs.sweep(&BTreeSet::new()).await.unwrap();
    runs.forget(AgentId::new(Timestamp(1), [1; 10])).await.unwrap();
    assert!(kept.join("stdout").exists());
    runs.forget(bench.order.agent).await.unwrap();
    assert!(!kept.exists());
}

#[tokio::test]
async fn an_agent_that_is_forgotten_while_it_runs_is_ended() {
    let bench = Bench::new(HANGS);
    let mut run = bench.start_and_hear("one").await;
    bench.runs().forget(bench.order.agent).await.unwrap();
    bench.assert_nothing_left().await;
    assert!(!bench.run_folder().exists());
    rest(&mut run).await;
}

#[tokio::test]
async fn output_without_a_line_end_is_progress_all_the_same() {
    let bench = Bench::new("printf half; until [ -e go ]; do sleep 0.01; done; echo line");
    let mut run = bench.start().await;
    let RunOutput::Progress { offset } = next(&mut run).await else { panic!("no line has ended") };
    assert!((1..=4).contains(&offset), "{offset}");
    fs::write(bench.work("go"), "").unwrap();
    assert_eq!(first(&mut run).await, ["halfline"]);
}
