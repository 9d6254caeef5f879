//! Tells runs that something in their folder has changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// How long the watcher's thread rests when it has woken somebody. An agent that prints line by line makes an event
/// with each; what comes meanwhile is one event, and a reader that is late by so little reads more at once.
const REST: Duration = Duration::from_micros(250);

/// One watcher for all run folders: a system allows few of them, and each costs a thread.
#[derive(Clone)]
pub(super) struct FolderWatcher {
    /// Locked before `waiting`, and for as long as a folder is added or removed.
    watcher: Arc<Mutex<RecommendedWatcher>>,
    waiting: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>>,
}

/// One folder that is watched until this is dropped.
pub(super) struct FolderWatch {
    watcher: FolderWatcher,
    folder: PathBuf,
    changed: Arc<Notify>,
}

impl FolderWatcher {
    pub(super) fn new() -> notify::Result<Self> {
        let waiting: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>> = Arc::default();
        let to_wake = Arc::clone(&waiting);
        let watcher = notify::recommended_watcher(move |event| {
            if wake(&lock(&to_wake), event) {
                sleep(REST);
            }
        })?;
        Ok(Self { watcher: Arc::new(Mutex::new(watcher)), waiting })
    }

    /// Watches a folder. It blocks for a moment.
    pub(super) fn watch(&self, folder: &Path) -> notify::Result<FolderWatch> {
        let changed = Arc::new(Notify::new());
        // From here on the drop of the watch cleans up, also when the last line fails.
        let watch =
            FolderWatch { watcher: self.clone(), folder: folder.to_owned(), changed: Arc::clone(&changed) };
        let mut watcher = lock(&self.watcher);
        lock(&self.waiting).insert(folder.to_owned(), changed);
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        drop(watcher);
        Ok(watch)
    }
}

impl FolderWatch {
    /// Waits until something has changed since the last call. Changes are not counted: look, then wait, then look
    /// again.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        let mut watcher = lock(&self.watcher.watcher);
        let mut waiting = lock(&self.watcher.waiting);
        // Whoever has taken over the run in the meantime waits on.
        if waiting.get(&self.folder).is_some_and(|changed| Arc::ptr_eq(changed, &self.changed)) {
            waiting.remove(&self.folder);
            // The watcher's own thread needs it to get rid of its last events, and only then answers.
            drop(waiting);
            // It fails where the folder is gone, and its watch with it.
            let _ = watcher.unwatch(&self.folder);
        }
    }
}

/// Wakes whoever waits for this; says whether anybody does.
fn wake(waiting: &HashMap<PathBuf, Arc<Notify>>, event: notify::Result<notify::Event>) -> bool {
    match event {
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => false,
        Ok(event) if !event.need_rescan() => {
            let folders = event.paths.iter().filter_map(|path| path.parent());
            let woken = folders.filter_map(|folder| waiting.get(folder)).map(|changed| changed.notify_one());
            0 < woken.count()
        }
        // Events were lost: everybody looks.
        Ok(_) | Err(_) => {
            for changed in waiting.values() {
                changed.notify_one();
            }
            true
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
