//! Which server of the database a node uses: a failover moves it to another one, and it must never go back.
//!
//! A server is known by its system identifier, which a standby has from its primary, and by its timeline, a number that
//! each promotion of a standby raises.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::postgres::error::WrongServer;

/// The timeline of a server that does not say which one it is on.
pub(crate) const UNKNOWN_TIMELINE: u32 = 0;

/// Only the name of the current file of the log shows the timeline of a promotion at once. A standby has no such file.
const IDENTITY: &str = "
    SELECT system_identifier,
        CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
    FROM pg_control_system()";

/// What a server says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdentityAnswer {
    Primary(ServerIdentity),
    /// It may be promoted at any moment, so it is not known which timeline a later write would be on.
    Standby,
    /// The server is not quite PostgreSQL, and does not say it.
    Withheld,
}

/// A server of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerIdentity {
    /// The same for a primary and all its standbys.
    pub(crate) system: u64,
    pub(crate) timeline: u32,
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on timeline {}", self.system, self.timeline)
    }
}

impl ServerIdentity {
    /// Asks the server.
    pub(crate) async fn of(client: &Client) -> Result<IdentityAnswer, Error> {
        let answer = match client.simple_query(IDENTITY).await {
            Ok(answer) => answer,
            Err(error) if is_withheld(&error) => return Ok(IdentityAnswer::Withheld),
            Err(error) => return Err(error),
        };
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((row.get(0), row.get(1))),
            _ => None,
        });
        Ok(match row {
            Some((Some(_), None)) => IdentityAnswer::Standby,
            Some((Some(system), Some(timeline))) => {
                Self::parsed(system, timeline).map_or(IdentityAnswer::Withheld, IdentityAnswer::Primary)
            }
            Some((None, _)) | None => IdentityAnswer::Withheld,
        })
    }

    fn parsed(system: &str, timeline: &str) -> Option<Self> {
        Some(Self { system: system.parse().ok()?, timeline: u32::from_str_radix(timeline, 16).ok()? })
    }

    fn read(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let (system, timeline) = text.trim_ascii_end().split_once(' ')?;
        Some(Self { system: system.parse().ok()?, timeline: timeline.parse().ok()? })
    }

    /// Whatever happens, the file has its old content or the new one.
    fn write(self, file: &Path) -> io::Result<()> {
        let new = file.with_extension("new");
        let mut open = fs::OpenOptions::new();
        let mut content = open.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(content, "{} {}", self.system, self.timeline)?;
        content.sync_all()?;
        fs::rename(&new, file)
    }
}

/// Services that are not quite PostgreSQL may lack these functions, or not let anybody call them.
fn is_withheld(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(
            &(SqlState::INSUFFICIENT_PRIVILEGE
                | SqlState::UNDEFINED_FUNCTION
                | SqlState::FEATURE_NOT_SUPPORTED)
        )
    )
}

/// The server that this node has used so far.
#[derive(Debug)]
pub(crate) struct KnownServer {
    seen: Mutex<Seen>,
    /// The highest timeline so far.
    timeline: watch::Sender<u32>,
    failovers: AtomicU64,
}

#[derive(Debug)]
struct Seen {
    /// A file of the data folder, so that a former primary is noticed after a restart too.
    file: Option<PathBuf>,
    /// What the file says.
    before: Option<ServerIdentity>,
    /// `None` before the first connection.
    server: Option<ServerIdentity>,
    /// Whether the file is written.
    is_kept: bool,
    failed_over: Option<Instant>,
    /// The newest refusal, which is logged once.
    told: Option<WrongServer>,
}

impl KnownServer {
    /// `file` is where an earlier process has noted its server.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        let before = file.as_deref().and_then(ServerIdentity::read);
        let seen = Seen { file, before, server: None, is_kept: false, failed_over: None, told: None };
        let timeline = watch::Sender::new(UNKNOWN_TIMELINE);
        Self { seen: Mutex::new(seen), timeline, failovers: AtomicU64::new(0) }
    }

    /// From here on, the server is noted in the file.
    pub(crate) fn keep(&self) {
        let mut seen = self.seen();
        seen.is_kept = true;
        seen.note();
    }

    /// Whether a server that was found may be used. One with a higher timeline is a failover.
    pub(crate) fn admit(&self, found: ServerIdentity) -> Result<(), WrongServer> {
        let mut seen = self.seen();
        if let Err(wrong) = seen.check(found) {
            if seen.told.as_ref() != Some(&wrong) {
                tracing::error!("{wrong}");
                seen.told = Some(wrong.clone());
            }
            return Err(wrong);
        }
        seen.told = None;
        let former =
            |before: &ServerIdentity| before.system == found.system && before.timeline < found.timeline;
        // An earlier process of this node used a former server: others may still repeat what the failover has lost.
        let known = seen.server.replace(found).or(seen.before.filter(former));
        if known == Some(found) {
            return Ok(());
        }
        if seen.is_kept {
            seen.note();
        }
        // While `seen` is locked, so that the timeline never goes back.
        self.timeline.send_replace(found.timeline);
        if let Some(known) = known {
            seen.failed_over = Some(Instant::now());
            self.failovers.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                from = known.timeline,
                to = found.timeline,
                "the database has failed over to another PostgreSQL server"
            );
        }
        Ok(())
    }

    /// The highest timeline so far. [`UNKNOWN_TIMELINE`] before the first connection.
    pub(crate) fn timeline(&self) -> u32 {
        *self.timeline.borrow()
    }

    /// Changes with each failover.
    pub(crate) fn timelines(&self) -> watch::Receiver<u32> {
        self.timeline.subscribe()
    }

    pub(crate) fn failovers(&self) -> u64 {
        self.failovers.load(Ordering::Relaxed)
    }

    /// The database says how long ago the failover to the current server was noticed: this process may be newer.
    pub(crate) fn note_failover(&self, ago: Duration) {
        let mut seen = self.seen();
        if seen.failed_over.is_none() {
            seen.failed_over = Instant::now().checked_sub(ago);
        }
    }

    /// How long ago the newest failover was noticed.
    pub(crate) fn since_failover(&self) -> Option<Duration> {
        self.seen().failed_over.map(|at| at.elapsed())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn check(&self, found: ServerIdentity) -> Result<(), WrongServer> {
        let former = |known: ServerIdentity| known.system == found.system && found.timeline < known.timeline;
        let earlier = self.before.filter(|_| self.server.is_none());
        if let Some(known) = self.server.filter(|known| known.system != found.system) {
            return Err(WrongServer::Another { found: found.system, known: known.system });
        }
        match self.server.or(earlier).filter(|known| former(*known)) {
            Some(known) => {
                let (found, known, file) = (found.timeline, known.timeline, self.file.clone());
                Err(WrongServer::Former { found, known, file })
            }
            None => Ok(()),
        }
    }

    /// Without the file, a restart accepts any server, as a first start does.
    fn note(&mut self) {
        let (Some(file), Some(server)) = (&self.file, self.server) else { return };
        if self.before == Some(server) {
            return;
        }
        if let Some(before) = self.before.filter(|before| before.system != server.system) {
            tracing::warn!(before = %before, now = %server, "the database is now on a different PostgreSQL server");
        }
        match server.write(file) {
            Ok(()) => self.before = Some(server),
            Err(error) => {
                let (file, error) = (file.display(), &error as &dyn std::error::Error);
                tracing::warn!(%file, error, "cannot save the identity of the PostgreSQL server to a file");
            }
        }
    }
}

#[cfg(test)]
mod tests;
