//! How much memory a server uses.

use std::fs;

use crate::harness::TestServer;

pub(crate) fn memory_kib(server: &TestServer) -> u64 {
    status(server, "VmRSS:")
}

/// The highest memory use since [`forget_the_peak`].
pub(crate) fn peak_kib(server: &TestServer) -> u64 {
    status(server, "VmHWM:")
}

/// Resets the peak.
pub(crate) fn forget_the_peak(server: &TestServer) {
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").expect("one's own process");
}

pub(crate) fn status(server: &TestServer, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.split_whitespace().next().expect("a value").parse().expect("a number")
}
