//! Errors name the keys of the configuration that a user can change, and comments name them for readers of the code. A
//! key that does not exist would send both looking for it.

use std::collections::BTreeSet;

use crate::workspace::Source;

const KEYS: &str = "crates/server/src/config/limits.rs";

/// Checks that every `limits.KEY` in a string or a comment of product code is a key of the configuration.
pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    let Some(keys) = sources.iter().find(|source| source.path == KEYS) else { return };
    let keys: BTreeSet<&str> = keys.text.lines().filter_map(key).collect();
    for source in sources.iter().filter(|source| is_product(source)) {
        for (number, line) in (1..).zip(source.text.lines()) {
            for name in named(line).filter(|name| !name.is_empty() && !keys.contains(name)) {
                faults.push(format!(
                    "{}:{number} names limits.{name}, which is no key of the configuration",
                    source.path
                ));
            }
        }
    }
}

fn is_product(source: &Source) -> bool {
    super::is_code(source) && source.path.starts_with("crates/") && !source.path.contains("tests")
}

/// The key that a line of the table of limits declares.
fn key(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("    ")?.split_once(": ")?;
    (is_name(name) && rest.contains(" = ")).then_some(name)
}

/// The keys that the strings of a line name, or its code between backticks if the line is a comment.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let is_comment = line.trim_start().starts_with("//");
    let quoted = line.split(if is_comment { '`' } else { '"' }).skip(1).step_by(2);
    // In a comment, other code may end with `limits`, and `limits.rs` is a file.
    let is_key = move |text: &&str| !is_comment || text.starts_with("limits.") && *text != "limits.rs";
    quoted.filter(is_key).flat_map(|text| text.split("limits.").skip(1)).map(|after| {
        let end = after.find(|c: char| c != '.' && !is_part(c)).unwrap_or(after.len());
        after[..end].trim_end_matches('.')
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_part)
}

fn is_part(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn an_error_names_only_keys_that_exist() {
        let keys = source(KEYS, "    spool_bytes: u64 = defaults.run.spool_bytes,\n");
        let text = "#[error(\"more than limits.spool_bytes.\")]\nlet bytes = limits.run.spool_bytes;\n\
                    #[error(\"more than limits.run.spool_bytes\")]\n";
        let mut faults = Vec::new();
        check(&[keys, source("crates/a/src/error.rs", text)], &mut faults);
        let fault =
            "crates/a/src/error.rs:3 names limits.run.spool_bytes, which is no key of the configuration";
        assert_eq!(faults, [fault]);
    }

    #[test]
    fn a_comment_names_only_keys_that_exist() {
        let keys = source(KEYS, "    spool_bytes: u64 = defaults.run.spool_bytes,\n");
        let text = "/// At most `limits.spool_bytes`, see `limits.rs` and \"limits.nothing\".\n\
                    // At most `limits.stop_tries`.\n";
        let mut faults = Vec::new();
        check(&[keys, source("crates/a/src/run.rs", text)], &mut faults);
        assert_eq!(
            faults,
            ["crates/a/src/run.rs:2 names limits.stop_tries, which is no key of the configuration"]
        );
    }
}
