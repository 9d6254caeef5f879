//! Thousands of seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::hash::BuildHasher;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::simulation::{Report, simulate};

const FRESH_SEEDS: u64 = 10_000;
/// A sweep stops after this many failures.
const FAILURES_MAX: usize = 20;
/// A seed takes milliseconds. One that takes this long never ends: the application loops without waiting.
const SEED_TIME_MAX: Duration = Duration::from_mins(2);
/// One of this many seeds is simulated twice.
const TWICE: u64 = 50;

/// What must have happened in a sweep of [`FRESH_SEEDS`] or more: a fault that never occurs is not tested.
const RARE: [&str; 21] = [
    "a command was given again",
    "a commit failed and was done",
    "a commit failed and was not done",
    "a crash",
    "a reader was disconnected",
    "a queued turn was cancelled",
    "a reader was told of the shutdown",
    "a cursor ahead was refused",
    "a question of before a crash was answered",
    "a running turn was cancelled",
    "a turn was withdrawn",
    "a supervisor died with the server",
    "an agent could not be started",
    "an agent was adopted",
    "an answer came too late",
    "an answer settled a question",
    "an answer was not offered",
    "history could not be read",
    "the server was stopped",
    "the spool could not be read",
    "there was nothing to adopt",
];

/// The findings of a sweep.
#[derive(Debug, Default)]
struct Found {
    failures: BTreeMap<u64, String>,
    reached: BTreeSet<&'static str>,
    events: usize,
    lives: u64,
    virtual_ms: u64,
}

#[test]
fn every_seed_that_failed_once_passes() {
    let seeds = regressions();
    let found = sweep(&seeds, false);
    assert!(found.failures.is_empty(), "{}", told(&found.failures));
}

#[test]
fn fresh_seeds_break_no_promise() {
    if let Ok(seed) = std::env::var("TOKENRAIL_SEED") {
        let report = simulate(seed.parse().unwrap(), true);
        println!(
            "{}\n{} steps, {} events, trace {:x}",
            report.lines, report.steps, report.events, report.trace
        );
        assert_eq!(report.violation, None);
        return;
    }
    let count = std::env::var("TOKENRAIL_SEEDS").map_or(FRESH_SEEDS, |count| count.parse().unwrap());
    let first = std::hash::RandomState::new().hash_one(0) >> 24;
    let seeds: Vec<u64> = (first..first + count).collect();
    let began = Instant::now();
    let found = sweep(&seeds, true);
    println!(
        "{count} seeds from {first} in {:.1} s: {} events, {} lives of the server, {:.0} virtual hours",
        began.elapsed().as_secs_f64(),
        found.events,
        found.lives,
        found.virtual_ms as f64 / 3.6e6,
    );
    keep(&found.failures);
    assert!(found.failures.is_empty(), "{}", told(&found.failures));
    let missed: Vec<_> = RARE.into_iter().filter(|rare| !found.reached.contains(rare)).collect();
    assert!(count < FRESH_SEEDS || missed.is_empty(), "no seed has reached {missed:?}");
}

/// Simulates the seeds, one simulation for each processor at a time.
fn sweep(seeds: &[u64], stop_early: bool) -> Found {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (next, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let found = Mutex::new(Found::default());
    let running = Mutex::new(BTreeMap::new());
    let (ended, end) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watched = &running;
        scope.spawn(move || watch_seeds(watched, &end));
        for _ in 0..threads {
            let ended = ended.clone();
            let (next, stopped, found, running) = (&next, &stopped, &found, &running);
            scope.spawn(move || {
                let _ended = ended;
                while !stopped.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(&seed) = seeds.get(index) else { return };
                    running.lock().unwrap().insert(seed, Instant::now());
                    let report = checked(seed);
                    running.lock().unwrap().remove(&seed);
                    let mut found = found.lock().unwrap();
                    found.take(seed, report);
                    if stop_early && FAILURES_MAX < found.failures.len() {
                        stopped.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
        drop(ended);
    });
    found.into_inner().unwrap()
}

/// Ends the whole test if a seed does not end: nothing else can stop its thread. Returns after all seeds have ended.
fn watch_seeds(running: &Mutex<BTreeMap<u64, Instant>>, end: &Receiver<()>) {
    while end.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        let running = running.lock().unwrap();
        if let Some((seed, _)) = running.iter().find(|(_, began)| SEED_TIME_MAX < began.elapsed()) {
            keep(&BTreeMap::from([(*seed, "does not end".to_owned())]));
            let _ = writeln!(std::io::stderr(), "SEED={seed} does not end");
            std::process::abort();
        }
    }
}

/// Simulates a seed. Some are simulated twice, and then both runs must take the same path.
fn checked(seed: u64) -> Report {
    let mut report = simulate(seed, false);
    if seed.is_multiple_of(TWICE) && report.violation.is_none() {
        let again = simulate(seed, false);
        if again.trace != report.trace {
            report.violation = Some("the same seed went two ways".to_owned());
        }
    }
    report
}

impl Found {
    fn take(&mut self, seed: u64, report: Report) {
        self.events += report.events;
        self.lives += u64::from(report.lives);
        self.virtual_ms += report.virtual_ms;
        self.reached.extend(report.reached);
        if let Some(violation) = report.violation {
            self.failures.insert(seed, violation);
        }
    }
}

fn told(failures: &BTreeMap<u64, String>) -> String {
    let tell = |(seed, how): (&u64, &String)| format!("SEED={seed}: {how}\n");
    failures.iter().map(tell).collect()
}

fn regressions_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("simulation/regressions.txt")
}

/// The first word of each line that is not a comment.
fn regressions() -> Vec<u64> {
    let text = std::fs::read_to_string(regressions_file()).unwrap();
    let seeds = text.lines().filter_map(|line| line.split_whitespace().next());
    seeds.filter(|word| !word.starts_with('#')).map(|word| word.parse().expect("a seed")).collect()
}

/// Keeps the seeds that failed, so that they are tried first from now on.
fn keep(failures: &BTreeMap<u64, String>) {
    if failures.is_empty() {
        return;
    }
    let file = OpenOptions::new().append(true).open(regressions_file());
    let Ok(mut file) = file else { return };
    for (seed, how) in failures {
        let _ = writeln!(file, "{seed} {}", how.lines().next().unwrap_or_default());
    }
}
