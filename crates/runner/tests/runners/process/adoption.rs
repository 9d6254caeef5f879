//! After a restart, the server continues where it stopped.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use tokenrail_ports::{Adoption, ExitStatus, IAgentRunner};

use super::support::{Bench, first, rest, texts};

const GATED: &str = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 7";

/// Adopts the run, of which only the line that it printed is left.
async fn assert_lost_after_one(bench: &Bench) {
    let (lines, end) = rest(&mut bench.adopt().await.unwrap()).await;
    assert_eq!(texts(&lines), ["one"]);
    assert_eq!(end.status, ExitStatus::Lost);
}

#[tokio::test]
async fn a_running_agent_is_taken_over_from_its_first_byte() {
    let bench = Bench::new(GATED);
    let run = bench.start_and_hear("one").await;
    drop(run);
    let mut adopted = bench.adopt().await.unwrap();
    assert_eq!(first(&mut adopted).await, ["one"]);
    fs::write(bench.work("go"), "").unwrap();
    let (lines, end) = rest(&mut adopted).await;
    assert_eq!(texts(&lines), ["two"]);
    assert_eq!(end.status, ExitStatus::Code(7));
    adopted.leave().await;
    assert!(bench.adopt().await.is_none());
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_running_agent_that_was_taken_over_can_be_cancelled() {
    let bench = Bench::new(GATED);
    drop(bench.start().await);
    let mut adopted = bench.adopt().await.unwrap();
    assert_eq!(first(&mut adopted).await, ["one"]);
    adopted.cancel().await.unwrap();
    assert_eq!(rest(&mut adopted).await.1.status, ExitStatus::Signal(15));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn an_agent_that_has_ended_meanwhile_is_read_to_its_end() {
    let bench = Bench::new("echo one; echo two; exit 7");
    drop(bench.start().await);
    bench.assert_nothing_left().await;
    let (lines, end) = rest(&mut bench.adopt().await.unwrap()).await;
    assert_eq!(texts(&lines), ["one", "two"], "{end:?}");
    assert_eq!(end.status, ExitStatus::Code(7));
}

#[tokio::test]
async fn an_agent_whose_supervisor_is_gone_is_lost_with_what_it_has_printed() {
    let bench = Bench::new(GATED);
    let run = bench.start_and_hear("one").await;
    drop(run);
    kill_process(Pid::from_raw(bench.supervisor_pid()).unwrap(), Signal::KILL).unwrap();
    bench.assert_nothing_left().await;
    assert_lost_after_one(&bench).await;
}

#[tokio::test]
async fn another_process_with_the_number_of_the_supervisor_is_not_taken_for_it() {
    let bench = Bench::new("echo one");
    drop(bench.start().await);
    bench.assert_nothing_left().await;
    fs::remove_file(bench.run_folder().join("exit.json")).unwrap();
    let record = bench.run_folder().join("supervisor.json");
    let mut known: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    known["pid"] = std::process::id().into();
    fs::write(&record, known.to_string()).unwrap();
    assert_lost_after_one(&bench).await;
}

#[tokio::test]
async fn a_run_whose_server_died_before_there_was_a_supervisor_is_lost() {
    let bench = Bench::new("echo one");
    drop(bench.runner());
    fs::create_dir(bench.run_folder()).unwrap();
    let (lines, end) = rest(&mut bench.adopt().await.unwrap()).await;
    assert_eq!((lines, end.status), (Vec::new(), ExitStatus::Lost));
}

#[tokio::test]
async fn a_run_that_the_same_server_takes_over_goes_on_when_the_first_reader_leaves() {
    let bench = Bench::new(
        "echo one; until [ -e go ]; do sleep 0.01; done; echo two; until [ -e end ]; do sleep 0.01; done",
    );
    let runner = bench.runner();
    let first_reader = runner.start(&bench.order).await.unwrap();
    let Adoption::Run(mut second) = runner.adopt(&bench.order, 0).await.unwrap() else { panic!("it runs") };
    drop(first_reader);
    assert_eq!(first(&mut second).await, ["one"]);
    let open_gate = async { fs::write(bench.work("go"), "").unwrap() };
    let (lines, ()) = tokio::join!(first(&mut second), open_gate);
    assert_eq!(lines, ["two"]);
    fs::write(bench.work("end"), "").unwrap();
    assert_eq!(rest(&mut second).await.1.status, ExitStatus::Code(0));
}
