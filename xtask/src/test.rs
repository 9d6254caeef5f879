//! Runs every test of the project, and prints at the end what has run and what has not.

mod foreign;
mod lanes;
mod network;
mod outcome;
mod tally;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::{Failure, claude, clients, package, process, tools, web};
use foreign::{BROWSER_TESTS, Foreign, foreign, paths_of_foreign_tests};
pub(crate) use lanes::Part;
use lanes::{Log, Row};
use network::Network;
use outcome::{Outcome, failed, not_run};
use tally::{counted, counted_by_vitest};

/// Part of the path of each test that mounts a file system.
const MOUNT_TESTS: &str = "with_a_small_disk";

/// The tests that take minutes: the name of the part, the path of its tests, and how many of them run at once. Each
/// part has a run of its own, because a thousand clients need both processors of the machine.
const LONG_TESTS: [(&str, &str, &str); 4] = [
    ("real crashes", "real_crashes::", "2"),
    ("torture", "torture::", "2"),
    ("load", "load::", "1"),
    ("soak", "soak::", "1"),
];

/// How many of the other tests run at once. Most of them wait most of the time.
const TESTS_AT_ONCE: &str = "4";

/// Programs whose tests run at the same time as the other parts, like those of the packages for users. They also wait
/// most of the time, and they measure no speed.
const PATIENT: [&str; 2] = ["schemathesis", "kosoku"];

/// Tests that can be made longer, each by a variable.
pub(crate) const KILLS: Longer = Longer { test: "real_crashes::kill_loop", variable: "TOKENRAIL_TEST_KILLS" };
pub(crate) const SOAK: Longer = Longer { test: "soak::", variable: "TOKENRAIL_TEST_SOAK_S" };

pub(crate) struct Longer {
    test: &'static str,
    variable: &'static str,
}

/// Which tests to run.
pub(crate) enum Which {
    All,
    /// Those that need no other program and no network, and that do not take minutes.
    Quick,
    /// Those whose path contains this.
    Only(String),
}

/// Runs the tests, and another part at the same time.
pub(crate) fn run(which: &Which, beside: Option<Part<'_>>) -> Result<(), Failure> {
    need_a_c_compiler()?;
    let network = Network::least();
    let rows = match which {
        Which::All => every_part(&network, beside)?,
        Which::Quick => quick_part()?,
        Which::Only(name) => only_named(name, &network)?,
    };
    println!("\n{}\n{}{}", table(&rows), failures(&rows), network.told());
    verdict(&rows, is_set("CI"))
}

/// Builds all targets at once: the tests also start the server's program, which `cargo test` alone would not build.
fn build() -> Result<(), Failure> {
    let build = ["build", "--workspace", "--all-targets", "--locked"];
    process::step("building everything", process::cargo().args(build))
}

fn every_part(network: &Network, beside: Option<Part<'_>>) -> Result<Vec<Row>, Failure> {
    let begun = Instant::now();
    // The fetches wait for the network while the build uses the processors.
    let (built, foreign, npm) = std::thread::scope(|scope| {
        let built = scope.spawn(build);
        let (foreign, npm) = (foreign(|_| true), web::fetch());
        (built.join(), foreign, npm)
    });
    built.map_err(|_| Failure::new("the build panicked"))??;
    println!("==> built and fetched in {} s", begun.elapsed().as_secs());
    let (mut parts, mut patient, mut packaged) = (rust_parts(&foreign), Vec::new(), vec![packages()?]);
    for program in &foreign {
        let part = Part::new(program.what, |log: &mut Log| foreign_tests(program, network, log));
        if is_package(program) {
            packaged.push(part);
        } else if PATIENT.contains(&program.what) {
            patient.push(part);
        } else {
            parts.push(part);
        }
    }
    for package in web::PACKAGES {
        let npm = &npm;
        patient.push(Part::new(package.what, move |log| package_tests(&package, npm, log)));
    }
    patient.push(Part::new("Vite, Next apps", |log| app_tests(&npm, log)));
    // These come last, because only they yield. They also pack the client library, in the folder of its tests.
    patient.append(&mut packaged);
    Ok(lanes::run(parts, vec![patient, Vec::from_iter(beside)]))
}

/// Makes the packages. It has a profile of its own, and so does not wait for the tests.
fn packages() -> Result<Part<'static>, Failure> {
    let xtask =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find xtask: {error}")))?;
    let mut make = Command::new(xtask);
    make.arg("package");
    Ok(Part::yielding("packages", vec![make]))
}

fn is_package(program: &Foreign) -> bool {
    program.tests.starts_with(package::TESTS)
}

fn rust_parts(foreign: &[Foreign]) -> Vec<Part<'_>> {
    let program = claude_of(foreign);
    let mut parts = vec![
        Part::new("rust tests", move |log| rust_tests(program, log)),
        Part::new("small disk", move |log| mount_tests(program, log)),
    ];
    for (what, tests, at_once) in LONG_TESTS {
        parts.push(Part::new(what, move |log| long_tests(what, tests, at_once, log)));
    }
    parts
}

/// The row "rust tests" alone. Nothing is fetched.
fn quick_part() -> Result<Vec<Row>, Failure> {
    build()?;
    let tests = Part::new("rust tests", |log: &mut Log| rust_tests(None, log));
    Ok(lanes::run(vec![tests], Vec::new()))
}

fn only_named(name: &str, network: &Network) -> Result<Vec<Row>, Failure> {
    build()?;
    let named = process::output("looking for tests", cargo_test(None).args(["--", name, "--list"]))?;
    // Programs that no test of this name needs are not fetched.
    let foreign = foreign(|tests| named.lines().any(|test| test.contains(tests)));
    let packages = foreign.iter().any(is_package).then(packages).transpose()?;
    let tests = Part::new("rust tests", |log| named_tests(name, &foreign, network, log));
    let missing = foreign.iter().filter_map(|it| Some((it.what, it.ready.as_ref().err()?)));
    let missing = missing.map(|(what, reason)| Part::new(what, move |_| not_run(reason)));
    Ok(lanes::run(packages.into_iter().chain([tests]).chain(missing).collect(), Vec::new()))
}

/// The real agent program, which ordinary tests also use.
fn claude_of(foreign: &[Foreign]) -> Option<&Path> {
    let mut settings = foreign.iter().filter_map(|it| it.ready.as_ref().ok()).flatten();
    settings.find(|(variable, _)| *variable == claude::VARIABLE).map(|(_, path)| path.as_path())
}

fn rust_tests(program: Option<&Path>, log: &mut Log) -> Outcome {
    let mut tests = cargo_test(program);
    tests.args(["--", "--test-threads", TESTS_AT_ONCE, "--skip", MOUNT_TESTS]);
    for (_, long, _) in LONG_TESTS {
        tests.args(["--skip", long]);
    }
    for path in paths_of_foreign_tests() {
        tests.args(["--skip", path]);
    }
    counted("rust tests", &mut tests, log)
}

fn long_tests(what: &str, path: &str, at_once: &str, log: &mut Log) -> Outcome {
    let mut tests = cargo_test(None);
    tests.args(["--test", "crashes", "--", path, "--skip", tools::STRACE_TESTS, "--skip", MOUNT_TESTS]);
    counted(what, tests.args(["--test-threads", at_once]), log)
}

/// Runs one of the long tests, with the requested length.
pub(crate) fn longer(which: &Longer, amount: Option<u64>) -> Result<(), Failure> {
    need_a_c_compiler()?;
    build()?;
    let mut tests = cargo_test(None);
    tests.args(["--test", "crashes", "--", which.test, "--nocapture", "--test-threads", "1"]);
    if let Some(amount) = amount {
        tests.env(which.variable, amount.to_string());
    }
    process::step(which.test, &mut tests)
}

/// Runs some of the tests in a browser, with their output visible and with one more variable.
pub(crate) fn in_the_browser(tests: &str, setting: Option<(&str, &Path)>) -> Result<(), Failure> {
    need_a_c_compiler()?;
    let settings = foreign::browser()?;
    build()?;
    let mut command = cargo_test(None);
    command.envs(settings).envs(setting);
    command.args([
        "--test",
        "e2e",
        "--",
        &format!("{BROWSER_TESTS}{tests}"),
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    process::step(tests, &mut command)
}

/// Tests that mount a small disk of their own, to fill it.
fn mount_tests(program: Option<&Path>, log: &mut Log) -> Outcome {
    if !may_mount() {
        return not_run(&Failure::new("only root can mount a small disk"));
    }
    let mut tests = cargo_test(program);
    // Those that need PostgreSQL run with the others that need it.
    tests.args(["--test", "e2e", "--", MOUNT_TESTS, "--skip", tools::POSTGRES.tests]);
    counted("tests with a small disk", &mut tests, log)
}

fn may_mount() -> bool {
    let allowed = Command::new("unshare").args(["--mount", "true"]).output();
    allowed.is_ok_and(|answer| answer.status.success())
}

/// Tests with a third-party program, in a run of their own: some of them take seconds of processor time to start.
fn foreign_tests(program: &Foreign, network: &Network, log: &mut Log) -> Outcome {
    match &program.ready {
        Ok(settings) => {
            let mut tests = cargo_test(None);
            tests.envs(settings.iter().cloned()).args(["--", program.tests, "--test-threads", "2"]);
            if !may_mount() {
                tests.args(["--skip", MOUNT_TESTS]);
            }
            counted(&format!("tests with {}", program.what), &mut network.around(&tests), log)
        }
        Err(reason) => not_run(reason),
    }
}

/// Tests in TypeScript, including the types. For the page, also checks that the committed build matches its sources.
fn package_tests(package: &web::Package, npm: &Result<(), Failure>, log: &mut Log) -> Outcome {
    if let Err(reason) = npm {
        return not_run(reason);
    }
    if let Err(failure) = package.check() {
        return failed(failure.to_string());
    }
    counted_by_vitest(&format!("tests of the {}", package.what), &mut package.tests(), log)
}

/// The apps of the how-to pages, with the packed client library.
fn app_tests(npm: &Result<(), Failure>, log: &mut Log) -> Outcome {
    if let Err(reason) = npm {
        return not_run(reason);
    }
    match clients::apps() {
        Ok(packages) => counted_by_vitest("tests of the apps", &mut web::app_tests(&packages), log),
        Err(reason) => not_run(&reason),
    }
}

fn named_tests(name: &str, foreign: &[Foreign], network: &Network, log: &mut Log) -> Outcome {
    let mut tests = cargo_test(claude_of(foreign));
    tests.args(["--", name]);
    for program in foreign {
        match &program.ready {
            Ok(settings) => tests.envs(settings.iter().cloned()),
            Err(_) => tests.args(["--skip", program.tests]),
        };
    }
    counted(&format!("tests named {name}"), &mut network.around(&tests), log)
}

fn cargo_test(program: Option<&Path>) -> Command {
    let mut command = process::cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    match program {
        Some(program) => command.env(claude::VARIABLE, program),
        None => command.env_remove(claude::VARIABLE),
    };
    command
}

fn table(rows: &[Row]) -> String {
    let heading = format!("{:<14} | {:>7} | result", "what", "seconds");
    let lines = rows.iter().map(|Row { what, outcome, took }| {
        let result = match outcome {
            Outcome::Passed { tests } => format!("passed ({tests})"),
            Outcome::Done => "passed".to_owned(),
            Outcome::Failed { reason, .. } => format!("FAILED ({reason})"),
            Outcome::NotRun { reason } => format!("NOT RUN ({reason})"),
        };
        format!("{what:<14} | {:>7} | {result}", took.as_secs())
    });
    std::iter::once(heading).chain(lines).collect::<Vec<_>>().join("\n")
}

/// What the tests said that failed. Who reads the last lines of a long log need not search in it.
fn failures(rows: &[Row]) -> String {
    let mut lines = String::new();
    for Row { what, outcome, took: _ } in rows {
        if let Outcome::Failed { said, .. } = outcome {
            for said in said {
                lines.extend(["\n", what, ": ", said, "\n"]);
            }
        }
    }
    lines
}

/// A part that did not run can be acceptable to a developer, who reads the table. Nobody reads it in CI.
fn verdict(rows: &[Row], everything_must_run: bool) -> Result<(), Failure> {
    let mut faults = Vec::new();
    for Row { what, outcome, took: _ } in rows {
        match outcome {
            Outcome::Failed { .. } => faults.push(format!("{what} failed")),
            Outcome::NotRun { .. } if everything_must_run => faults.push(format!("{what} did not run")),
            Outcome::Passed { .. } | Outcome::Done | Outcome::NotRun { .. } => {}
        }
    }
    if rows.iter().all(|row| matches!(row.outcome, Outcome::NotRun { .. })) {
        faults.push("no tests ran".to_owned());
    }
    Failure::unless_empty(&faults)
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| matches!(value.as_str(), "true" | "1"))
}

/// SQLite and zstd are built from their C sources.
fn need_a_c_compiler() -> Result<(), Failure> {
    let asked = Command::new("cc").arg("--version").output();
    if asked.is_ok_and(|answer| answer.status.success()) {
        return Ok(());
    }
    Err(Failure::new("no C compiler (cc) found; on Debian and Ubuntu: apt-get install build-essential"))
}

#[cfg(test)]
mod tests;
