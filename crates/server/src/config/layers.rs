//! Reads the layers: the file, and the environment, which overrides it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::agents::AgentTable;
use super::cluster::ClusterTable;
use super::limits::LimitsConfig;
use super::problem::{ConfigError, explain, nearest, unknown_variable};
use super::source::{Source, in_file};
use super::storage::StorageTable;

/// All tables of a configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tables {
    pub(super) server: ServerTable,
    pub(super) storage: StorageTable,
    pub(super) cluster: ClusterTable,
    pub(super) limits: LimitsConfig,
    pub(super) agents: BTreeMap<String, AgentTable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerTable {
    pub(super) listen: Option<String>,
    pub(super) data_dir: Option<String>,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) allowed_origins: Vec<String>,
    pub(super) default_agent: Option<String>,
    pub(super) public_url: Option<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
}

impl ServerTable {
    /// Rejects an empty data folder, and hosts and origins that no request can ever contain.
    pub(super) fn check(&self, source: &Source<'_>) -> Result<(), ConfigError> {
        if self.data_dir.as_deref() == Some("") {
            let message = "server.data_dir: must not be empty; set a folder or omit it".to_owned();
            return Err(source.wrong(&["server", "data_dir"], message));
        }
        for host in &self.allowed_hosts {
            if host.is_empty() || host.contains(['/', '@', ' ']) {
                let message =
                    format!("server.allowed_hosts: invalid host {host:?}; expected a form like \"box:7117\"");
                return Err(source.wrong(&["server", "allowed_hosts"], message));
            }
        }
        for origin in &self.allowed_origins {
            if !is_origin(origin) {
                let message = format!(
                    "server.allowed_origins: invalid origin {origin:?}; expected a form like \"https://app.example\" \
                     or \"http://localhost:5173\": lower case, without a path, a wildcard or the default port"
                );
                return Err(source.wrong(&["server", "allowed_origins"], message));
            }
        }
        Ok(())
    }
}

fn is_origin(origin: &str) -> bool {
    let (host, default_port) = match origin.split_once("://") {
        Some(("http", host)) => (host, ":80"),
        Some(("https", host)) => (host, ":443"),
        _ => return false,
    };
    let strange = |c: char| matches!(c, '/' | '@' | ' ' | '*' | '?' | '#') || c.is_ascii_uppercase();
    !host.is_empty() && !host.contains(strange) && !host.ends_with(default_port)
}

/// Variables that are not settings: flags read them, or the supervisor sets them for agents.
const OTHER_VARIABLES: [&str; 8] = [
    "TOKENRAIL_CONFIG",
    "TOKENRAIL_DATA_DIR",
    "TOKENRAIL_LISTEN",
    "TOKENRAIL_LOG",
    "TOKENRAIL_LOG_FORMAT",
    "TOKENRAIL_RUN",
    super::TOKEN_VARIABLE,
    "TOKENRAIL_URL",
];

/// The file to read: the one that the user names, else `./tokenrail.toml`, else the one in the user's config folder.
pub(super) fn find_file(asked: Option<&Path>, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    if let Some(path) = asked {
        return Some(path.to_owned());
    }
    usual_files(env).into_iter().find(|path| path.is_file())
}

/// The files that are looked for if the user names none. The first one that exists is read.
pub(crate) fn usual_files(env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    [Some(PathBuf::from("tokenrail.toml")), user_file(env)].into_iter().flatten().collect()
}

/// The file in the user's config folder. `None` if the environment names no such folder.
pub(crate) fn user_file(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    match (env.get("XDG_CONFIG_HOME"), env.get("HOME")) {
        (Some(dir), _) => Some(Path::new(dir).join("tokenrail/tokenrail.toml")),
        (None, Some(home)) => Some(Path::new(home).join(".config/tokenrail/tokenrail.toml")),
        (None, None) => None,
    }
}

/// Reads the file, then applies the environment.
pub(super) fn read<'a>(
    file: Option<&Path>,
    env: &'a BTreeMap<String, String>,
) -> Result<(Tables, Source<'a>), ConfigError> {
    let mut table = toml::Table::new();
    let mut source = Source { file: None, env };
    if let Some(path) = file {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let wrong = |error: &toml::de::Error| in_file(path, &text, error);
        // First the file alone, so that every error in it has a line.
        toml::from_str::<Tables>(&text).map_err(|error| wrong(&error))?;
        table = toml::from_str(&text).map_err(|error| wrong(&error))?;
        source.file = Some((path.to_owned(), text));
    }
    for (variable, value) in env {
        if variable.starts_with("TOKENRAIL_") && !is_other(variable) {
            overlay(&mut table, variable, value)?;
        }
    }
    let tables = Tables::deserialize(table).map_err(|error| ConfigError::Variable {
        variable: "the environment".to_owned(),
        message: explain(error.message()),
    })?;
    Ok((tables, source))
}

fn is_other(variable: &str) -> bool {
    let ours = |prefix| variable.starts_with(prefix);
    OTHER_VARIABLES.contains(&variable) || ours("TOKENRAIL_TEST_") || ours("TOKENRAIL_BENCH_")
}

/// `TOKENRAIL_LIMITS_RUNNING_AGENTS=8` is `limits.running_agents = 8`.
fn overlay(table: &mut toml::Table, variable: &str, value: &str) -> Result<(), ConfigError> {
    let sections = ["server", "storage", "cluster", "limits"];
    let name = variable["TOKENRAIL_".len()..].to_ascii_lowercase();
    let wrong = |message: String| ConfigError::Variable { variable: variable.to_owned(), message };
    let Some((section, key)) = name.split_once('_').filter(|(section, _)| sections.contains(section)) else {
        let section = name.split('_').next().unwrap_or_default();
        let other =
            nearest(variable, OTHER_VARIABLES.into_iter()).map(|right| format!("did you mean {right}?"));
        let hint = other.or_else(|| {
            let right = nearest(section, sections.into_iter())?.to_ascii_uppercase();
            Some(format!("did you mean TOKENRAIL_{right}_…?"))
        });
        let usual = "settings begin with TOKENRAIL_SERVER_, TOKENRAIL_STORAGE_, TOKENRAIL_CLUSTER_ or TOKENRAIL_LIMITS_";
        let hint = hint.unwrap_or_else(|| usual.to_owned());
        return Err(wrong(format!("no such setting; {hint}")));
    };
    let entry = table.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    let Some(entries) = entry.as_table_mut() else {
        return Err(wrong(format!("{section} is not a table in the configuration file")));
    };
    // First this variable alone, so that the message names it.
    let alone = |value: &toml::Value| {
        let entries = toml::Table::from_iter([(key.to_owned(), value.clone())]);
        let table = toml::Table::from_iter([(section.to_owned(), toml::Value::Table(entries))]);
        Tables::deserialize(table).map(drop)
    };
    let read = to_value(value);
    let plain = toml::Value::String(value.to_owned());
    match alone(&read) {
        Ok(()) => entries.insert(key.to_owned(), read),
        // A name may consist of digits.
        Err(_) if alone(&plain).is_ok() => entries.insert(key.to_owned(), plain),
        Err(error) => {
            let message = error.message();
            return Err(wrong(unknown_variable(message, section).unwrap_or_else(|| explain(message))));
        }
    };
    Ok(())
}

fn to_value(text: &str) -> toml::Value {
    // A list is written as in the file: ["a", "b"].
    let parsed = format!("value = {text}").parse::<toml::Table>().ok();
    let list = parsed.and_then(|mut table| table.remove("value")).filter(toml::Value::is_array);
    if let Some(list) = list {
        return list;
    }
    if let Ok(number) = text.parse::<i64>() {
        return toml::Value::Integer(number);
    }
    toml::Value::String(text.to_owned())
}
