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

/// A longer list of known words is not shown, only the words in it that are most similar.
const LISTED_MAX: usize = 24;
/// How many words a suggestion has if no known word is similar enough to be meant.
const SIMILAR: usize = 3;

/// Adds a suggestion to a message of the TOML parser, if there is one, and uses no names of Rust types.
pub(super) fn explain(message: &str) -> String {
    let mut shown = message.to_owned();
    for (name, words) in TYPES {
        shown = shown.replace(&format!("expected {name}"), &format!("expected {words}"));
    }
    let Some((wrong, known)) = unknown_word(message) else {
        return other_type(message).map_or(shown.clone(), |suggestion| format!("{shown}; {suggestion}"));
    };
    if known.len() <= LISTED_MAX {
        return match nearest(wrong, known.iter().copied()) {
            Some(right) => format!("{shown}; did you mean `{right}`?"),
            None => shown,
        };
    }
    let kind = message.split('`').next().unwrap_or_default();
    format!("{kind}`{wrong}`; {}", similar(wrong, &known, |word| format!("`{word}`")))
}

/// What to say about an unknown key in a variable. `None` if the message is about something else.
pub(super) fn unknown_variable(message: &str, section: &str) -> Option<String> {
    let (wrong, known) = unknown_word(message)?;
    let variable = |word: &str| format!("TOKENRAIL_{section}_{word}").to_ascii_uppercase();
    Some(format!("no such setting; {}", similar(wrong, &known, variable)))
}

/// Suggests the known word that may be meant, or else the most similar ones.
fn similar(wrong: &str, known: &[&str], shown: impl Fn(&str) -> String) -> String {
    if let Some(right) = nearest(wrong, known.iter().copied()) {
        return format!("did you mean {}?", shown(right));
    }
    let mut known = known.to_vec();
    known.sort_by_key(|word| strsim::damerau_levenshtein(wrong, word));
    let words: Vec<String> = known.into_iter().take(SIMILAR).map(shown).collect();
    format!("the most similar ones are {}", words.join(", "))
}

/// For an unknown word, the parser lists the known ones in backticks.
fn unknown_word(message: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    Some((words.next()?, words.collect()))
}

/// The types of numbers, as the parser names them, and in words.
const TYPES: [(&str, &str); 4] =
    [("usize", "a whole number"), ("u64", "a whole number"), ("u32", "a whole number"), ("f64", "a number")];

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
