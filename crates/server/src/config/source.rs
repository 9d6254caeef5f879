//! Where a setting was made, so that an error can name the place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::problem::{ConfigError, explain};

/// The file and the environment, as they were read.
pub(super) struct Source<'a> {
    pub(super) file: Option<(PathBuf, String)>,
    pub(super) env: &'a BTreeMap<String, String>,
}

impl Source<'_> {
    /// An error about a setting, with its line or variable. `path` is the sections and the key of the setting.
    pub(super) fn wrong(&self, path: &[&str], message: String) -> ConfigError {
        let variable = format!("TOKENRAIL_{}", path.join("_").to_ascii_uppercase());
        // The names of variables are not case-sensitive.
        if let Some(set) = self.env.keys().find(|set| set.eq_ignore_ascii_case(&variable)) {
            return ConfigError::Variable { variable: set.clone(), message };
        }
        let place = self.file.as_ref().and_then(|(file, text)| Some((file, line_of_key(text, path)?)));
        match place {
            Some((file, line)) => ConfigError::File { path: file.clone(), line, message },
            None => ConfigError::Setting(message),
        }
    }

    /// Whether the file or the environment has this setting.
    pub(super) fn is_set(&self, section: &str, key: &str) -> bool {
        let variable = format!("TOKENRAIL_{section}_{key}");
        let in_file = || {
            let (_, text) = self.file.as_ref()?;
            text.parse::<toml::Table>().ok()?.get(section)?.get(key).cloned()
        };
        self.env.keys().any(|set| set.eq_ignore_ascii_case(&variable)) || in_file().is_some()
    }
}

/// An error of the TOML parser, with its line.
pub(super) fn in_file(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    ConfigError::File { path: path.to_owned(), line, message: explain(error.message()) }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The line of a key. If the key is absent, the line of its section; `None` if that is absent too.
fn line_of_key(text: &str, path: &[&str]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut table = table.get_ref();
    let mut found = None;
    for name in path {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        found = Some(key.span().start);
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    found.map(|offset| line_of(text, offset))
}
