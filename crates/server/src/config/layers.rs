//! Reads the layers: the file, and the environment over it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Synchronous;
use super::agents::AgentTable;
use super::limits::LimitsConfig;
use super::problem::{ConfigError, explain, nearest};

/// All tables of a configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tables {
    pub(super) server: ServerTable,
    pub(super) storage: StorageTable,
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
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StorageTable {
    pub(super) synchronous: Option<Synchronous>,
}

/// Variables that are not settings: flags read them, or the supervisor sets them for agents.
const OTHER_VARIABLES: [&str; 6] = [
    "TOKENRAIL_CONFIG",
    "TOKENRAIL_DATA_DIR",
    "TOKENRAIL_LISTEN",
    "TOKENRAIL_LOG",
    "TOKENRAIL_LOG_FORMAT",
    "TOKENRAIL_RUN",
];

/// The file to read: the one asked for, else `./tokenrail.toml`, else the user's.
pub(super) fn find_file(asked: Option<&Path>, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    if let Some(path) = asked {
        return Some(path.to_owned());
    }
    let user = match (env.get("XDG_CONFIG_HOME"), env.get("HOME")) {
        (Some(dir), _) => Some(Path::new(dir).join("tokenrail/tokenrail.toml")),
        (None, Some(home)) => Some(Path::new(home).join(".config/tokenrail/tokenrail.toml")),
        (None, None) => None,
    };
    let here = PathBuf::from("tokenrail.toml");
    [Some(here), user].into_iter().flatten().find(|path| path.is_file())
}

/// Reads the file, and lays the environment over it.
pub(super) fn read(file: Option<&Path>, env: &BTreeMap<String, String>) -> Result<Tables, ConfigError> {
    let mut table = toml::Table::new();
    if let Some(path) = file {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let wrong = |error: &toml::de::Error| in_file(path, &text, error);
        // Once by itself, so that whatever is wrong in it has a line.
        toml::from_str::<Tables>(&text).map_err(|error| wrong(&error))?;
        table = toml::from_str(&text).map_err(|error| wrong(&error))?;
    }
    for (variable, value) in env {
        if variable.starts_with("TOKENRAIL_") && !is_other(variable) {
            overlay(&mut table, variable, value)?;
        }
    }
    Tables::deserialize(table).map_err(|error| ConfigError::Variable {
        variable: "the environment".to_owned(),
        message: explain(error.message()),
    })
}

fn is_other(variable: &str) -> bool {
    let ours = |prefix| variable.starts_with(prefix);
    OTHER_VARIABLES.contains(&variable) || ours("TOKENRAIL_TEST_") || ours("TOKENRAIL_BENCH_")
}

fn in_file(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().map_or(0, |span| span.start).min(text.len());
    let line = 1 + text.char_indices().take_while(|(at, _)| *at < before).filter(|(_, c)| *c == '\n').count();
    ConfigError::File { path: path.to_owned(), line, message: explain(error.message()) }
}

/// `TOKENRAIL_LIMITS_RUNNING_AGENTS=8` is `limits.running_agents = 8`.
fn overlay(table: &mut toml::Table, variable: &str, value: &str) -> Result<(), ConfigError> {
    let sections = ["server", "storage", "limits"];
    let name = variable["TOKENRAIL_".len()..].to_ascii_lowercase();
    let wrong = |message: String| ConfigError::Variable { variable: variable.to_owned(), message };
    let Some((section, key)) = name.split_once('_').filter(|(section, _)| sections.contains(section)) else {
        let section = name.split('_').next().unwrap_or_default();
        let hint = nearest(section, sections.into_iter()).map_or_else(
            || "variables are TOKENRAIL_SERVER_…, TOKENRAIL_STORAGE_… and TOKENRAIL_LIMITS_…".to_owned(),
            |right| format!("did you mean TOKENRAIL_{}_…?", right.to_ascii_uppercase()),
        );
        return Err(wrong(format!("no such setting; {hint}")));
    };
    let entry = table.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    let Some(entries) = entry.as_table_mut() else {
        return Err(wrong(format!("{section} is no table in the configuration file")));
    };
    entries.insert(key.to_owned(), to_value(value));
    // By itself, so that the message names the variable.
    let alone = toml::Table::from_iter([(
        section.to_owned(),
        toml::Value::Table(toml::Table::from_iter([(key.to_owned(), to_value(value))])),
    )]);
    Tables::deserialize(alone).map(drop).map_err(|error| wrong(explain(error.message())))
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
