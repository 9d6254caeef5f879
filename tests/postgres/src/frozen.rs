//! Processes of a server that hang.

use rustix::process::{Pid, Signal, kill_process};

use crate::Server;

/// A process that does nothing more, as if it hung. It goes on when this is dropped.
#[derive(Debug)]
pub struct FrozenBackend(Pid);

impl Server {
    /// Stops the process of a connection with SIGSTOP. `query` returns its pid. Use it on a server of its own: commands
    /// that wait for all processes, such as DROP DATABASE, wait for this one too.
    pub fn freeze(&self, query: &str) -> FrozenBackend {
        let pid = self.sql(query).parse().ok().and_then(Pid::from_raw).expect("the pid of a connection");
        kill_process(pid, Signal::STOP).expect("it runs");
        FrozenBackend(pid)
    }
}

impl Drop for FrozenBackend {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = kill_process(self.0, Signal::CONT);
    }
}
