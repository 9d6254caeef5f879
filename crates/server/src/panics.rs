//! Panics are logged with their location, but without their message. The message may quote a prompt or a key: a panic
//! about an invalid slice of a string contains that string.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::thread;

/// If this variable is set to anything but 0, panics are printed completely, on standard error.
const ASKED_BY: &str = "RUST_BACKTRACE";

/// From now on, panics are logged without their message.
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
