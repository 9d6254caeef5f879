//! The dependency rule, as a table. Arrows point down only, and siblings do not know each other.

mod circles;
mod page;
mod vocabularies;

use crate::workspace::{self, Source};
use crate::{Failure, tidy};

const PREFIX: &str = "tokenrail-";

/// Each crate, and the crates of the project that its product code may use.
const MAY_USE: [(&str, &[&str]); 9] = [
    ("domain", &[]),
    ("ports", &["domain"]),
    ("parser", &["domain", "ports"]),
    ("runner", &["domain", "ports"]),
    ("persistence", &["domain", "ports"]),
    ("application", &["domain", "ports"]),
    ("presentation", &["domain", "application"]),
    ("web", &[]),
    ("server", &["domain", "ports", "parser", "runner", "persistence", "application", "presentation", "web"]),
];

/// The crates that all tests may use in addition: the fakes and the contract suites, and a private PostgreSQL.
const TESTS_MAY_USE: [&str; 2] = ["ports", "test-postgres"];

/// Third-party crates that must not be dependencies of a crate, so that its code cannot even name them. Its tests may
/// use them.
const STAYS_OUT: [(&str, &[&str]); 5] = [
    ("domain", &["tokio", "actix-web", "rusqlite", "tokio-postgres", "reqwest", "async-trait", "tracing"]),
    ("ports", &["actix-web", "rusqlite", "tokio-postgres", "reqwest"]),
    ("application", &["actix-web", "rusqlite", "tokio-postgres", "reqwest"]),
    ("presentation", &["rusqlite", "tokio-postgres", "reqwest"]),
    ("web", &["tokio", "rusqlite", "tokio-postgres", "reqwest"]),
];

/// Crates whose code must not name an agent program. After the parsers, no code depends on which program printed a
/// line, so a new agent program changes nothing there.
const NAME_NO_AGENT: [&str; 5] = ["domain", "ports", "persistence", "application", "presentation"];
const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// Code that every store shares, and the words that it must not contain.
const NAMES_NO_DATABASE: [&str; 2] = ["crates/persistence/src/format", "crates/ports/src/rules"];
const DATABASES: [&str; 2] = ["sqlite", "postgres"];

pub(crate) fn run() -> Result<(), Failure> {
    let sources = workspace::sources()?;
    let mut faults = faults(&sources);
    circles::check(&sources, &mut faults);
    println!("==> layers: {}", tidy::count(&faults));
    Failure::unless_empty(&faults)
}

fn faults(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        let name = source.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"));
        if let Some(name) = name {
            check_crate(name, &source.text, &mut faults);
        }
        check_names(source, &mut faults);
        check_shared_by_stores(source, &mut faults);
    }
    vocabularies::check(sources, &mut faults);
    page::check(sources, &mut faults);
    faults
}

fn check_crate(name: &str, manifest: &str, faults: &mut Vec<String>) {
    let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
        faults.push(format!("crates/{name} is missing from the table in xtask/src/layers.rs"));
        return;
    };
    let out = STAYS_OUT.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, out)| out);
    for Dependency { section, package } in dependencies(manifest) {
        let in_tests = section == "dev-dependencies";
        let fault = match package.strip_prefix(PREFIX) {
            Some(used) => !(allowed.contains(&used) || in_tests && TESTS_MAY_USE.contains(&used)),
            None => !in_tests && out.contains(&package),
        };
        if fault {
            let used = package.strip_prefix(PREFIX).unwrap_or(package);
            faults.push(format!("{name} must not use {used}: see docs/explanation/architecture.md"));
        }
    }
}

/// Checks that the code of a crate names no agent program. Tests and comments may.
fn check_names(source: &Source, faults: &mut Vec<String>) {
    let Some((name, file)) = source.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
    else {
        return;
    };
    let is_test = file.split('/').any(|part| part == "tests" || part == "tests.rs");
    if !NAME_NO_AGENT.contains(&name) || is_test || !source.has_extension("rs") {
        return;
    }
    let code = source.text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    for (number, line) in (1..).zip(code) {
        let code = line.split("//").next().unwrap_or_default().to_lowercase();
        if let Some(agent) = AGENTS.iter().find(|agent| code.contains(**agent)) {
            faults.push(format!(
                "{}:{number} names {agent}: only parsers and the configuration may",
                source.path
            ));
        }
    }
}

/// The storage format and the rules of an append know no database, so that a second store can use them unchanged.
fn check_shared_by_stores(source: &Source, faults: &mut Vec<String>) {
    let is_shared = |folder: &&str| -> bool {
        let rest = source.path.strip_prefix(*folder);
        rest.is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    };
    if !NAMES_NO_DATABASE.iter().any(is_shared) {
        return;
    }
    for (number, line) in source.lines() {
        let code = line.split("//").next().unwrap_or_default().to_lowercase();
        if DATABASES.iter().any(|database| code.contains(database)) {
            faults.push(format!("{}:{number} names a database: every store shares this code", source.path));
        }
    }
}

struct Dependency<'a> {
    section: &'a str,
    package: &'a str,
}

/// The keys of every dependency table. Our manifests are written by hand, with one dependency per line, so that this
/// simple parser is sufficient.
fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            // `[target.'cfg(unix)'.dependencies]` and `[dependencies.name]` are the long forms.
            let (table, package) = match header.rsplit_once("dependencies.") {
                Some((kind, package)) => (&header[..kind.len() + "dependencies".len()], Some(package)),
                None => (header, None),
            };
            section = table.rsplit('.').next().unwrap_or(table);
            if let Some(package) = package {
                found.push(Dependency { section, package });
                section = "";
            }
        } else if section.ends_with("dependencies")
            && let Some((key, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let key = key.trim().split('.').next().unwrap_or(key).trim_matches('"');
            found.push(Dependency { section, package: renamed(value).unwrap_or(key) });
        }
    }
    found
}

/// The real name in `name = { package = "real", … }`. A new name must not bypass the rule.
fn renamed(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, manifest: &str, expected: &[&str]) {
        let source = Source { path: format!("crates/{name}/Cargo.toml"), text: manifest.to_owned() };
        assert_eq!(faults(&[source]), expected);
    }

    #[test]
    fn the_crates_of_this_workspace_keep_to_the_layers() {
        let sources = workspace::sources().unwrap();
        let mut found = faults(&sources);
        circles::check(&sources, &mut found);
        assert_eq!(found, [""; 0]);
        for (name, _) in MAY_USE {
            let manifest = format!("crates/{name}/Cargo.toml");
            assert!(sources.iter().any(|source| source.path == manifest), "{manifest} is not there");
        }
    }

    #[test]
    fn presentation_must_not_know_the_database() {
        check(
            "presentation",
            "[dependencies]\ntokenrail-domain.workspace = true\ntokenrail-persistence = { path = \"..\" }",
            &["presentation must not use persistence: see docs/explanation/architecture.md"],
        );
    }

    #[test]
    fn the_long_forms_and_a_new_name_do_not_hide_a_dependency() {
        let expected = &["parser must not use runner: see docs/explanation/architecture.md"];
        check("parser", "[dependencies.tokenrail-runner]\nworkspace = true", expected);
        check("parser", "[target.'cfg(unix)'.dependencies]\ntokenrail-runner.workspace = true", expected);
        check("parser", "[build-dependencies]\ntokenrail-runner.workspace = true", expected);
        check("parser", "[dependencies]\nthings = { package = \"tokenrail-runner\", path = \"\" }", expected);
    }

    #[test]
    fn tests_may_use_the_fakes_and_no_more() {
        check("presentation", "[dev-dependencies]\ntokenrail-ports = { features = [\"testing\"] }", &[]);
        check("persistence", "[dev-dependencies]\ntokenrail-test-postgres.workspace = true", &[]);
        check(
            "persistence",
            "[dependencies]\ntokenrail-test-postgres.workspace = true",
            &["persistence must not use test-postgres: see docs/explanation/architecture.md"],
        );
        check(
            "presentation",
            "[dev-dependencies]\ntokenrail-persistence.workspace = true",
            &["presentation must not use persistence: see docs/explanation/architecture.md"],
        );
    }

    #[test]
    fn foreign_crates_stay_out_of_the_layers_that_must_not_name_them() {
        check(
            "application",
            "[dependencies]\nrusqlite.workspace = true\ntokio.workspace = true",
            &["application must not use rusqlite: see docs/explanation/architecture.md"],
        );
        check(
            "presentation",
            "[dependencies]\ntokio-postgres.workspace = true",
            &["presentation must not use tokio-postgres: see docs/explanation/architecture.md"],
        );
        check("domain", "[dev-dependencies]\ntokio.workspace = true", &[]);
        check("domain", "[features]\ntokio = []\n# tokio = 1", &[]);
    }

    #[test]
    fn behind_the_parsers_no_agent_has_a_name() {
        let named = |path: &str| {
            let text = "// Gemini\nmatch kind { \"gemini\" => 1 }\n#[cfg(test)]\nmod tests { \"codex\" }\n";
            faults(&[Source { path: path.to_owned(), text: text.to_owned() }])
        };
        let fault = "crates/application/src/a.rs:2 names gemini: only parsers and the configuration may";
        assert_eq!(named("crates/application/src/a.rs"), [fault]);
        for path in ["crates/application/src/tests/a.rs", "crates/parser/src/a.rs", "tests/a.rs"] {
            assert_eq!(named(path), [""; 0], "{path}");
        }
    }

    #[test]
    fn what_all_stores_share_names_no_database() {
        let named =
            |path: &str, text: &str| faults(&[Source { path: path.to_owned(), text: text.to_owned() }]);
        let fault = |place: &str| format!("{place} names a database: every store shares this code");
        let rows = "crates/persistence/src/format/rows.rs";
        assert_eq!(named(rows, "\nuse rusqlite::Row;"), [fault("crates/persistence/src/format/rows.rs:2")]);
        assert_eq!(named(rows, "// SQLite has no such thing."), [""; 0]);
        let root = "crates/persistence/src/format.rs";
        assert_eq!(named(root, "use crate::sqlite::error;"), [fault("crates/persistence/src/format.rs:1")]);
        let rules = "crates/ports/src/rules/append.rs";
        assert_eq!(named(rules, "use tokio_postgres::Row;"), [fault("crates/ports/src/rules/append.rs:1")]);
        assert_eq!(named("crates/persistence/src/sqlite/store.rs", "use rusqlite::Row;"), [""; 0]);
    }

    #[test]
    fn a_new_crate_needs_a_place_in_the_table() {
        check(
            "helpers",
            "[dependencies]",
            &["crates/helpers is missing from the table in xtask/src/layers.rs"],
        );
    }
}
