use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tokenrail_presentation::ListenLimits;
use tokenrail_runner::ProxyLimits;

use super::*;
use crate::{compose, store};

/// The default of each limit, by its key.
fn defaults() -> BTreeMap<String, u64> {
    let lines = LimitsConfig::default().to_toml();
    let keys = lines.lines().filter_map(|line| line.split_once(" = "));
    keys.map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect()
}

/// The configuration reference, wherever it is in `docs`.
fn reference(folder: &Path) -> Option<String> {
    fs::read_dir(folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return reference(&path);
        }
        let is_it = path.file_name()?.eq_ignore_ascii_case("configuration.md");
        is_it.then(|| fs::read_to_string(path).unwrap())
    })
}

/// A number as the reference writes it: `64`, `16 MiB`, `0 (no limit)`.
fn number(text: &str) -> u64 {
    let text = text.split_once(" (").map_or(text, |(number, _)| number);
    let (number, shift) = match text.split_once(' ') {
        None => (text, 0),
        Some((number, "KiB")) => (number, 10),
        Some((number, "MiB")) => (number, 20),
        Some((number, "GiB")) => (number, 30),
        Some((_, unit)) => panic!("unknown unit: {unit}"),
    };
    number.parse::<u64>().unwrap() << shift
}

#[test]
fn the_reference_states_the_default_of_each_limit() {
    let text = reference(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).unwrap();
    let (_, section) = text.split_once("\n## `[limits]`\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let stated: BTreeMap<String, u64> =
        rows.map(|(key, rest)| (key.to_owned(), number(rest.split_once(" | ").unwrap().0))).collect();
    assert_eq!(stated, defaults());
}

/// If two crates have the same limit, its default must be the same in both. Otherwise one of them would be wrong.
#[test]
fn the_configuration_without_a_file_is_the_default_of_each_crate() {
    let limits = LimitsConfig::default();
    assert_eq!(compose::limits::application_limits(&limits), Limits::default());

    let process = ProcessLimits { exit_grace_ms: limits.result_grace_s * 1000, ..ProcessLimits::default() };
    assert_eq!(compose::limits::process_limits(&limits), process);

    assert_eq!(compose::limits::repository_limits(&limits), RepositoryLimits::default());

    assert_eq!(store::postgres_limits(&limits), PostgresLimits::default());

    let (model, proxy) = (ModelLimits::default(), ProxyLimits::default());
    let http = (limits.connect_timeout_s * 1000, limits.idle_timeout_s * 1000, limits.line_bytes);
    assert_eq!((model.connect_timeout_ms, model.idle_timeout_ms, model.event_bytes), http);
    assert_eq!((proxy.connect_timeout_ms, proxy.idle_timeout_ms, proxy.event_bytes), http);

    let presentation = PresentationConfig::new(0);
    assert_eq!(compose::limits::presentation_limits(&limits, presentation.clone()), presentation);

    assert_eq!(compose::limits::listen_limits(&limits), ListenLimits::default());
}
