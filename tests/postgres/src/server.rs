//! What a test can do to a server.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::process::Signal;

use crate::instance::{Flush, Instance, LOOK_EVERY, PATIENCE};
use crate::sweeper::SweptFolder;
use crate::{Database, template};

/// Eight megabytes, which is half of a file of the log.
const FILL_LOG: &str = "SELECT pg_logical_emit_message(true, 'test', repeat('x', 8000000))";

/// A server. It ends when this and all its [`Database`]s are dropped.
#[derive(Debug)]
pub struct Server {
    pub(crate) instance: Arc<Instance>,
}

impl Server {
    /// Starts an empty server on a free port of 127.0.0.1.
    pub fn start(flush: Flush) -> Self {
        Self::start_with(flush, &[])
    }

    /// As [`Server::start`], with further settings, such as `shared_buffers=128MB`. Its standbys have them too.
    pub fn start_with(flush: Flush, settings: &[&str]) -> Self {
        let folder = SweptFolder::new();
        template::copy_to(&folder.path().join("data"));
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Self::start_in(folder, flush, settings)
    }

    /// As [`Server::start_with`], with all of its data in this folder, for example on a small disk. Its log for people
    /// and its socket are elsewhere.
    pub fn start_on(disk: &Path, settings: &[&str]) -> Self {
        let folder = SweptFolder::new();
        template::copy_to(&disk.join("data"));
        std::os::unix::fs::symlink(disk.join("data"), folder.path().join("data")).expect("a link");
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Self::start_in(folder, Flush::Off, settings)
    }

    /// Starts an empty server in a network namespace, with its port of all addresses there. Clients from `addresses`,
    /// such as `10.0.0.0/8`, may connect.
    pub fn start_in_network(namespace: &str, addresses: &str) -> Self {
        let folder = SweptFolder::new();
        let data = folder.path().join("data");
        template::copy_to(&data);
        let mut rules = OpenOptions::new().append(true).open(data.join("pg_hba.conf")).expect("its rules");
        writeln!(rules, "host all all {addresses} scram-sha-256").expect("written");
        let before = ["ip", "netns", "exec", namespace].map(str::to_owned).to_vec();
        let more = vec!["listen_addresses=*".to_owned()];
        Self { instance: Arc::new(Instance::start(folder, Flush::Off, more, before, None)) }
    }

    /// Like [`Server::start`], but with a system identifier of its own. Takes some seconds.
    pub fn start_with_new_identity(flush: Flush) -> Self {
        let folder = SweptFolder::new();
        template::make(&folder.path().join("data"));
        Self::start_in(folder, flush, Vec::new())
    }

    /// Starts a server whose data is in `data` of this folder.
    pub(crate) fn start_in(folder: SweptFolder, flush: Flush, more: Vec<String>) -> Self {
        Self { instance: Arc::new(Instance::start(folder, flush, more, Vec::new(), None)) }
    }

    /// Makes an empty database, owned by [`ROLE`](crate::ROLE).
    pub fn database(&self) -> Database {
        let number = self.instance.databases.fetch_add(1, Ordering::Relaxed) + 1;
        Database::new(Arc::clone(&self.instance), format!("test_{number}"))
    }

    /// The address for clients: `127.0.0.1` and the port, which stays when it is started again.
    pub fn address(&self) -> String {
        self.instance.address()
    }

    /// The url on this server of a database that was made on another one, for example on its primary.
    pub fn url_of(&self, database: &Database) -> String {
        database.url_at(&self.address())
    }

    /// Executes SQL as a superuser, in the database `postgres`. Returns the rows, with `|` between values.
    pub fn sql(&self, sql: &str) -> String {
        self.instance.sql("postgres", sql)
    }

    /// The same in a database that was made on another server, for example on its primary.
    pub fn sql_in(&self, database: &Database, sql: &str) -> String {
        self.instance.sql(database.name(), sql)
    }

    /// The pid of the postmaster.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn pid(&self) -> u32 {
        self.instance.process().as_ref().expect("it runs").id()
    }

    /// The folder of its data, log and socket.
    pub fn folder(&self) -> &Path {
        self.instance.folder.path()
    }

    /// Kills the postmaster with SIGKILL, and waits for its end. Its children notice and end soon after.
    pub fn kill_9(&self) {
        self.instance.end(Signal::KILL);
    }

    /// Stops without a checkpoint, as `pg_ctl stop -m immediate` does: the next start recovers.
    pub fn stop_immediately(&self) {
        self.instance.end(Signal::QUIT);
    }

    /// Stops in order, as `pg_ctl stop -m fast` does: it ends all connections.
    pub fn stop(&self) {
        assert!(self.instance.end(Signal::INT).success(), "it stops in order");
    }

    /// Starts it again with its data and port, and waits until it takes connections.
    pub fn start_again(&self) {
        assert!(self.instance.process().is_none(), "it runs already");
        let started = Instant::now();
        // Children of a postmaster that was killed hold its shared memory until they have noticed.
        while let Err(log) = self.instance.begin() {
            assert!(started.elapsed() < PATIENCE, "PostgreSQL does not start again:\n{log}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Fills its write-ahead log until it stops, because its disk is full. Only with `restart_after_crash=off` does it
    /// not start again by itself.
    pub fn write_until_it_stops(&self) {
        let started = Instant::now();
        loop {
            if let Some(child) = self.instance.process().as_mut()
                && child.try_wait().expect("it is ours").is_some()
            {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "PostgreSQL does not stop");
            // It fails with the server.
            let _ = self.instance.psql("postgres").arg(FILL_LOG).output();
        }
        *self.instance.process() = None;
    }

    /// Kills all connections of clients to this database, as an administrator can. Returns their number.
    pub fn end_connections(&self, database: &Database) -> u64 {
        let found = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}'",
            database.name()
        );
        self.sql(&found).parse().expect("a number")
    }
}
