//! One server: its process, its port and its folder.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::port::free_port;
use crate::programs::{self, succeed};
use crate::sweeper::SweptFolder;
use crate::{account, keeper};

/// How long a test waits for a server. This is far longer than anything takes: it only ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A pause between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Statements of the test itself wait for no standby, and do not hang for ever.
const OWN_STATEMENTS: &str = "-c synchronous_commit=local -c statement_timeout=60s";

/// Whether a commit waits for the disk. It makes no difference to a test that kills processes: what the operating
/// system has is not lost by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    Off,
    On,
}

/// What a server consists of.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) flush: Flush,
    /// Settings that come after those of this crate, and so count more.
    pub(crate) more: Vec<String>,
    /// What starts the postmaster, and becomes it.
    pub(crate) before: Vec<String>,
    port: u16,
    process: Mutex<Option<Child>>,
    /// How many databases were made.
    pub(crate) databases: AtomicU32,
    // The last field, because it is dropped last.
    pub(crate) folder: SweptFolder,
}

impl Instance {
    /// Starts a server whose data is in `data` of this folder, on this port or a free one.
    pub(crate) fn start(
        folder: SweptFolder,
        flush: Flush,
        more: Vec<String>,
        before: Vec<String>,
        port: Option<u16>,
    ) -> Self {
        let (process, databases) = (Mutex::new(None), AtomicU32::new(0));
        let at = port.unwrap_or_else(free_port);
        let mut instance = Self { flush, more, before, port: at, process, databases, folder };
        // Somebody else may take the port before the server does.
        while let Err(log) = instance.begin() {
            assert!(log.contains("could not bind") && port.is_none(), "PostgreSQL does not start:\n{log}");
            instance.port = free_port();
        }
        instance
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn runs(&self) -> bool {
        self.process().is_some()
    }

    pub(crate) fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the postmaster and waits until it takes connections. The error is its log.
    pub(crate) fn begin(&self) -> Result<(), String> {
        let log = self.folder.path().join("log");
        let mut command = account::command_behind(&self.before, "postgres");
        command.arg("-D").arg(self.data());
        for setting in self.settings().iter().chain(&self.more) {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).expect("a log"));
        let mut child = keeper::spawn(command);
        let started = Instant::now();
        while !self.is_ready(child.id()) {
            let ended = child.try_wait().expect("it is ours").is_some();
            let late = PATIENCE < started.elapsed();
            if ended || late {
                // Nothing is left of one that has ended.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(fs::read_to_string(log).unwrap_or_default());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        *self.process() = Some(child);
        Ok(())
    }

    /// Settings that are the server's own. Tests change others with `ALTER SYSTEM`.
    fn settings(&self) -> [String; 9] {
        let flush = match self.flush {
            Flush::Off => "off",
            Flush::On => "on",
        };
        [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.folder.path().display()),
            format!("fsync={flush}"),
            "max_connections=200".to_owned(),
            "shared_buffers=32MB".to_owned(),
            // In files, because a server that is killed leaves what it has in the memory of the system.
            "dynamic_shared_memory_type=mmap".to_owned(),
            "wal_keep_size=256MB".to_owned(),
            "hot_standby=on".to_owned(),
        ]
    }

    /// Whether this postmaster takes connections, as it says itself in the lines of its lock file.
    fn is_ready(&self, pid: u32) -> bool {
        let said = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().map(str::trim).collect();
        lines.first() == Some(&pid.to_string().as_str()) && lines.get(7) == Some(&"ready")
    }

    pub(crate) fn end(&self, signal: Signal) -> ExitStatus {
        let mut child = self.process().take().expect("it runs");
        kill_process(Pid::from_child(&child), signal).expect("it is ours");
        child.wait().expect("an end")
    }

    /// Removes the shared memory that a postmaster leaves if it is killed and not started again. The system has only a
    /// few thousand places for it.
    fn remove_shared_memory(&self) {
        // The lock file is gone after an orderly end. This line of it has the key and the id.
        let said = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let id = said.lines().nth(6).and_then(|line| line.split_whitespace().nth(1));
        if let Some(id) = id {
            let mut remove = Command::new("ipcrm");
            let _ = remove.args(["-m", id]).stdin(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    /// Executes SQL as a superuser.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        succeed(self.psql(database).arg(sql)).trim_end().to_owned()
    }

    /// `psql`, without the SQL.
    pub(crate) fn psql(&self, database: &str) -> Command {
        let mut psql = self.client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c"]);
        psql
    }

    /// A program that connects as a superuser, by the socket.
    pub(crate) fn client(&self, name: &str) -> Command {
        let mut client = programs::command(name);
        client.arg("-h").arg(self.folder.path()).args(["-p", &self.port.to_string(), "-U", "postgres"]);
        client.env("PGOPTIONS", OWN_STATEMENTS).env("PGCONNECT_TIMEOUT", "10");
        client
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SIGQUIT rather than SIGKILL: it then removes its shared memory.
        if let Some(mut child) = self.process().take() {
            let _ = kill_process(Pid::from_child(&child), Signal::QUIT);
            let _ = child.wait();
        }
        self.remove_shared_memory();
    }
}
