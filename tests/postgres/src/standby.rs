//! Streaming replication.

use std::sync::Arc;
use std::time::Instant;

use crate::instance::{Instance, LOOK_EVERY, PATIENCE};
use crate::programs::succeed;
use crate::sweeper::SweptFolder;
use crate::{Server, account};

/// Whether a commit of the primary waits for the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    Asynchronous,
    Synchronous,
}

impl Server {
    /// Starts a streaming standby of this server, and waits until it streams. With [`Replication::Synchronous`], each
    /// commit waits for it from then on, also when it is gone. It flushes to disk if this server does, and is in the
    /// same network namespace.
    #[must_use]
    pub fn standby(&self, replication: Replication) -> Self {
        self.standby_at(replication, None)
    }

    /// The same, with the address of a server that does not run any more.
    #[must_use]
    pub fn standby_in_place_of(&self, gone: &Self, replication: Replication) -> Self {
        assert!(!gone.instance.runs(), "it has its address to itself");
        self.standby_at(replication, Some(gone.instance.port()))
    }

    fn standby_at(&self, replication: Replication, port: Option<u16>) -> Self {
        let folder = SweptFolder::new();
        let mut copy = self.instance.client("pg_basebackup");
        // The standby would keep them.
        copy.env_remove("PGOPTIONS");
        copy.args(["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync", "-D"]);
        succeed(copy.arg(folder.path().join("data")));
        account::give_all(folder.path());
        let (flush, more, before) =
            (self.instance.flush, self.instance.more.clone(), self.instance.before.clone());
        let instance = Instance::start(folder, flush, more, before, port);
        let standby = Self { instance: Arc::new(instance) };
        self.wait_for("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1");
        if replication == Replication::Synchronous {
            self.set_synchronous("ANY 1 (*)");
            self.wait_for("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'", "1");
        }
        standby
    }

    /// Sets `synchronous_standby_names`. Commits that wait go on if the new value lets them.
    pub fn set_synchronous(&self, names: &str) {
        self.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        self.sql("SELECT pg_reload_conf()");
        self.wait_for("SHOW synchronous_standby_names", names);
    }

    /// This standby receives nothing more. What its primary commits from here on is lost if this one takes over.
    pub fn fall_behind(&self, primary: &Self) {
        primary.wait_for(
            "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()",
            "1",
        );
        self.sql("ALTER SYSTEM SET primary_conninfo = ''");
        self.sql("SELECT pg_reload_conf()");
        primary.wait_for("SELECT count(*) FROM pg_stat_replication", "0");
    }

    /// Makes this standby a primary, and waits until it takes writes.
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote()"), "t");
    }

    /// Waits until this query returns this value.
    pub fn wait_for(&self, query: &str, value: &str) {
        let started = Instant::now();
        loop {
            let found = self.sql(query);
            if found == value {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{query} stays {found}, and does not become {value}");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
