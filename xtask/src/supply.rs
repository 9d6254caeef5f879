//! What the project is built of: from where it may come, and under which licences.
//!
//! Known weaknesses are another question: `cargo audit` and `cargo deny check advisories` answer it, with a database that
//! they fetch.

use crate::{Failure, process, tidy, workspace};

/// Where crates may come from: nowhere else is what has been published kept as it is.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences that allow what `MIT OR Apache-2.0` allows.
const LICENCES: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

const LOCK_FILES: [&str; 2] = ["Cargo.lock", "tests/fuzz/Cargo.lock"];

pub(crate) fn run() -> Result<(), Failure> {
    let mut faults = Vec::new();
    for path in LOCK_FILES {
        let text = std::fs::read_to_string(workspace::root().join(path))
            .map_err(|error| Failure::new(format!("cannot read {path}: {error}")))?;
        faults.extend(strange_sources(path, &text));
    }
    let tree =
        ["tree", "--workspace", "--locked", "--edges", "all", "--prefix", "none", "--format", "{p}\t{l}"];
    faults.extend(strange_licences(&process::output("licences of all crates", process::cargo().args(tree))?));
    println!("==> supply: {}", tidy::count(&faults));
    Failure::unless_empty(&faults)
}

/// Packages of a lock file that come from elsewhere.
fn strange_sources(path: &str, lock: &str) -> Vec<String> {
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = "));
    let strange = sources.map(|source| source.trim_matches('"')).filter(|source| *source != SOURCE);
    strange.map(|source| format!("{path}: {source} is not an allowed source of crates")).collect()
}

/// Crates of a `cargo tree` that may not be used as the rest may.
fn strange_licences(tree: &str) -> Vec<String> {
    let crates = tree.lines().filter_map(|line| line.split_once('\t'));
    let mut strange: Vec<String> = crates
        .map(|(package, licence)| (package, licence.trim_end_matches(" (*)")))
        .filter(|(package, licence)| !package.contains(" (/") && !is_allowed(licence))
        .map(|(package, licence)| {
            format!("{package}: the licence {licence:?} is not allowed: see xtask/src/supply.rs")
        })
        .collect();
    strange.sort();
    strange.dedup();
    strange
}

/// Whether one may keep to a licence, an SPDX expression, or one with `/` for `OR` as older crates have it: where there
/// is a choice, one of them must be allowed, and of several that hold at once all. An exception only adds to a licence.
fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    let is_known = |name: &str| LICENCES.contains(&name.split(" WITH ").next().unwrap_or(name).trim());
    // `A OR B AND C`, with its brackets gone, is read from the right: where every part of the AND has a choice, all hold.
    licence.split(" AND ").all(|part| part.split(" OR ").any(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_licences_needs_one_that_is_allowed_and_an_and_needs_all() {
        for allowed in [
            "MIT",
            "MIT OR Apache-2.0",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 / MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in ["", "GPL-3.0", "MPL-2.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND LGPL-3.0"] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn crates_come_from_one_place() {
        let lock = format!("[[package]]\nsource = \"{SOURCE}\"\n[[package]]\nname = \"ours\"\n");
        assert_eq!(strange_sources("Cargo.lock", &lock), [""; 0]);
        let faults = strange_sources("Cargo.lock", "source = \"git+https://example.org/a\"\n");
        assert_eq!(faults, ["Cargo.lock: git+https://example.org/a is not an allowed source of crates"]);
    }

    #[test]
    fn a_crate_is_named_once_and_ours_are_not_asked() {
        let tree =
            "ours v0.1.0 (/somewhere)\t\na v1.0.0\tGPL-3.0\nb v1.0.0\tMIT (*)\na v1.0.0\tGPL-3.0 (*)\n";
        assert_eq!(
            strange_licences(tree),
            ["a v1.0.0: the licence \"GPL-3.0\" is not allowed: see xtask/src/supply.rs"]
        );
    }
}
