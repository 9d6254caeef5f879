//! Fuzzing with coverage, for any time. The tests replay the corpus without it.

use std::path::Path;

use crate::{Failure, process, system, workspace};

/// The default time for each target.
const SECONDS: u64 = 60;

/// The limits for one input. An input that takes more time or memory is a finding.
const BOUNDS: [&str; 4] = ["-timeout=1", "-malloc_limit_mb=64", "-rss_limit_mb=2048", "-max_len=4096"];

const GET_IT: &str = "cargo-fuzz is missing: cargo install cargo-fuzz --locked --version 0.13.1";

pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let (target, seconds) = wishes(args)?;
    let folder = workspace::root().join("tests/fuzz");
    let targets = targets(&folder)?;
    if let Some(unknown) = target.filter(|target| !targets.iter().any(|known| known == *target)) {
        return Err(Failure::new(format!("unknown target {unknown}; available: {}", targets.join(", "))));
    }
    if system::found(&["cargo-fuzz"]).is_none() {
        return Err(Failure::new(GET_IT));
    }
    for name in targets.iter().filter(|name| target.is_none_or(|target| target == *name)) {
        let mut fuzz = process::cargo();
        // The sanitizers require a nightly toolchain, and find little in code without `unsafe`.
        fuzz.args(["fuzz", "run", "--fuzz-dir", ".", "--sanitizer", "none", name, "--"]);
        fuzz.arg(format!("-max_total_time={seconds}")).args(BOUNDS);
        process::step(&format!("fuzzing {name} for {seconds} s"), fuzz.current_dir(&folder))?;
    }
    Ok(())
}

/// The target, if one is named, and the number of seconds for each target.
fn wishes(args: &[String]) -> Result<(Option<&String>, u64), Failure> {
    let usage = || Failure::new("usage: cargo xtask fuzz [TARGET] [--seconds N]");
    let seconds = |text: &String| text.parse().map_err(|_| usage());
    match args {
        [] => Ok((None, SECONDS)),
        [flag, number] if flag == "--seconds" => Ok((None, seconds(number)?)),
        [target] if !target.starts_with('-') => Ok((Some(target), SECONDS)),
        [target, flag, number] if flag == "--seconds" => Ok((Some(target), seconds(number)?)),
        _ => Err(usage()),
    }
}

/// The names of all targets, sorted. Each target has a program.
fn targets(folder: &Path) -> Result<Vec<String>, Failure> {
    let programs = folder.join("fuzz_targets");
    let unreadable = |error| Failure::new(format!("cannot read {}: {error}", programs.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&programs).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        found.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_and_a_time_can_be_named() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let name = "cursor".to_owned();
        assert_eq!(wishes(&words("")).unwrap(), (None, SECONDS));
        assert_eq!(wishes(&words("cursor --seconds 5")).unwrap(), (Some(&name), 5));
        assert_eq!(wishes(&words("--seconds 5")).unwrap(), (None, 5));
        assert!(wishes(&words("--seconds")).is_err());
        assert!(wishes(&words("cursor --seconds soon")).is_err());
    }

    #[test]
    fn each_target_has_a_program_and_a_corpus() {
        let folder = workspace::root().join("tests/fuzz");
        let targets = targets(&folder).unwrap();
        assert!(targets.contains(&"line_framer".to_owned()), "{targets:?}");
        assert!(targets.iter().all(|target| folder.join("corpus").join(target).is_dir()), "{targets:?}");
    }
}
