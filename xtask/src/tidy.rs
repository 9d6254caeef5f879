//! What no compiler checks: lengths, names, numbers, links, lists of modules, where SQL may be, and what product code
//! must never do.

mod comments;
mod functions;
mod hazards;
mod limits;
mod links;
mod module_lists;
#[cfg(test)]
mod tests;
mod type_names;

use std::path::Path;

use crate::Failure;
use crate::workspace::{self, Source};

/// A longer file has more than one subject.
const FILE_LINES_MAX: usize = 350;
/// Tests may be a little longer: they are read one by one.
const TEST_LINES_MAX: usize = 400;

/// Text that only SQL contains. The second part, if there is one, must follow on the same line.
const SQL: [(&str, &str); 5] = [
    ("SELECT ", ""),
    ("INSERT INTO ", ""),
    ("DELETE FROM ", ""),
    ("CREATE TABLE ", ""),
    ("UPDATE ", " SET "),
];

const PROBLEM_CODES: &str = "crates/presentation/src/error/codes.rs";
const PROTOCOL: &str = "docs/reference/protocol/problems.md";

pub(crate) fn run() -> Result<(), Failure> {
    let root = workspace::root();
    let faults = faults(&workspace::sources()?, &root, std::env::var("HOME").ok().as_deref());
    println!("==> tidy: {}", count(&faults));
    Failure::unless_empty(&faults)
}

/// The summary of a check that lists its faults.
pub(crate) fn count(faults: &[String]) -> String {
    match faults.len() {
        0 => "passed".to_owned(),
        1 => "1 problem".to_owned(),
        many => format!("{many} problems"),
    }
}

fn faults(sources: &[Source], root: &Path, home: Option<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        check_length(source, &mut faults);
        check_traits(source, &mut faults);
        check_sql(source, &mut faults);
        check_machine_paths(source, root, home, &mut faults);
        links::check(source, root, &mut faults);
        comments::check(source, &mut faults);
        if is_code(source) {
            hazards::check(source, &mut faults);
            module_lists::check(source, &mut faults);
        }
    }
    check_migrations(sources, &mut faults);
    check_problem_codes(sources, &mut faults);
    limits::check(sources, &mut faults);
    functions::check(sources, &mut faults);
    type_names::check(sources, &mut faults);
    faults
}

/// Rust code that people read: product and build commands, but no generated files and no fixtures.
fn is_code(source: &Source) -> bool {
    let mut folders = source.path.split('/');
    let ours = source.path.starts_with("xtask/src/")
        || source.path.starts_with("crates/") && folders.nth(2) == Some("src");
    ours && source.has_extension("rs") && !folders.any(|folder| matches!(folder, "generated" | "fixtures"))
}

fn check_length(source: &Source, faults: &mut Vec<String>) {
    let lines = source.text.lines().count();
    let is_test = source.path.contains("/tests/") || source.path.ends_with("/tests.rs");
    let max = if is_test { TEST_LINES_MAX } else { FILE_LINES_MAX };
    let is_page = functions::is_product(source) && !source.path.contains("/generated/");
    if (is_code(source) || is_page) && max < lines {
        faults.push(format!("{}: {lines} lines, at most {max}", source.path));
    }
}

/// `I` marks a seam of the system, with adapters behind it. All public traits of ports begin with it, and no others.
fn check_traits(source: &Source, faults: &mut Vec<String>) {
    if !is_code(source) {
        return;
    }
    // The bounds of the contract suites are no ports.
    let in_ports = source.path.starts_with("crates/ports/src/") && !source.path.contains("/testing/");
    for (number, line) in source.lines() {
        let Some((public, name)) = declared_trait(line) else { continue };
        let seam = name.starts_with('I') && name.chars().nth(1).is_some_and(char::is_uppercase);
        if in_ports && public && !seam {
            faults.push(format!(
                "{}:{number}: the name of a port must begin with I, but {name} does not",
                source.path
            ));
        }
        if !in_ports && seam {
            faults
                .push(format!("{}:{number}: {name}: only the names of ports may begin with I", source.path));
        }
    }
}

/// Whether the trait that is declared in this line is public, and its name. `None` if there is none.
fn declared_trait(line: &str) -> Option<(bool, &str)> {
    let (before, rest) = line.trim_start().split_once("trait ")?;
    let words_before_a_trait = |word: &str| word.starts_with("pub") || matches!(word, "unsafe" | "auto");
    if !before.split_whitespace().all(words_before_a_trait) {
        return None;
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    Some((before.starts_with("pub "), &rest[..end]))
}

fn check_sql(source: &Source, faults: &mut Vec<String>) {
    if !is_code(source) || ["crates/persistence/", "xtask/"].iter().any(|home| source.path.starts_with(home))
    {
        return;
    }
    for (number, line) in source.lines() {
        let is_sql = |(first, then): &(&str, &str)| {
            line.split_once(first).is_some_and(|(_, rest)| format!(" {rest}").contains(then))
        };
        if SQL.iter().any(is_sql) {
            faults.push(format!("{}:{number}: SQL belongs in persistence and migrations", source.path));
        }
    }
}

/// A path of the author's machine is of no use to anyone else.
fn check_machine_paths(source: &Source, root: &Path, home: Option<&str>, faults: &mut Vec<String>) {
    let root = root.to_string_lossy();
    // A root like `/app` may be an ordinary name in a document, and a home of `/` is in every path.
    let root = Some(&*root).filter(|root| 1 < root.matches('/').count());
    let home = home.filter(|home| 1 < home.len());
    let places: Vec<&str> = root.into_iter().chain(home).collect();
    for (number, line) in source.lines() {
        if places.iter().any(|place| leads_into(line, place)) {
            faults.push(format!("{}:{number}: a path of this machine", source.path));
        }
    }
}

/// Whether the line names something in this folder. `a/b` and `/a/bc` are not in `/b` or `/a/b`.
fn leads_into(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let part_of_a_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let before = line[..at].chars().next_back();
        let after = line[at + folder.len()..].chars().next();
        !before.into_iter().chain(after).any(part_of_a_name)
    })
}

/// The migrations of a database are `0001_name.sql`, `0002_…`. Two databases would apply a gap or a duplicate
/// differently. Each kind of database has a folder of its own.
fn check_migrations(sources: &[Source], faults: &mut Vec<String>) {
    let in_migrations = |source: &&Source| {
        source.has_extension("sql") && source.path.split('/').any(|folder| folder == "migrations")
    };
    let mut last = ("", 0);
    for source in sources.iter().filter(in_migrations) {
        let folder = source.path.strip_suffix(source.name()).unwrap_or_default();
        let number = if last.0 == folder { last.1 + 1 } else { 1 };
        last = (folder, number);
        let expected = format!("{number:04}_");
        if !source.name().starts_with(&expected) {
            faults.push(format!(
                "{}: the name of the next migration must begin with {expected} and end with .sql",
                source.path
            ));
        }
    }
}

/// Every problem code that a client can receive is documented.
fn check_problem_codes(sources: &[Source], faults: &mut Vec<String>) {
    let text = |path| sources.iter().find(|source| source.path == path).map(|source| source.text.as_str());
    let (Some(code), Some(protocol)) = (text(PROBLEM_CODES), text(PROTOCOL)) else { return };
    let words: Vec<&str> = code.lines().filter_map(problem_code).collect();
    if words.is_empty() {
        faults.push(format!("{PROBLEM_CODES}: found no problem codes"));
    }
    for word in words {
        if !protocol.contains(&format!("| `{word}` |")) {
            faults.push(format!("{PROTOCOL}: the problem code `{word}` of {PROBLEM_CODES} is missing"));
        }
    }
}

/// The problem code in a line of the table: `NotFound "not_found" NOT_FOUND …`.
fn problem_code(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().split_once(" \"")?;
    let is_name =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(char::is_alphanumeric);
    let (word, rest) = rest.split_once("\" ")?;
    let is_status = rest.starts_with(|c: char| c.is_ascii_uppercase());
    (is_name && is_status).then_some(word)
}
