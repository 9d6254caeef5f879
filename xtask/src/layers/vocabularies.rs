//! The boundary between the vocabularies of presentation. Each is one folder. No other code of the crate uses it,
//! except the list in `vocabularies.rs`. The native vocabulary may be used by all code outside of the vocabularies.
//! Parts that several vocabularies use are in folders beside them: these use no vocabulary, and nothing else uses them.

use crate::workspace::Source;

const FOLDER: &str = "crates/presentation/src/vocabularies/";
const CRATE: &str = "crates/presentation/src/";
/// The list of vocabularies: one line for each.
const LIST: &str = "crates/presentation/src/vocabularies.rs";
/// The folder of tests that belong to no vocabulary.
const TESTS: &str = "tests";
/// The vocabulary of Tokenrail's own API.
const NATIVE: &str = "native";

/// The folders of parts that every vocabulary may use.
const PARTS: [&str; 2] = ["prompts", "turns"];

/// A vocabulary that speaks through another one: the tests of the other show both.
const GUESTS: [(&str, &str); 1] = [("letta", "kelpie")];

/// Where the folds of a vocabulary are.
const FOLDS: [&str; 8] = [
    "/fold.rs",
    "/fold/",
    "/dialects.rs",
    "/dialects/",
    "/ag_ui/unsent_writer.rs",
    "/mcp/entries.rs",
    "/openai/chunks.rs",
    "/openai/unsent_writer.rs",
];
/// What a fold must not name, because it is pure.
const NOT_IN_A_FOLD: [&str; 5] =
    ["actix_web", "tokio", "crate::api", "tokenrail_application::AgentService", "std::time"];

pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    let names = names(sources);
    for source in sources {
        let Some(file) = source.path.strip_prefix(CRATE) else { continue };
        let home = home(&source.path);
        let is_test = file.split('/').any(|part| part == TESTS || part == "tests.rs");
        if (is_test && home.is_none()) || !source.has_extension("rs") || source.path == LIST {
            continue;
        }
        let product = without_comments(source.text.lines().take_while(|line| line.trim() != "#[cfg(test)]"));
        let all = without_comments(source.text.lines());
        // A vocabulary can be deleted with its tests, so the tests of others must not need it.
        let code = if home.is_some() { &all } else { &product };
        for name in names.iter().filter(|name| Some(**name) != home && names_it(code, name)) {
            let is_guest = home.is_some_and(|host| GUESTS.contains(&(host, *name)));
            if home.is_some() && PARTS.contains(name) {
                continue;
            }
            if (home.is_some() || *name != NATIVE) && !(is_guest && (is_test || !names_it(&product, name))) {
                faults.push(format!(
                    "{} must not use the vocabulary {name}: see docs/explanation/vocabularies.md",
                    source.path
                ));
            }
        }
        if !is_test && home.is_some() && FOLDS.iter().any(|fold| file.contains(fold)) {
            for impure in NOT_IN_A_FOLD.iter().filter(|word| product.contains(**word)) {
                faults.push(format!("{} names {impure}: a fold is pure", source.path));
            }
        }
    }
}

/// The folders of the vocabularies.
fn names(sources: &[Source]) -> Vec<&str> {
    let mut names: Vec<_> = sources.iter().filter_map(|source| home(&source.path)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The vocabulary to which a file belongs: `<name>.rs`, or a file in `<name>/`.
fn home(path: &str) -> Option<&str> {
    let first = path.strip_prefix(FOLDER)?.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|first| *first != TESTS)
}

fn without_comments<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether code names a vocabulary: alone (`vocabularies::letta`), in a group (`vocabularies::{kelpie, letta}`), or
/// from a sibling (`super::letta`).
fn names_it(code: &str, name: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let begins = |text: &str| text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_part));
    let after = |path: &'static str| code.split(path).skip(1);
    let alone = after("vocabularies::").chain(after("super::")).any(begins);
    let mut groups = after("vocabularies::{").filter_map(|rest| rest.split(';').next());
    alone || groups.any(|group| group.split(|char| !is_part(char)).any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let known = [("vocabularies/a.rs", ""), ("vocabularies/b.rs", ""), ("vocabularies/native.rs", "")];
        let source =
            |(path, text): &(&str, &str)| Source { path: format!("{CRATE}{path}"), text: (*text).to_owned() };
        let sources: Vec<_> = known.iter().chain(files).map(source).collect();
        let mut faults = Vec::new();
        check(&sources, &mut faults);
        faults
    }

    #[test]
    fn vocabularies_do_not_know_each_other() {
        let fault = |file: &str, name: &str| {
            vec![format!(
                "{CRATE}{file} must not use the vocabulary {name}: see docs/explanation/vocabularies.md"
            )]
        };
        let file = "vocabularies/a/fold.rs";
        for text in [
            "use crate::vocabularies::b::Fold;",
            "use crate::vocabularies::{\n    a::One,\n    b::Other,\n};",
            "use super::super::b;",
        ] {
            assert_eq!(faults(&[(file, text)]), fault(file, "b"), "{text}");
        }
        assert_eq!(faults(&[(file, "use crate::vocabularies::native::dto;")]), fault(file, "native"));
        assert_eq!(
            faults(&[("vocabularies/native/fold.rs", "use super::super::a;")]),
            fault("vocabularies/native/fold.rs", "a")
        );
        for fine in
            ["use crate::vocabularies::a::dto;", "// vocabularies::b", "use crate::vocabularies::before;"]
        {
            assert_eq!(faults(&[(file, fine)]), [""; 0], "{fine}");
        }
    }

    #[test]
    fn nobody_knows_a_vocabulary_but_the_list_and_the_tests_of_all() {
        let text = "use crate::vocabularies::a;\nuse crate::vocabularies::native;";
        let fault =
            format!("{CRATE}rest.rs must not use the vocabulary a: see docs/explanation/vocabularies.md");
        assert_eq!(faults(&[("rest.rs", text)]), [fault]);
        for file in ["vocabularies.rs", "tests/a.rs", "vocabularies/tests/c.rs"] {
            assert_eq!(faults(&[(file, text)]), [""; 0], "{file}");
        }
    }

    #[test]
    fn every_vocabulary_may_use_the_parts_and_they_use_none() {
        let parts = ("vocabularies/turns.rs", "");
        let text = "use crate::vocabularies::turns::turn_events::TurnEvents;";
        for file in ["vocabularies/a/stream.rs", "vocabularies/prompts/b.rs"] {
            assert_eq!(faults(&[parts, (file, text)]), [""; 0], "{file}");
        }
        for (file, text, name) in [
            ("vocabularies/turns/events.rs", "use crate::vocabularies::native;", "native"),
            ("rest.rs", text, "turns"),
        ] {
            let fault = format!(
                "{CRATE}{file} must not use the vocabulary {name}: see docs/explanation/vocabularies.md"
            );
            assert_eq!(faults(&[parts, (file, text)]), [fault]);
        }
    }

    #[test]
    fn a_vocabulary_can_be_deleted_without_the_tests_of_others() {
        let text = "use crate::vocabularies::a;";
        let inline = format!("#[cfg(test)]\nmod tests {{\n    {text}\n}}");
        for (file, text) in [("vocabularies/b/tests/c.rs", text), ("vocabularies/b/d.rs", &inline)] {
            let fault =
                format!("{CRATE}{file} must not use the vocabulary a: see docs/explanation/vocabularies.md");
            assert_eq!(faults(&[(file, text)]), [fault]);
        }
        let kelpie = ("vocabularies/kelpie.rs", "");
        let text = "use crate::vocabularies::kelpie;";
        assert_eq!(faults(&[kelpie, ("vocabularies/letta/tests.rs", text)]), [""; 0], "a guest");
        assert_eq!(faults(&[kelpie, ("vocabularies/letta/fold.rs", text)]).len(), 1, "but only in tests");
    }

    #[test]
    fn a_fold_is_pure() {
        let fault = format!("{CRATE}vocabularies/a/fold/tools.rs names tokio: a fold is pure");
        assert_eq!(faults(&[("vocabularies/a/fold/tools.rs", "use tokio::time;")]), [fault]);
        assert_eq!(faults(&[("vocabularies/a/stream.rs", "use tokio::time;")]), [""; 0]);
        for file in
            ["ag_ui/unsent_writer.rs", "mcp/entries.rs", "openai/chunks.rs", "openai/unsent_writer.rs"]
        {
            let file = format!("vocabularies/{file}");
            assert_eq!(faults(&[(&file, "use actix_web::web;")]).len(), 1, "{file}");
        }
    }
}
