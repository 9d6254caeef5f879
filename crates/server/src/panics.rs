//! What a panic leaves in the log: where it was, and not what it said. A text that cannot be cut where it was to be cut
//! is part of what that says, and may be a prompt or a key.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::thread;

/// Set to anything but 0, it has everything told, on standard error.
const ASKED_BY: &str = "RUST_BACKTRACE";

/// From here on panics are told in this way.
pub(crate) fn keep_to_themselves() {
    let asked = std::env::var_os(ASKED_BY).is_some_and(|asked| asked != "0");
    if !asked {
        drop(take_hook());
        set_hook(Box::new(tell));
    }
}

fn tell(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current().name().unwrap_or("unnamed").to_owned();
    tracing::error!(
        place,
        thread,
        "internal error: a thread panicked. Set {ASKED_BY}=1 to log the details, which may include user content"
    );
}
