//! A database, and the servers that use it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::time::{Duration, Instant};

use tokenrail_test_postgres::Database;

use crate::Failure;
use crate::server::{self, Durability, Server};

/// The access token, which all servers of a database share.
const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// How long to wait for the background work for earlier output.
const REST_MAX: Duration = Duration::from_secs(20);
const UNPACKED: &str = "SELECT count(*) FROM turns WHERE state = 'ended' AND NOT compacted";

/// The servers of one database. An agent is launched at the first one, if nothing else is said.
pub(super) struct Site<'a> {
    // Before the database, because they must end first.
    pub(super) nodes: Vec<Server>,
    postgres: Option<(&'a Database, String)>,
}

impl<'a> Site<'a> {
    /// One server on SQLite.
    pub(super) fn sqlite() -> Result<Self, Failure> {
        Ok(Self { nodes: vec![Server::start(Durability::Full)?], postgres: None })
    }

    /// No server yet.
    pub(super) fn new(database: &'a Database, url: String) -> Self {
        Self { nodes: Vec::new(), postgres: Some((database, url)) }
    }

    pub(super) fn add_node(&mut self) -> Result<(), Failure> {
        let (database, url) = self.postgres.as_ref().ok_or("SQLite has one server")?;
        let folder = server::folder()?;
        let data = folder.path().join("data");
        fs::DirBuilder::new().mode(0o700).create(&data)?;
        let mut open = fs::OpenOptions::new();
        let token = open.write(true).create_new(true).mode(0o600).open(data.join("token"))?;
        std::io::Write::write_all(&mut &token, TOKEN.as_bytes())?;
        let config = format!(
            "[storage]\nurl = {url:?}\npassword_file = \"{}\"\n[cluster]\nname = \"node-{}\"\n{}",
            database.password_file().display(),
            self.nodes.len() + 1,
            server::agents()?
        );
        self.nodes.push(Server::serve(folder, &config, None)?);
        Ok(())
    }

    /// How many bytes of write-ahead log the database server has written. `None` for SQLite.
    pub(super) fn wal(&self) -> Result<Option<u64>, Failure> {
        self.postgres.as_ref().map(|(database, _)| wal_of(database)).transpose()
    }

    /// Executes SQL as a superuser.
    pub(super) fn sql(&self, sql: &str) -> Result<String, Failure> {
        let (database, _) = self.postgres.as_ref().ok_or("it has no PostgreSQL")?;
        Ok(database.sql(sql))
    }

    /// Waits until the servers have packed what ended. Otherwise this would share the processor with the next
    /// measurement.
    pub(super) async fn rest(&self) -> Result<(), Failure> {
        let Some((database, _)) = &self.postgres else { return self.nodes[0].rest().await };
        let waited = Instant::now();
        while database.sql(UNPACKED) != "0" && waited.elapsed() < REST_MAX {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

/// How many bytes of write-ahead log the server of a database has written.
pub(super) fn wal_of(database: &Database) -> Result<u64, Failure> {
    Ok(database.sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").parse()?)
}
