//! The places where the simulation plants a bug in the watcher: see `cargo xtask planted-bugs`.
//!
//! With `--cfg planted_bugs`, which no product build has, tests can also use the watcher directly. In every other build
//! `forget_others` does nothing.

use std::collections::HashSet;

/// The bug: of all runs that print within one pass, only one is woken.
#[inline]
pub(super) fn forget_others(changed: &mut HashSet<i32>) {
    #[cfg(planted_bugs)]
    if tokenrail_ports::planted::is_planted(tokenrail_ports::planted::Bug::OneOfAPassIsWoken) {
        changed.clear();
    }
    let _ = changed;
}

#[cfg(planted_bugs)]
impl super::RunWatcher {
    /// Watches a folder as a run does. Returns the path of its spool, and a function that waits for a change.
    ///
    /// # Errors
    /// If the folder cannot be watched.
    pub fn watch_spool(
        &self,
        folder: &std::path::Path,
    ) -> std::io::Result<(std::path::PathBuf, impl AsyncFn() + use<>)> {
        let watch = self.watch(folder)?;
        let spool = folder.join(crate::run_folder::RunFolder::SPOOL);
        Ok((spool, async move || watch.changed().await))
    }
}
