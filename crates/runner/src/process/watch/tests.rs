use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;
use tokio::net::unix::pipe;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::*;
use crate::run_folder::{Begun, RunFolder};

/// The longest wait in these tests. Reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

const BY_INOTIFY: WatchLimits =
    WatchLimits { run_gather: Duration::from_micros(250), run_poll: Duration::from_millis(2), inotify: true };
const BY_POLLING: WatchLimits = WatchLimits { inotify: false, ..BY_INOTIFY };

fn folders(count: usize) -> (TempDir, Vec<PathBuf>) {
    let place = TempDir::new().unwrap();
    let folders: Vec<_> = (0..count).map(|number| place.path().join(number.to_string())).collect();
    for folder in &folders {
        fs::create_dir(folder).unwrap();
        File::create(folder.join(RunFolder::SPOOL)).unwrap();
    }
    (place, folders)
}

fn append(folder: &Path) {
    let spool = OpenOptions::new().append(true).open(folder.join(RunFolder::SPOOL));
    spool.unwrap().write_all(b"x").unwrap();
}

fn spool_bytes(folder: &Path) -> u64 {
    fs::metadata(folder.join(RunFolder::SPOOL)).unwrap().len()
}

/// Waits as a run does, until the condition holds.
async fn until(watch: &FolderWatch, is_so: impl Fn() -> bool) {
    while !is_so() {
        watch.changed().await;
    }
}

/// Several threads append to all folders at once. Each folder gets `writes` bytes.
fn print_everywhere(folders: &[PathBuf], writes: u64) {
    const WRITERS: usize = 4;
    thread::scope(|scope| {
        for number in 0..WRITERS {
            scope.spawn(move || {
                for _ in 0..writes {
                    folders.iter().skip(number).step_by(WRITERS).for_each(|folder| append(folder));
                }
            });
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_the_last_of_many_that_print_at_the_same_time() {
    const RUNS: usize = 40;
    const WRITES: u64 = 20;
    const ROUNDS: u64 = 10;
    for limits in [BY_INOTIFY, BY_POLLING, WatchLimits { run_gather: Duration::from_millis(5), ..BY_INOTIFY }]
    {
        let (_place, folders) = folders(RUNS);
        let watcher = RunWatcher::new(limits).unwrap();
        let all: Vec<_> = folders.iter().map(|folder| Arc::new(watcher.watch(folder).unwrap())).collect();
        for round in 1..=ROUNDS {
            let waiting = TaskTracker::new();
            for (watch, folder) in all.iter().zip(folders.clone()) {
                let watch = Arc::clone(watch);
                waiting.spawn(async move { until(&watch, || spool_bytes(&folder) == round * WRITES).await });
            }
            let folders = folders.clone();
            tokio::task::spawn_blocking(move || print_everywhere(&folders, WRITES)).await.unwrap();
            waiting.close();
            timeout(PATIENCE, waiting.wait()).await.expect("a wake-up is lost");
        }
    }
}

#[tokio::test]
async fn a_file_that_appears_wakes() {
    for limits in [BY_INOTIFY, BY_POLLING] {
        let (_place, folders) = folders(1);
        let watch = RunWatcher::new(limits).unwrap().watch(&folders[0]).unwrap();
        for name in [RunFolder::SUPERVISOR, RunFolder::EXIT] {
            let file = folders[0].join(name);
            let unfinished = file.with_extension("new");
            fs::write(&unfinished, "{}").unwrap();
            fs::rename(&unfinished, &file).unwrap();
            timeout(PATIENCE, until(&watch, || file.exists())).await.unwrap();
        }
    }
}

#[tokio::test]
async fn two_that_watch_one_folder_are_both_woken_and_one_that_leaves_takes_nothing_along() {
    for limits in [BY_INOTIFY, BY_POLLING] {
        let (_place, folders) = folders(1);
        let watcher = RunWatcher::new(limits).unwrap();
        let [first, second] = [0, 1].map(|_| watcher.watch(&folders[0]).unwrap());
        append(&folders[0]);
        timeout(PATIENCE, first.changed()).await.unwrap();
        timeout(PATIENCE, second.changed()).await.unwrap();
        drop(first);
        append(&folders[0]);
        timeout(PATIENCE, until(&second, || spool_bytes(&folders[0]) == 2)).await.unwrap();
    }
}

#[tokio::test]
async fn everybody_looks_where_events_were_lost() {
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let (_place, folders) = folders(3);
    let watcher = RunWatcher::new(BY_INOTIFY).unwrap();
    let all: Vec<_> = folders.iter().map(|folder| watcher.watch(folder).unwrap()).collect();
    append(&folders[0]);
    timeout(PATIENCE, all[0].changed()).await.unwrap();
    // The watcher's task is on this thread, so it reads nothing meanwhile. The folders alternate, because the kernel
    // merges equal consecutive events.
    for _ in 0..queue.trim().parse::<u32>().unwrap() {
        folders[..2].iter().for_each(|folder| append(folder));
    }
    append(&folders[2]);
    for watch in &all {
        timeout(PATIENCE, watch.changed()).await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_cannot_be_watched() {
    for limits in [BY_INOTIFY, BY_POLLING] {
        let watcher = RunWatcher::new(limits).unwrap();
        let (place, _) = folders(0);
        assert!(watcher.watch(&place.path().join("gone")).is_err());
    }
}

#[tokio::test]
async fn it_says_why_it_polls() {
    assert_eq!(RunWatcher::new(BY_INOTIFY).unwrap().polls_because(), None);
    assert_eq!(RunWatcher::new(BY_POLLING).unwrap().polls_because(), Some(PollsBecause::Told));
}

#[tokio::test]
async fn the_task_and_the_thread_end_with_their_watcher() {
    let (_place, folders) = folders(1);
    let watcher = RunWatcher::new(BY_INOTIFY).unwrap();
    let watch = watcher.watch(&folders[0]).unwrap();
    let shared = Arc::downgrade(&watcher.0.shared);
    drop(watcher);
    assert!(shared.upgrade().is_some(), "somebody still watches");
    drop(watch);
    while shared.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn all_supervisors_are_told_to_look_if_many_processes_begin() {
    for limits in [BY_INOTIFY, BY_POLLING] {
        let (place, folders) = folders(3);
        let load = place.path().join("loadavg");
        let says = |newest: u64| fs::write(&load, format!("0.00 0.00 0.00 1/90 {newest}\n")).unwrap();
        says(1000);
        let supervisors: Vec<_> = folders.iter().map(|folder| supervisor(folder)).collect();
        let watcher = RunWatcher::counting(limits, Begun::by(File::open(&load).unwrap())).unwrap();
        let _all: Vec<_> = folders.iter().map(|folder| watcher.watch(folder).unwrap()).collect();
        // The watcher's first look may come before it knows all folders, or after the first change of the number.
        for newest in [9000, 20_000] {
            says(newest);
            for supervisor in &supervisors {
                timeout(PATIENCE, told(supervisor)).await.expect("it is told");
            }
        }
    }
}

/// The reading end of the control FIFO of a supervisor.
fn supervisor(folder: &Path) -> pipe::Receiver {
    let control = folder.join("control");
    mkfifoat(CWD, &control, Mode::RUSR | Mode::WUSR).unwrap();
    pipe::OpenOptions::new().read_write(true).open_receiver(control).unwrap()
}

async fn told(supervisor: &pipe::Receiver) {
    let mut text = [0; 5];
    loop {
        supervisor.readable().await.unwrap();
        match supervisor.try_read(&mut text) {
            Ok(read) => return assert_eq!(&text[..read], b"look\n"),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
}
