//! A database for one test.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use crate::instance::Instance;
use crate::{PASSWORD, ROLE};

/// An empty database. It is removed when this is dropped, even if connections are still open.
#[derive(Debug)]
pub struct Database {
    name: String,
    secrets: TempDir,
    instance: Arc<Instance>,
}

impl Database {
    pub(crate) fn new(instance: Arc<Instance>, name: String) -> Self {
        instance.sql("postgres", &format!("CREATE DATABASE {name} OWNER {ROLE}"));
        let secrets = tempfile::tempdir().expect("a folder");
        let mut open = OpenOptions::new();
        let file = open.write(true).create_new(true).mode(0o600).open(secrets.path().join("password"));
        file.expect("a file").write_all(format!("{PASSWORD}\n").as_bytes()).expect("written");
        Self { name, secrets, instance }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `postgres://ROLE@127.0.0.1:PORT/NAME`, without the password.
    pub fn url(&self) -> String {
        self.url_at(&self.instance.address())
    }

    pub(crate) fn url_at(&self, address: &str) -> String {
        format!("postgres://{ROLE}@{address}/{}", self.name)
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// A file with the password and a line end. Only its owner can read it.
    pub fn password_file(&self) -> PathBuf {
        self.secrets.path().join("password")
    }

    /// A folder of this database, for example for other secrets.
    pub fn folder(&self) -> &Path {
        self.secrets.path()
    }

    /// Executes SQL as a superuser. Returns the rows, with `|` between values.
    pub fn sql(&self, sql: &str) -> String {
        self.instance.sql(&self.name, sql)
    }

    /// A session of a superuser that reads SQL from its standard input.
    pub(crate) fn session(&self) -> Command {
        let mut psql = self.instance.client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-d", &self.name]);
        psql
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.instance.runs() {
            return;
        }
        // It may not answer any more, and goes with its server at the latest.
        let mut psql = self.instance.psql("postgres");
        psql.arg(format!("DROP DATABASE {} WITH (FORCE)", self.name));
        let _ = psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
