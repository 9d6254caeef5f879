//! The time, the memory and the number of requests.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use tokenrail_ports::{ChangesError, IGitRepository as _};
use tokio::sync::Semaphore;
use tokio::time::{advance, timeout};

use super::{Lab, RepositoryLimits};
use crate::repository::request::Request;

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn work_that_is_given_up_keeps_its_place_until_it_ends() {
    let places = Arc::new(Semaphore::new(1));
    let request = Request::admitted(&places, SHORT).await.unwrap();
    let (end, ended) = mpsc::channel::<()>();
    let answer = request.blocking(move || ended.recv().map_err(io::Error::other)).await;
    assert!(matches!(answer, Err(ChangesError::TimedOut)));
    drop(request);
    let other = Request::admitted(&places, SHORT).await;
    assert!(matches!(other, Err(ChangesError::Busy)), "it still runs");
    end.send(()).unwrap();
    Request::admitted(&places, LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_place_is_not_time_of_the_request() {
    let places = Arc::new(Semaphore::new(1));
    let first = Request::admitted(&places, LONG).await.unwrap();
    let second = Request::admitted(&places, LONG);
    let free = async {
        advance(LONG * 9 / 10).await;
        drop(first);
    };
    let (second, ()) = tokio::join!(second, free);
    let second = second.unwrap();
    advance(LONG * 9 / 10).await;
    assert!(!second.is_late());
    advance(LONG / 5).await;
    assert!(second.is_late());
}

#[tokio::test]
async fn git_has_a_limit_of_memory() {
    let limits = RepositoryLimits { changes_memory_bytes: 64 << 20, ..RepositoryLimits::default() };
    let Some(lab) = Lab::with(limits, &["init", "-q"]) else { return };
    lab.commit();
    let base = lab.head().await;
    assert_eq!(lab.changes(&base).await.files, [], "it is enough");
    // Git reads all of this file.
    symlink("/dev/zero", lab.root().join(".git/objects/info/alternates")).unwrap();
    let answer = lab.reader.changes(&lab.root(), &base).await;
    assert!(matches!(answer, Err(ChangesError::Failed(_))), "and not that the commit is gone: {answer:?}");
}

/// Lets git wait for somebody who writes its settings.
fn git_waits(lab: &Lab) {
    let pipe = lab.root().join(".git/config");
    fs::remove_file(&pipe).unwrap();
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
}

/// The folder in `/proc` of a process that uses a git folder below this one.
fn process_of(data: &Path) -> Option<PathBuf> {
    let setting = format!("GIT_DIR={}", data.canonicalize().ok()?.display());
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let uses = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        memchr::memmem::find(&environment, setting.as_bytes()).is_some()
    };
    processes.into_iter().find(uses)
}

#[tokio::test]
async fn the_kernel_ends_git_before_the_server() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    git_waits(&lab);
    let data = lab.folder.path().join("data");
    let ready = async {
        loop {
            if let Some(process) = process_of(&data)
                && let Ok(score) = fs::read_to_string(process.join("oom_score_adj"))
                && score.trim().parse::<i32>().unwrap() >= 500
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = lab.changes(&base) => panic!("{answer:?}"),
        () = ready => {}
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_no_copy() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    git_waits(&lab);
    let data = lab.folder.path().join("data");
    let copies = || fs::read_dir(data.join("changes")).map_or(0, Iterator::count);
    let begun = async {
        while process_of(&data).is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = lab.changes(&base) => panic!("{answer:?}"),
        () = begun => {}
    }
    let removed = async {
        while copies() != 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, removed).await.expect("the copy is removed");
}
