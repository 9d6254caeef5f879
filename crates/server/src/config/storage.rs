//! `[storage]`: where the data is stored.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::problem::ConfigError;
use super::source::Source;
use super::{AgentConfig, RunnerConfig, absolute, expand_home};

/// A variable that all programs of PostgreSQL read.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Limits that have a meaning only for SQLite.
pub(super) const LIMITS_OF_SQLITE: [&str; 6] =
    ["flood_bytes", "flood_rest", "flood_wait_ms", "start_check_bytes", "wal_bytes", "wipe_bytes"];

/// Limits that have a meaning only for PostgreSQL.
pub(super) const LIMITS_OF_POSTGRES: [&str; 20] = [
    "postgres_writers",
    "postgres_connections",
    "postgres_connection_wait_ms",
    "postgres_openings",
    "postgres_queued_appends",
    "postgres_statement_agents",
    "postgres_statement_bytes",
    "postgres_connect_timeout_ms",
    "postgres_answer_timeout_ms",
    "postgres_repeat_timeout_ms",
    "postgres_read_timeout_ms",
    "postgres_lock_timeout_ms",
    "postgres_tcp_timeout_ms",
    "postgres_migration_wait_ms",
    "postgres_start_wait_ms",
    "postgres_hints",
    "postgres_hint_pause_ms",
    "postgres_hint_pause_per_node_ms",
    "postgres_hint_check_ms",
    "postgres_hint_wait_ms",
];

/// Where the data is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StorageConfig {
    /// In a database of SQLite in the data folder.
    Sqlite { synchronous: SyncMode },
    /// In a database of PostgreSQL. The output of running agents is still in the data folder.
    Postgres(PostgresBlock),
}

/// When a commit counts as durable in SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SyncMode {
    /// When the disk has it: survives a power cut.
    Full,
    /// When the operating system has it: survives a crash of the server, not a power cut.
    Normal,
}

/// A database of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostgresBlock {
    /// Contains no password.
    pub(crate) url: String,
    pub(crate) password: PasswordSource,
    pub(crate) durability: DurabilityMode,
}

impl PostgresBlock {
    /// A database that a command line names. What it does not say is as configured for the server.
    ///
    /// # Errors
    /// What is wrong with the URL.
    pub(crate) fn given(
        url: &str,
        password_file: Option<&Path>,
        configured: &StorageConfig,
    ) -> Result<Self, String> {
        check_url(url)?;
        let configured = match configured {
            StorageConfig::Postgres(block) => Some(block),
            StorageConfig::Sqlite { synchronous: _ } => None,
        };
        let password = match (password_file, configured) {
            (Some(file), _) => PasswordSource::File(file.to_owned()),
            (None, Some(block)) => block.password.clone(),
            (None, None) => variable(std::env::var(PASSWORD_VARIABLE).ok()),
        };
        let durability = configured.map(|block| block.durability).unwrap_or_default();
        Ok(Self { url: url.to_owned(), password, durability })
    }
}

/// Where the password comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PasswordSource {
    /// The database asks for none, or a client certificate takes its place.
    None,
    /// A file. It is read when the server starts.
    File(PathBuf),
    /// The environment of the server.
    Variable(DatabasePassword),
}

/// A password. It must never be printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DatabasePassword(String);

impl DatabasePassword {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabasePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabasePassword(hidden)")
    }
}

/// When a commit counts as durable in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DurabilityMode {
    /// As the database is set up: when a standby has it, if there is a synchronous one.
    #[default]
    Auto,
    /// When a standby has it. Without a synchronous standby, the server is not ready.
    Replicated,
    /// When the disk of the primary has it. A standby may lack the newest commits.
    Primary,
}

impl DurabilityMode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Replicated => "replicated",
            Self::Primary => "primary",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StorageTable {
    pub(super) synchronous: Option<SyncMode>,
    pub(super) url: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) durability: Option<DurabilityMode>,
}

impl StorageTable {
    pub(super) fn check(
        self,
        source: &Source<'_>,
        home: Option<&Path>,
    ) -> Result<StorageConfig, ConfigError> {
        let wrong = |key: &str, why: &str| source.wrong(&["storage", key], format!("storage.{key}: {why}"));
        let Self { synchronous, url, password_file, durability } = self;
        let Some(url) = url else {
            let without_url = "only for PostgreSQL; set storage.url too";
            if let Some(limit) = LIMITS_OF_POSTGRES.iter().find(|limit| source.is_set("limits", limit)) {
                return Err(source.wrong(&["limits", limit], format!("limits.{limit}: {without_url}")));
            }
            return match (password_file, durability) {
                (Some(_), _) => Err(wrong("password_file", without_url)),
                (None, Some(_)) => Err(wrong("durability", without_url)),
                (None, None) => {
                    Ok(StorageConfig::Sqlite { synchronous: synchronous.unwrap_or(SyncMode::Full) })
                }
            };
        };
        check_url(&url).map_err(|why| wrong("url", &why))?;
        if synchronous.is_some() {
            return Err(wrong("synchronous", "only for SQLite; with storage.url, use storage.durability"));
        }
        if let Some(limit) = LIMITS_OF_SQLITE.iter().find(|limit| source.is_set("limits", limit)) {
            let why = format!("limits.{limit}: only for SQLite; remove it, because storage.url is set");
            return Err(source.wrong(&["limits", limit], why));
        }
        let password = match password_file {
            Some(file) if file.as_os_str().is_empty() => {
                return Err(wrong("password_file", "must not be empty; name a file or omit it"));
            }
            Some(file) => PasswordSource::File(absolute(&expand_home(&file, home))),
            None => of_environment(source.env),
        };
        Ok(StorageConfig::Postgres(PostgresBlock {
            url,
            password,
            durability: durability.unwrap_or_default(),
        }))
    }
}

/// Rejects agent types that would pass the password of the database on to agents.
pub(super) fn keep_password(
    storage: &StorageConfig,
    agents: &BTreeMap<String, AgentConfig>,
    source: &Source<'_>,
) -> Result<(), ConfigError> {
    let StorageConfig::Postgres(PostgresBlock { password: PasswordSource::Variable(_), .. }) = storage else {
        return Ok(());
    };
    let passes_it = |agent: &AgentConfig| match &agent.runner {
        RunnerConfig::Process(process) => process.pass_env.iter().any(|name| name == PASSWORD_VARIABLE),
        _ => false,
    };
    let Some((name, _)) = agents.iter().find(|(_, agent)| passes_it(agent)) else { return Ok(()) };
    let message = format!(
        "agents.{name}: pass_env: agents must not get {PASSWORD_VARIABLE}, the password of storage.url; remove it from \
         the list, or use storage.password_file"
    );
    Err(source.wrong(&["agents", name, "pass_env"], message))
}

fn of_environment(env: &BTreeMap<String, String>) -> PasswordSource {
    variable(env.get(PASSWORD_VARIABLE).cloned())
}

fn variable(password: Option<String>) -> PasswordSource {
    match password.filter(|password| !password.is_empty()) {
        Some(password) => PasswordSource::Variable(DatabasePassword(password)),
        None => PasswordSource::None,
    }
}

/// What is wrong with the URL. The text does not repeat it, because it may contain a password.
fn check_url(url: &str) -> Result<(), String> {
    const EXAMPLE: &str = "postgres://tokenrail@db.example.com/tokenrail?sslmode=verify-full";
    let Some(rest) = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme)) else {
        return Err(format!("must begin with postgres://; expected a form like {EXAMPLE}"));
    };
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or_default();
    let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
    let is_password = |parameter: &str| parameter.split('=').next() == Some("password");
    // A password that was not escaped may contain a slash. Then its "@" is in the path.
    let unescaped = place.contains('@') && login.is_empty();
    if login.contains(':') || unescaped || parameters.split('&').any(is_password) {
        return Err(
            "must not contain a password, because other users may see it; put it into a file and set \
                    storage.password_file, or set PGPASSWORD"
                .to_owned(),
        );
    }
    if authority.is_empty() && !parameters.split('&').any(|parameter| parameter.starts_with("host=")) {
        return Err(format!("contains no host; expected a form like {EXAMPLE}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_password_is_refused_without_repeating_it() {
        for url in [
            "postgres://me:s3cret@db/tokenrail",
            "postgresql://me:s3cret@db1:5432,db2:5432/tokenrail",
            "postgres://me:s3/cret@db/tokenrail",
            "postgres://me@db/tokenrail?sslmode=require&password=s3cret",
            "postgres://:s3cret@db/tokenrail",
        ] {
            let why = check_url(url).unwrap_err();
            assert!(why.contains("storage.password_file") && why.contains("PGPASSWORD"), "{url}: {why}");
            assert!(!why.contains("cret"), "{why}");
        }
    }

    #[test]
    fn a_url_names_one_or_more_hosts() {
        for url in [
            "postgres://db",
            "postgres://me@db/tokenrail",
            "postgresql://me@db1:5432,db2:5433/tokenrail?target_session_attrs=read-write&sslmode=verify-full",
            "postgres://me@[::1]:5432/tokenrail",
            "postgres://me@%2Fvar%2Frun%2Fpostgresql/tokenrail",
            "postgres:///tokenrail?host=/var/run/postgresql",
        ] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        assert!(check_url("mysql://me@db/tokenrail").unwrap_err().contains("must begin with postgres://"));
        assert!(check_url("db/tokenrail").unwrap_err().contains("must begin with postgres://"));
        assert!(check_url("postgres:///tokenrail").unwrap_err().contains("contains no host"));
    }

    #[test]
    fn a_password_is_never_shown() {
        let env = BTreeMap::from([(PASSWORD_VARIABLE.to_owned(), "s3cret".to_owned())]);
        let PasswordSource::Variable(password) = of_environment(&env) else { panic!("it is set") };
        assert_eq!(password.reveal(), "s3cret");
        assert!(!format!("{password:?}").contains("s3cret"));
        let empty = BTreeMap::from([(PASSWORD_VARIABLE.to_owned(), String::new())]);
        assert_eq!(of_environment(&empty), PasswordSource::None);
    }
}
