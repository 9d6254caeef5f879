//! The global flags, as the configuration needs them and as another command line repeats them.

use std::fmt::Write as _;

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::command::Global;
use crate::config::{Flags, Given};

/// The flags, and whether a variable gave them.
pub(super) fn flags(global: Global, matches: &ArgMatches) -> Flags {
    let Global { config, data_dir, listen, url, insecure_no_auth, color: _, json: _ } = global;
    let given = |text: Option<String>, id: &str, flag: &'static str, variable: &'static str| {
        let from_variable = matches.value_source(id) == Some(ValueSource::EnvVariable);
        text.map(|text| Given { text, by: if from_variable { variable } else { flag } })
    };
    Flags {
        config,
        data_dir,
        listen: given(listen, "listen", "--listen", "TOKENRAIL_LISTEN"),
        url: given(url, "url", "--url", "TOKENRAIL_URL"),
        insecure_no_auth,
    }
}

/// The flags that another command needs to reach the same server, each with a space before it.
pub(super) fn repeated(matches: &ArgMatches) -> String {
    let mut flags = String::new();
    for (id, flag) in
        [("config", "--config"), ("data_dir", "--data-dir"), ("listen", "--listen"), ("url", "--url")]
    {
        let given = matches.value_source(id) == Some(ValueSource::CommandLine);
        for value in matches.get_raw(id).into_iter().flatten().filter(|_| given) {
            // Writing to a string cannot fail.
            let _ = write!(flags, " {flag} {}", quoted(&value.to_string_lossy()));
        }
    }
    flags
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_repeated_flag_reaches_the_program_unchanged() {
        assert_eq!(quoted("https://box:7117/a"), "https://box:7117/a");
        assert_eq!(quoted("/my data"), "'/my data'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
