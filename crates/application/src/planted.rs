//! The places where the simulation plants bugs in this crate: see `cargo xtask planted-bugs`.
//!
//! Each place calls one of these functions with the name of its bug, around the correct expression. A bug can be
//! planted only with `--cfg planted_bugs`. In every other build, [`is_planted`] is constantly false, so each place is
//! its correct expression.
//!
//! Bugs that can be planted outside this crate, behind a port or in the limits, are in the simulation itself.

use tokenrail_domain::Sequence;
use tokio::sync::watch;

pub(crate) use tokenrail_ports::planted::{Bug, is_planted};

/// True in correct code: part of a condition that only the bug leaves out.
#[inline]
pub(crate) fn correctly(bug: Bug) -> bool {
    !is_planted(bug)
}

/// The value `right`. The bug drops it, and takes `wrong` instead.
#[inline]
pub(crate) fn instead<T>(bug: Bug, right: T, wrong: impl FnOnce() -> T) -> T {
    if !is_planted(bug) {
        return right;
    }
    // First, because `right` may be a subscription.
    drop(right);
    wrong()
}

/// Does nothing, because `action` belongs to a later step. The bug does it here.
#[inline]
pub(crate) fn only_if_planted(bug: Bug, action: impl FnOnce()) {
    if is_planted(bug) {
        action();
    }
}

/// The cursor. The bug skips the events of a reader that lags.
#[inline]
pub(crate) fn skipping(bug: Bug, cursor: Sequence, head: Sequence) -> Sequence {
    let lags = cursor.0 + 8 < head.0;
    instead(bug, cursor, || if lags { head.before() } else { cursor })
}

/// Does nothing. The bug loses a change between the check and the wait.
pub(crate) async fn losing_wake_up<T>(bug: Bug, changes: &mut watch::Receiver<T>) {
    if is_planted(bug) {
        tokio::task::yield_now().await;
        changes.mark_unchanged();
    }
}
