//! Known advisories for the dependencies of the project (S31). The data is in `advisories.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use semver::{Version, VersionReq};
use serde::Deserialize;

const CRATE_LOCKS: [&str; 2] = ["Cargo.lock", "tests/fuzz/Cargo.lock"];
const PACKAGE_LOCK: &str = "crates/web/package-lock.json";

#[derive(Deserialize)]
struct Known {
    crates: BTreeSet<String>,
    packages: BTreeSet<String>,
    rust: Vec<Rust>,
    npm: Vec<Npm>,
}

/// A `RustSec` advisory. A version outside all of these ranges is affected.
#[derive(Deserialize)]
struct Rust {
    id: String,
    #[serde(rename = "crate")]
    name: String,
    /// `vulnerability`, or another kind of information.
    kind: String,
    patched: Vec<VersionReq>,
    unaffected: Vec<VersionReq>,
}

/// An advisory for an npm package: ranges separated by `||`, each of which is affected.
#[derive(Deserialize)]
struct Npm {
    id: String,
    package: String,
    affected: String,
}

#[derive(Deserialize)]
struct CargoLock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: Version,
    /// Absent for a crate of the project.
    source: Option<String>,
}

#[test]
fn s31_no_crate_that_is_locked_has_a_known_weakness() {
    let known = known();
    let locked: Vec<Locked> = CRATE_LOCKS
        .iter()
        .flat_map(|path| toml::from_str::<CargoLock>(&read(path)).unwrap().package)
        .filter(|locked| locked.source.is_some())
        .collect();
    assert!(locked.len() > 300, "{} crates", locked.len());
    let unknown: BTreeSet<&str> = locked
        .iter()
        .map(|locked| locked.name.as_str())
        .filter(|name| !known.crates.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "look these up, and add them to tests/security/advisories.toml: {unknown:?}");
    let faults: Vec<String> =
        locked.iter().flat_map(|locked| known.against_crate(&locked.name, &locked.version)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn s31_no_package_of_the_page_that_is_locked_has_a_known_weakness() {
    let known = known();
    let lock: serde_json::Value = serde_json::from_str(&read(PACKAGE_LOCK)).unwrap();
    let locked: Vec<(String, Version)> = lock["packages"]
        .as_object()
        .unwrap()
        .iter()
        // Skip the project's own packages: their folders, and the links to them.
        .filter(|(path, package)| path.contains("node_modules/") && package["link"] != true)
        .map(|(path, package)| {
            let name = path.rsplit("node_modules/").next().unwrap().to_owned();
            (name, package["version"].as_str().unwrap().parse().unwrap())
        })
        .collect();
    assert!(locked.len() > 200, "{} packages", locked.len());
    let unknown: BTreeSet<&String> =
        locked.iter().map(|(name, _)| name).filter(|name| !known.packages.contains(*name)).collect();
    assert!(unknown.is_empty(), "look these up, and add them to tests/security/advisories.toml: {unknown:?}");
    let faults: Vec<String> =
        locked.iter().flat_map(|(name, version)| known.against_package(name, version)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn s31_a_version_from_before_the_repair_is_found() {
    let known = known();
    let version = |text: &str| text.parse::<Version>().unwrap();
    let told = known.against_crate("tokio", &version("1.44.1"));
    assert_eq!(told, ["tokio 1.44.1: RUSTSEC-2025-0023 (unsound)"]);
    assert_eq!(known.against_crate("tokio", &version("1.44.2")), [""; 0]);
    let told = known.against_package("ws", &version("7.4.5"));
    assert!(told.contains(&"ws 7.4.5: GHSA-6fc8-4gx4-v693".to_owned()), "{told:?}");
    assert_eq!(known.against_package("ws", &version("8.21.0")), [""; 0]);
}

impl Known {
    fn against_crate(&self, name: &str, version: &Version) -> Vec<String> {
        let about = self.rust.iter().filter(|advisory| advisory.name == name);
        let affecting = about.filter(|advisory| {
            !advisory.patched.iter().chain(&advisory.unaffected).any(|safe| safe.matches(version))
        });
        affecting.map(|advisory| format!("{name} {version}: {} ({})", advisory.id, advisory.kind)).collect()
    }

    fn against_package(&self, name: &str, version: &Version) -> Vec<String> {
        let about = self.npm.iter().filter(|advisory| advisory.package == name);
        let affecting = about.filter(|advisory| {
            advisory.affected.split("||").any(|range| range.parse::<VersionReq>().unwrap().matches(version))
        });
        affecting.map(|advisory| format!("{name} {version}: {}", advisory.id)).collect()
    }
}

fn known() -> Known {
    toml::from_str(&read("tests/security/advisories.toml")).unwrap()
}

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
