//! The real watcher of run folders: whether each of many runs that print at the same time is woken.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tokenrail_runner::{RunWatcher, WatchLimits};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::dice::Dice;
use crate::join::join_all;

/// A run that has not read all its output after this time was not woken. With a wake-up, there is no such wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// Several runs print at the same time, and each waits for the end of its output.
pub(crate) fn each_run_is_woken(seed: u64) -> Option<String> {
    let dice = &mut Dice::of(seed, "waking");
    let (runs, writes) = (dice.between(2, 8), dice.between(1, 20));
    let pause = Duration::from_micros(dice.pick(&[0, 250, 5000]));
    let place = TempDir::new().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _in_runtime = runtime.enter();
    let watcher = RunWatcher::new(WatchLimits { run_gather: pause, ..WatchLimits::default() }).unwrap();
    let watched: Vec<_> = (0..runs)
        .map(|number| {
            let folder = place.path().join(number.to_string());
            fs::create_dir(&folder).unwrap();
            watcher.watch_spool(&folder).unwrap()
        })
        .collect();
    assert_eq!(watcher.polls_because(), None, "this is about inotify");
    let (start, mut missed) = (Barrier::new(watched.len()), vec![false; watched.len()]);
    thread::scope(|scope| {
        for (spool, _) in &watched {
            File::create(spool).unwrap();
            let start = &start;
            scope.spawn(move || {
                start.wait();
                print(spool, writes);
            });
        }
        let waits = watched.iter().zip(&mut missed).map(|((spool, changed), missed)| async move {
            let read_all = async {
                while fs::metadata(spool).unwrap().len() < writes {
                    changed().await;
                }
            };
            *missed = timeout(PATIENCE, read_all).await.is_err();
        });
        runtime.block_on(async { join_all(waits.collect()).await });
    });
    let missed = missed.into_iter().filter(|missed| *missed).count();
    (missed != 0).then(|| format!("G16: {missed} of {runs} runs that print at the same time are not woken"))
}

fn print(spool: &Path, writes: u64) {
    let mut spool = OpenOptions::new().append(true).open(spool).unwrap();
    for _ in 0..writes {
        spool.write_all(b"x").unwrap();
    }
}
