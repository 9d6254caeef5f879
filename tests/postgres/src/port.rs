//! Ports for servers that tests start.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that Linux gives to clients and to whoever binds port 0 (from 32768 on, see `ip_local_port_range` in
/// `ip-sysctl.rst` of the kernel). A port among those could be taken while its server is away.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port of the loopback interface that is free at this moment, and not given to anybody else by this program soon.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Test programs that run side by side begin far from each other.
    let begin = process::id().wrapping_mul(2_654_435_761) >> 16;
    for _ in 0..COUNT {
        let step = u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from((begin + step) % u32::from(COUNT)).expect("it is below the count");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}
