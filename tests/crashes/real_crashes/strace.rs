//! The server under `strace`: it is killed in the middle of a chosen system call, or its disk fails.
//!
//! `-b execve` detaches from each process that starts another program, so only the server itself is affected, and not
//! the supervisors and agents. The numbers count the calls of one thread.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::client::{Client, finished};
use crate::follower::Way;
use crate::harness::{PATIENCE, TestServer, fake_config, numbers};
use crate::judge;

/// The system calls during which the server is killed, and their numbers.
const WRITES: [(&str, &[u32]); 2] = [
    ("pwrite64", &[1, 2, 3, 5, 8, 13, 21, 28, 34, 40, 47, 55, 63, 72, 81, 90, 99, 120, 150, 180]),
    ("fsync", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
];
const OTHERS: [(&str, &[u32]); 9] = [
    ("ftruncate", &[1, 2, 3]),
    ("unlink", &[1]),
    ("unlinkat", &[1, 2, 3, 5, 7]),
    ("sendto", &[1, 2, 3, 4]),
    ("writev", &[1, 2]),
    ("write", &[1, 2, 3, 5, 8, 13, 21]),
    ("clone3", &[1, 2, 3, 4, 5]),
    ("rename", &[1, 2]),
    ("mkdir", &[1, 2, 3]),
];
/// The minimum number of points that are reached, for each list.
const REACHED_MIN: [usize; 2] = [32, 28];

/// The system calls that fail, and their numbers. They are both in the start and in later turns.
const FAULTS: [(&str, &[u32]); 2] = [("fsync", &[2, 6, 9, 13, 18]), ("pwrite64", &[3, 30, 60, 110, 160])];
/// The minimum number of faults that occur, of each list of 20. Some numbers may not be reached.
const STRUCK_MIN: usize = 18;
/// The minimum number of servers that survive a permanent fault, and the failed calls that prove it.
const LIVED_ON_MIN: usize = 8;
const TRIES_MIN: usize = 5;

/// How long a server with a permanent disk fault is watched after the fault has struck first.
const STICKY_MS: u64 = 700;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_a_write_by_strace() {
    assert!(REACHED_MIN[0] <= kill_at(&WRITES).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_another_call_by_strace() {
    assert!(REACHED_MIN[1] <= kill_at(&OTHERS).await);
}

async fn kill_at(points: &[(&str, &[u32])]) -> usize {
    let mut reached = 0;
    for (call, numbers) in points {
        for number in *numbers {
            let mut stage = Stage::new(&format!("{call} {number}"));
            let struck = stage.play(call, &format!("signal=KILL:when={number}"), Patience::ToTheEnd).await;
            println!("{call} {number}: {}", if struck { "killed" } else { "not reached" });
            reached += usize::from(struck);
        }
    }
    println!("{reached} points were reached");
    reached
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_once_delays_by_strace() {
    let mut struck = 0;
    for ((call, numbers), error) in FAULTS.iter().flat_map(|calls| [(calls, "EIO"), (calls, "ENOSPC")]) {
        for number in *numbers {
            let mut stage = Stage::new(&format!("{call} {error} {number}"));
            stage.play(call, &format!("error={error}:when={number}"), Patience::ToTheEnd).await;
            let faults = stage.faults();
            println!("{}: {faults} calls have failed", stage.what);
            struck += usize::from(0 < faults);
        }
    }
    assert!(STRUCK_MIN <= struck, "only {struck} faults have struck");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_goes_on_failing_shows_nothing_that_is_not_saved_by_strace() {
    let (mut struck, mut lived_on) = (0, 0);
    for ((call, numbers), error) in FAULTS.iter().flat_map(|calls| [(calls, "EIO"), (calls, "ENOSPC")]) {
        for number in *numbers {
            let mut stage = Stage::new(&format!("{call} {error} from {number} on"));
            stage.play(call, &format!("error={error}:when={number}+"), Patience::Short).await;
            let faults = stage.faults();
            println!("{}: {faults} calls have failed", stage.what);
            struck += usize::from(0 < faults);
            lived_on += usize::from(TRIES_MIN <= faults);
        }
    }
    assert!(STRUCK_MIN <= struck, "only {struck} faults have struck");
    assert!(LIVED_ON_MIN <= lived_on, "only {lived_on} servers have lived on with their fault");
}

/// The file for the output of strace.
const TRACE: &str = "trace";

/// The code of the problem, and the same request again after the disk works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_of_which_nobody_knows_whether_it_was_saved_says_so_by_strace() {
    let mut stage = Stage::new("a disk that forgets");
    // The fault begins after the start, which flushes less often.
    let command = stage.traced("fsync", "error=EIO:when=18+");
    stage.server.start_by(command).unwrap();
    let launch = |server: &TestServer, key: &str| {
        let body = json!({ "type": "fake", "prompt": "{}" });
        server.request(Method::POST, "/api/agents").header("idempotency-key", key).json(&body)
    };
    let (mut number, mut launched) = (0, 0);
    let problem = loop {
        number += 1;
        assert!(number < 100, "every launch is saved: {}", stage.said());
        let answer = launch(&stage.server, &number.to_string()).send().await.unwrap();
        if answer.status() != StatusCode::CREATED {
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(answer.headers().contains_key("retry-after"));
            break answer.json::<Value>().await.unwrap();
        }
        launched += 1;
    };
    assert_eq!((&problem["code"], &problem["retryable"]), (&json!("outcome_unknown"), &json!(true)));
    assert!(0 < stage.faults());

    stage.server.kill_9();
    stage.examine_and_start_again();
    for _ in 0..2 {
        let answer = launch(&stage.server, &number.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED, "the same key is the same launch");
    }
    let agents = stage.server.get("/api/agents").await;
    assert_eq!(agents.as_array().unwrap().len(), launched + 1, "once, whatever had become of it");
}

/// How long the server may run with its fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    ToTheEnd,
    /// It is killed a short time after the fault.
    Short,
}

/// One server, from its first start to its graceful end.
pub(super) struct Stage {
    pub(super) server: TestServer,
    log: PathBuf,
    what: String,
}

impl Stage {
    pub(super) fn new(what: &str) -> Self {
        let mut server = TestServer::start_with(&(fake_config() + "[limits]\ncancel_grace_s = 1\n"));
        // The first start only reserved the port. Remove its data.
        server.stop();
        std::fs::remove_dir_all(server.data_dir()).unwrap();
        let log = server.folder.path().join("log");
        Self { server, log, what: what.to_owned() }
    }

    /// Runs the story while `call` is hit. Returns whether the server was killed by that.
    async fn play(&mut self, call: &str, hit: &str, patience: Patience) -> bool {
        let command = self.traced(call, hit);
        let started = self.server.start_by(command);
        let mut struck = false;
        if let Err(said) = &started {
            struck = self.ended(said).await;
            self.start_again();
        }
        let story =
            Handle::current().spawn(story(Client::of(&self.server), self.server.folder.path().into()));
        let before = tokio::time::Instant::now();
        // A busy machine may need long until the fault strikes.
        let mut first_fault = None;
        while !story.is_finished() {
            let short = patience == Patience::Short && !struck;
            if short && first_fault.is_none() && 0 < self.faults() {
                first_fault = Some(tokio::time::Instant::now());
            }
            let watched = first_fault.is_some_and(|first| Duration::from_millis(STICKY_MS) < first.elapsed());
            if let Some(status) = self.ended_within(Duration::from_millis(5)).await {
                assert_eq!(status.signal(), Some(9), "{}: {}", self.what, self.said());
                struck = true;
                self.examine_and_start_again();
            } else if short && watched {
                struck = true;
                self.server.kill_9();
                self.examine_and_start_again();
            }
            assert!(before.elapsed() < 2 * PATIENCE, "{}: it never ends; {}", self.what, self.said());
        }
        story.await.unwrap_or_else(|error| panic!("{}: {error}; {}", self.what, self.said()));
        let status = self.server.stop();
        if !status.success() && status.signal() == Some(9) {
            struck = true;
            self.examine_and_start_again();
            self.server.stop();
        }
        judge::no_process_is_left(&self.server, 0);
        judge::database_is_sound(&self.server.data_dir(), &self.what);
        judge::nothing_panicked(&self.log);
        struck
    }

    /// How the server ended by itself; `None` if it has not ended in time.
    async fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let started = tokio::time::Instant::now();
        let process = self.server.process.as_mut().expect("it was started");
        loop {
            if let Some(status) = process.try_wait().expect("a status") {
                self.server.process = None;
                return Some(status);
            }
            if patience < started.elapsed() {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) fn traced(&self, call: &str, hit: &str) -> Command {
        let plain = self.server.command(&["serve", "--log", "warn"]);
        let mut command = Command::new("strace");
        command.args(["-f", "-D", "-b", "execve", "-qq", "-s", "0", "-e", "signal=none", "-o"]);
        command.arg(self.server.folder.path().join(TRACE));
        command.arg("-e").arg(format!("trace={call}")).arg("-e").arg(format!("inject={call}:{hit}"));
        command.arg(plain.get_program()).args(plain.get_args());
        // The server would set this by restarting itself, and strace would lose it then.
        command.env("MALLOC_ARENA_MAX", "2").current_dir(self.server.folder.path());
        command.stdin(std::process::Stdio::null()).stderr(File::create(&self.log).unwrap());
        command
    }

    /// How many calls strace made fail or wait.
    pub(super) fn faults(&self) -> usize {
        let trace = std::fs::read_to_string(self.server.folder.path().join(TRACE)).unwrap();
        trace.lines().filter(|line| line.contains("(INJECTED)") || line.contains("(DELAYED)")).count()
    }

    /// A server that failed to start was killed, or reports why.
    async fn ended(&mut self, said: &str) -> bool {
        let status = self.ended_within(PATIENCE).await.expect("it ends when it does not serve");
        let killed = status.signal() == Some(9);
        assert!(
            killed || matches!(status.code(), Some(1 | 78)),
            "{}: {status} {said} {}",
            self.what,
            self.said()
        );
        killed
    }

    fn examine_and_start_again(&mut self) {
        judge::database_is_sound(&self.server.data_dir(), &self.what);
        self.start_again();
    }

    fn start_again(&mut self) {
        let command = self.server.command(&["serve", "--log", "warn"]);
        if let Err(said) = self.server.start_by(command) {
            panic!("{}: {said} {}", self.what, self.said());
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// What clients do meanwhile: two turns that are followed, an agent that is cancelled, and one that is purged.
async fn story(client: Client, folder: PathBuf) {
    let id = client.launch(&json!({ "deltas": 60, "pace_us": 1000 }), "first").await;
    let history = folder.join("seen");
    let reader = client.follow(&id, Way::Sse, 2, &history);
    client.say(&id, &json!({ "deltas": 20 }), "second").await;
    let other = client.launch(&json!({ "mode": "hang" }), "other").await;
    let asked = client.cancel_in_time(&other).await;
    let end = client.follow(&other, Way::WebSocket, 1, &folder.join("seen-other"));
    finished(end).await;
    judge::said_what_was_asked(&client.events(&other).await, &[numbers(10)], asked);
    client.purge(&other).await;
    let seen = finished(reader).await;
    let there = client.events(&id).await;
    judge::saw_what_is_there(&seen, &history, &there);
    judge::said_what_was_asked(&there, &[numbers(60), numbers(20)], judge::Asked::WholeOverKills);
}
