//! What can be wrong with a configuration, and what to write instead.

use std::net::SocketAddr;
use std::path::PathBuf;

/// What is wrong with the configuration: a sentence that says where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: {message}", path.display())]
    File { path: PathBuf, line: usize, message: String },
    #[error("{variable}: {message}")]
    Variable { variable: String, message: String },
    /// A setting without a known place: from a flag or a default.
    #[error("{0}")]
    Setting(String),
    #[error("--insecure-no-auth requires a loopback address, but {0} is not one")]
    InsecureListen(SocketAddr),
    #[error("cannot find a home folder for the data; set the data folder with --data-dir")]
    NoDataDir,
}

/// A key of a block, and what is wrong with it.
pub(super) type Wrong = (&'static str, String);

/// A required key that the block omits, and what to set.
pub(super) fn missing(key: &'static str, what: &str) -> Wrong {
    (key, format!("{key} is missing: {what}"))
}

/// The wrong word, and the known word that is most similar to it.
pub(super) fn with_suggestion<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(wrong, known) {
        Some(right) => format!("{wrong:?}; did you mean {right:?}?"),
        None => format!("{wrong:?}"),
    }
}

/// The known word that the user may have meant.
pub(super) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|word| (strsim::damerau_levenshtein(wrong, word), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min()
        .map(|(_, word)| word)
}

/// Adds a suggestion to a message of the TOML parser, if there is one.
pub(super) fn explain(message: &str) -> String {
    match unknown_word(message).or_else(|| other_type(message)) {
        Some(suggestion) => format!("{message}; {suggestion}"),
        None => message.to_owned(),
    }
}

/// For an unknown word, the parser lists the known ones in backticks.
fn unknown_word(message: &str) -> Option<String> {
    let mut words = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let wrong = words.next()?;
    nearest(wrong, words).map(|right| format!("did you mean `{right}`?"))
}

/// For a wrong type, the parser says what it found, in quotes or backticks, and what it expected.
fn other_type(message: &str) -> Option<String> {
    let (found, expected) =
        message.strip_prefix("invalid ")?.split_once(": ")?.1.split_once(", expected ")?;
    let text = found.strip_prefix("string \"").and_then(|text| text.strip_suffix('"'));
    let number = ["usize", "u64", "u32"].contains(&expected);
    match text {
        Some(text) if expected == "a sequence" => Some(format!("use a list: [\"{text}\"]")),
        Some(text) if expected == "a boolean" && matches!(text, "true" | "false") => {
            Some(format!("remove the quotes: {text}"))
        }
        Some(text) if (number || expected == "f64") && text.parse::<f64>().is_ok() => {
            Some(format!("remove the quotes: {text}"))
        }
        None if expected == "a string" => Some("add quotes".to_owned()),
        None if number && (found.contains("integer") || found.contains("float")) => {
            Some("use a whole number, 0 or greater".to_owned())
        }
        _ => None,
    }
}
