//! The dependencies of the project: the sources and the licences that are allowed.
//!
//! Known vulnerabilities are a separate question: `cargo audit` and `cargo deny check advisories` answer it, with a
//! database that they fetch.

use crate::{Failure, process, tidy, workspace};

/// The only allowed source of crates. No other source keeps published versions unchanged.
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

/// The packages of a lock file that have another source.
fn strange_sources(path: &str, lock: &str) -> Vec<String> {
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = "));
    let strange = sources.map(|source| source.trim_matches('"')).filter(|source| *source != SOURCE);
    strange.map(|source| format!("{path}: {source} is not an allowed source of crates")).collect()
}

/// The crates in the output of `cargo tree` whose licences are not allowed.
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

/// Whether a licence is allowed: an SPDX expression, or one with `/` for `OR`, as in older crates. Of alternatives, one
/// must be allowed. Of licences that apply together, all must be. An exception only adds permissions to a licence.
fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    let is_known = |name: &str| LICENCES.contains(&name.split(" WITH ").next().unwrap_or(name).trim());
    // Without parentheses, each AND is taken as the outer operator. For `A OR B AND C` this is stricter than SPDX.
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
