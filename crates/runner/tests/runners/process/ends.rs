//! No process is left, however a run ends.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use tokenrail_ports::ExitStatus;
use tokenrail_runner::{ConverseConfig, Protocol, Unanswered};

use super::support::{Bench, rest, texts, until};

/// A grandchild in its own session that ignores SIGTERM, SIGINT and SIGHUP, and holds the spool and the pipe open.
const ESCAPEE: &str = "setsid sh -c 'trap \"\" TERM INT HUP; touch escaped; while :; do sleep 1; done' &
until [ -e escaped ]; do sleep 0.01; done";

#[tokio::test]
async fn the_exit_status_is_told() {
    for (script, status) in [
        ("exit 0", ExitStatus::Code(0)),
        ("exit 41", ExitStatus::Code(41)),
        ("kill -9 $$", ExitStatus::Signal(9)),
        ("kill -15 $$", ExitStatus::Signal(15)),
    ] {
        let bench = Bench::new(script);
        let (_, end) = rest(&mut bench.start().await).await;
        assert_eq!((end.status, end.error), (status, None), "{script}");
    }
}

#[tokio::test]
async fn a_cancel_leaves_no_process_whatever_they_do() {
    let bench =
        Bench::new(&format!("trap '' TERM INT HUP\n{ESCAPEE}\necho ready; while :; do sleep 1; done"));
    let mut run = bench.start_and_hear("ready").await;
    run.cancel().await.unwrap();
    run.cancel().await.unwrap();
    let (_, end) = rest(&mut run).await;
    assert_eq!((end.status, end.error), (ExitStatus::Signal(9), None));
    assert!(2 <= end.reaped, "the escapee and its sleep: {}", end.reaped);
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn an_agent_that_must_be_killed_does_not_count_as_left_over() {
    let bench = Bench::new("trap '' TERM; echo ready; exec sleep 1000");
    let mut run = bench.start_and_hear("ready").await;
    run.cancel().await.unwrap();
    let (_, end) = rest(&mut run).await;
    assert_eq!((end.status, end.reaped), (ExitStatus::Signal(9), 0));
}

#[tokio::test]
async fn the_program_of_an_interactive_agent_that_must_be_killed_does_not_count_as_left_over() {
    let mut bench = Bench::new("trap '' TERM INT HUP; read -r line; touch asked; exec sleep 1000");
    bench.config.converse = Some(ConverseConfig {
        protocol: Protocol::Acp,
        permission_timeout_ms: 60_000,
        unanswered: Unanswered::Reject,
        files: false,
        idle_ms: 0,
    });
    let mut run = bench.start().await;
    until("it has its first message", || bench.work("asked").exists()).await;
    run.cancel().await.unwrap();
    let (_, end) = rest(&mut run).await;
    assert_eq!((end.status, end.reaped), (ExitStatus::Signal(9), 0));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_cancel_is_polite_at_first() {
    let mut bench = Bench::new(
        "trap 'echo interrupted; trap - INT' INT; trap 'echo terminated; exit 5' TERM
        echo ready; while :; do sleep 0.01; done",
    );
    bench.config.interrupt = true;
    let mut run = bench.start_and_hear("ready").await;
    run.cancel().await.unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!(texts(&lines), ["interrupted", "terminated"]);
    assert_eq!((end.status, end.reaped), (ExitStatus::Code(5), 0));
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn what_outlives_the_agent_is_ended_and_counted() {
    let bench = Bench::new(&format!("{ESCAPEE}\necho bye"));
    let (lines, end) = rest(&mut bench.start().await).await;
    assert_eq!(texts(&lines), ["bye"]);
    assert_eq!((end.status, end.error), (ExitStatus::Code(0), None));
    assert!(1 <= end.reaped);
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn when_the_supervisor_is_killed_the_run_is_lost_and_nothing_is_left() {
    let bench = Bench::new(&format!("{ESCAPEE}\necho one; printf two; while :; do sleep 1; done"));
    let mut run = bench.start().await;
    // Output that is still in the pipe at that time is lost with the supervisor.
    let spool = bench.run_folder().join("stdout");
    until("it has printed", || fs::read(&spool).is_ok_and(|spool| spool == b"one\ntwo")).await;
    kill_process(Pid::from_raw(bench.supervisor_pid()).unwrap(), Signal::KILL).unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!(lines.iter().map(|line| line.end_offset).collect::<Vec<_>>(), [4, 7]);
    assert_eq!((end.status, end.error), (ExitStatus::Lost, None));
    assert!(1 <= end.reaped);
    bench.assert_nothing_left().await;
    assert!(!fs::exists(bench.run_folder().join("exit.json")).unwrap());
}

#[tokio::test]
async fn a_cancel_after_the_supervisor_was_killed_still_ends_the_run() {
    let bench = Bench::new("echo ready; while :; do sleep 1; done");
    let mut run = bench.start_and_hear("ready").await;
    kill_process(Pid::from_raw(bench.supervisor_pid()).unwrap(), Signal::KILL).unwrap();
    until("the supervisor is gone", || bench.processes().iter().all(|(_, line)| !line.contains("supervise")))
        .await;
    run.cancel().await.unwrap();
    assert_eq!(rest(&mut run).await.1.status, ExitStatus::Lost);
    bench.assert_nothing_left().await;
}

#[tokio::test]
async fn a_supervisor_listens_to_no_signal_that_a_terminal_or_a_service_manager_sends() {
    let bench = Bench::new("echo ready; until [ -e go ]; do sleep 0.01; done; echo bye");
    let mut run = bench.start_and_hear("ready").await;
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        kill_process(Pid::from_raw(bench.supervisor_pid()).unwrap(), signal).unwrap();
    }
    fs::write(bench.work("go"), "").unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!(texts(&lines), ["bye"]);
    assert_eq!(end.status, ExitStatus::Code(0));
}

#[tokio::test]
async fn a_cancel_ends_a_run_whose_supervisor_reads_nothing() {
    let mut bench = Bench::new("echo ready; sleep 1000");
    bench.config.limits.kill_grace_ms = 400;
    let mut run = bench.start_and_hear("ready").await;
    kill_process(Pid::from_raw(bench.supervisor_pid()).unwrap(), Signal::STOP).unwrap();
    let mut control = bench.control();
    let full = loop {
        if let Err(error) = control.write_all(b"look\n") {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    run.cancel().await.unwrap();
    let (_, end) = rest(&mut run).await;
    assert_eq!(end.status, ExitStatus::Lost);
    bench.assert_nothing_left().await;
}

/// Output waits for space, while a process that the agent left behind is being ended. The trap starts no program: that
/// would be a further process of the run, and would get a SIGTERM too.
#[tokio::test]
async fn a_cancel_that_comes_while_leftovers_are_ended_makes_output_wait_no_longer_for_space() {
    let mut bench = Bench::new(
        "(trap ': > told' TERM; touch deaf; until [ -e go ]; do sleep 0.01; done) &
        until [ -e deaf ]; do sleep 0.01; done; echo lost",
    );
    let limits = &mut bench.config.limits;
    (limits.leftover_grace_ms, limits.kill_grace_ms) = (600_000, 1_200_000);
    limits.full_disk_wait_ms = 3_600_000;
    bench.fill_disk_for_output();
    let mut run = bench.start().await;
    until("leftovers are being ended", || bench.work("told").exists()).await;
    run.cancel().await.unwrap();
    let control = bench.control();
    until("the cancel is read", || ioctl_fionread(&control).unwrap() == 0).await;
    fs::write(bench.work("go"), "").unwrap();
    let record = bench.run_folder().join("exit.json");
    until("the end is recorded", || record.exists()).await;
    let record: serde_json::Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    assert_eq!(record["unkept"]["bytes"], "lost\n".len());
    assert_eq!(record["cancelled"], true);
    bench.assert_nothing_left().await;
}

/// On a busy machine, listing the processes of a run may take longer than the time to end them.
#[tokio::test]
async fn each_process_gets_a_sigkill_even_if_the_time_is_up() {
    let bench = Bench::with_little_time();
    let mut run = bench.start_and_hear("ready").await;
    run.cancel().await.unwrap();
    rest(&mut run).await;
    bench.assert_nothing_left().await;
}

/// The same without a supervisor, whose work the server then does.
#[tokio::test]
async fn each_process_that_a_dead_supervisor_left_gets_a_sigkill_even_if_the_time_is_up() {
    let bench = Bench::with_little_time();
    let mut run = bench.start_and_hear("ready").await;
    kill_process(Pid::from_raw(bench.supervisor_pid()).unwrap(), Signal::KILL).unwrap();
    rest(&mut run).await;
    bench.assert_nothing_left().await;
}

impl Bench {
    /// The FIFO to the supervisor, for a writer that does not wait.
    fn control(&self) -> File {
        let mut control = OpenOptions::new();
        control.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        control.open(self.run_folder().join("control")).unwrap()
    }

    /// An agent and a process that it started. Both ignore all signals but SIGKILL, and the time to end them is up at
    /// once.
    fn with_little_time() -> Self {
        // The process says that it is there, and then waits for a writer that never comes.
        let process = "setsid sh -c 'echo ready; read line <pipe'";
        let mut bench = Self::new(&format!("trap '' INT TERM; mkfifo pipe; ({process} &); exec sleep 1000"));
        let limits = &mut bench.config.limits;
        (limits.cancel_grace_ms, limits.leftover_grace_ms, limits.kill_grace_ms) = (0, 0, 0);
        bench
    }
}
