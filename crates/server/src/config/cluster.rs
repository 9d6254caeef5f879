//! `[cluster]`: this server among those that share a database.

use serde::Deserialize;
use tokenrail_application::AtStop;
use tokenrail_persistence::PostgresLimits;

use super::StorageConfig;
use super::problem::ConfigError;
use super::source::Source;

const NAME_CHARS_MAX: usize = 64;

/// How many beats a server may miss at least before it is declared lost.
const BEATS_MIN: u64 = 4;

/// Ten years, as for the times in `[limits]`.
const SECONDS_MAX: u64 = 315_360_000;

/// As for the sizes in `[limits]`.
const KEEP_BYTES_MAX: usize = 1 << 50;

/// What a server that is stopped does with its agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StopMode {
    /// They keep running, and wait for its next start.
    #[default]
    Stay,
    /// Their processes end with the server: it ends their turns, and leaves to other servers what these can run.
    Leave,
}

impl StopMode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stay => "stay",
            Self::Leave => "leave",
        }
    }

    /// `is_told_to_cancel`: on the command line.
    pub(crate) fn at_stop(self, is_told_to_cancel: bool) -> AtStop {
        match self {
            Self::Leave => AtStop::Leave,
            Self::Stay if is_told_to_cancel => AtStop::Cancel,
            Self::Stay => AtStop::Keep,
        }
    }
}

/// This server among those that share a database. Without a shared database, nothing reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterConfig {
    /// A label for people: letters, digits, `.`, `_` and `-`, so that it can be the value of a header.
    pub(crate) name: String,
    /// How often the server says that it is alive.
    pub(crate) beat_s: u64,
    /// How long the server may be silent before the others declare it lost.
    pub(crate) lost_after_s: u64,
    /// The same after it has stopped in order.
    pub(crate) away_s: u64,
    pub(crate) on_stop: StopMode,
    /// How long the server keeps what was saved, to save it again if a failover of the database has lost it.
    pub(crate) failover_keep_s: u64,
    /// How much of it.
    pub(crate) failover_keep_bytes: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClusterTable {
    name: Option<String>,
    beat_s: Option<u64>,
    lost_after_s: Option<u64>,
    away_s: Option<u64>,
    on_stop: Option<StopMode>,
    failover_keep_s: Option<u64>,
    failover_keep_bytes: Option<usize>,
}

impl ClusterTable {
    pub(super) fn check(
        self,
        source: &Source<'_>,
        storage: &StorageConfig,
    ) -> Result<ClusterConfig, ConfigError> {
        let wrong = |key: &str, why: &str| source.wrong(&["cluster", key], format!("cluster.{key}: {why}"));
        if let (StorageConfig::Sqlite { .. }, Some(key)) = (storage, self.first_key()) {
            return Err(wrong(
                key,
                "only for several servers on one PostgreSQL database; set storage.url too",
            ));
        }
        let Self { name, beat_s, lost_after_s, away_s, on_stop, failover_keep_s, failover_keep_bytes } = self;
        let times = [
            ("beat_s", beat_s),
            ("lost_after_s", lost_after_s),
            ("away_s", away_s),
            ("failover_keep_s", failover_keep_s),
        ];
        for (key, seconds) in times {
            if seconds.is_some_and(|seconds| !(1..=SECONDS_MAX).contains(&seconds)) {
                return Err(wrong(key, &format!("must be between 1 and {SECONDS_MAX}")));
            }
        }
        if failover_keep_bytes.is_some_and(|bytes| KEEP_BYTES_MAX < bytes) {
            return Err(wrong("failover_keep_bytes", &format!("must be at most {KEEP_BYTES_MAX}")));
        }
        if name.as_deref().is_some_and(|name| !is_name(name)) {
            let why = format!(
                "must have 1 to {NAME_CHARS_MAX} characters: letters, digits, \".\", \"_\" and \"-\""
            );
            return Err(wrong("name", &why));
        }
        let kept = PostgresLimits::default();
        let config = ClusterConfig {
            name: name.unwrap_or_else(|| usable(&host_name())),
            beat_s: beat_s.unwrap_or(3),
            lost_after_s: lost_after_s.unwrap_or(30),
            away_s: away_s.unwrap_or(300),
            on_stop: on_stop.unwrap_or_default(),
            failover_keep_s: failover_keep_s.unwrap_or(kept.kept_ms / 1000),
            failover_keep_bytes: failover_keep_bytes.unwrap_or(kept.kept_bytes),
        };
        let least = BEATS_MIN * config.beat_s;
        if config.lost_after_s < least {
            let key = if lost_after_s.is_some() { "lost_after_s" } else { "beat_s" };
            let why = format!(
                "cluster.lost_after_s is {}, but must be at least {BEATS_MIN} times cluster.beat_s: {least}",
                config.lost_after_s
            );
            return Err(wrong(key, &why));
        }
        Ok(config)
    }

    /// A key that is set.
    fn first_key(&self) -> Option<&'static str> {
        let Self { name, beat_s, lost_after_s, away_s, on_stop, failover_keep_s, failover_keep_bytes } = self;
        let keys = [
            ("name", name.is_some()),
            ("beat_s", beat_s.is_some()),
            ("lost_after_s", lost_after_s.is_some()),
            ("away_s", away_s.is_some()),
            ("on_stop", on_stop.is_some()),
            ("failover_keep_s", failover_keep_s.is_some()),
            ("failover_keep_bytes", failover_keep_bytes.is_some()),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_name_char)
}

fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-')
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of a host as the name of a server. Hosts may have any name.
fn usable(host: &str) -> String {
    let chars = host.chars().map(|char| if is_name_char(char) { char } else { '-' });
    let name: String = chars.take(NAME_CHARS_MAX).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_name_becomes_a_name() {
        for (host, name) in [("db-1.example.com", "db-1.example.com"), ("my box é", "my-box--"), ("", "node")]
        {
            assert_eq!(usable(host), name);
        }
        assert_eq!(usable(&"x".repeat(100)).len(), NAME_CHARS_MAX);
        assert!(is_name(&usable(&host_name())));
    }
}
