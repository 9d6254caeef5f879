//! What can be wrong with a configuration, and what to write instead.

use std::net::SocketAddr;
use std::path::PathBuf;

/// What is wrong with the configuration: a sentence that says where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: {message}", path.display())]
    File { path: PathBuf, line: usize, message: String },
    #[error("{variable}: {message}")]
    Variable { variable: String, message: String },
    #[error("agents.{agent}: {message}")]
    Agent { agent: String, message: String },
    #[error("limits.{0} is 0; it must be at least 1")]
    ZeroLimit(&'static str),
    #[error("server.listen: {0:?} is no address; write it like 127.0.0.1:7117")]
    BadListen(String),
    #[error("--insecure-no-auth works on a loopback address only, and {0} is none")]
    InsecureListen(SocketAddr),
    #[error("server.default_agent: no such agent type is configured: {0}")]
    UnknownDefault(String),
    #[error("there is no home folder to keep data in; say where with --data-dir")]
    NoDataDir,
}

/// The wrong word, and the known one that is nearest to it.
pub(super) fn with_suggestion<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(wrong, known) {
        Some(right) => format!("{wrong:?}; did you mean {right:?}?"),
        None => format!("{wrong:?}"),
    }
}

/// The known word that somebody may have meant.
pub(super) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|word| (strsim::damerau_levenshtein(wrong, word), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min()
        .map(|(_, word)| word)
}

/// Adds a suggestion to what the TOML reader says of an unknown word: it lists the known ones in backticks.
pub(super) fn explain(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let suggestion = match (message.starts_with("unknown "), words.next()) {
        (true, Some(wrong)) => nearest(wrong, words),
        _ => None,
    };
    match suggestion {
        Some(right) => format!("{message}; did you mean `{right}`?"),
        None => message.to_owned(),
    }
}
