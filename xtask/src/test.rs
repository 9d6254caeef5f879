//! Runs every test of the project, and says at the end what has run and what has not.

mod foreign;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Failure, claude, process, tools, web};
use foreign::{BROWSER_TESTS, Foreign, foreign};

/// In the path of each test that mounts a file system.
const MOUNT_TESTS: &str = "with_a_small_disk";

/// The tests that take minutes, by what is in their paths, and how many of them at once. Each part has a run of its
/// own, so that nothing else uses the machine: a thousand clients need both of its processors.
const LONG_TESTS: [(&str, &str, &str); 4] = [
    ("real crashes", "real_crashes::", "2"),
    ("torture", "torture::", "2"),
    ("load", "load::", "1"),
    ("soak", "soak::", "1"),
];

/// Tests that can be made longer, each by a variable.
pub(crate) const KILLS: Longer = Longer { test: "real_crashes::kill_loop", variable: "TOKENRAIL_TEST_KILLS" };
pub(crate) const SOAK: Longer = Longer { test: "soak::", variable: "TOKENRAIL_TEST_SOAK_S" };

pub(crate) struct Longer {
    test: &'static str,
    variable: &'static str,
}

/// Which tests are asked for.
pub(crate) enum Which {
    All,
    /// Those whose path contains this.
    Only(String),
}

/// How one part of the tests went.
#[derive(Debug, PartialEq)]
enum Outcome {
    Passed { tests: u64 },
    Failed { reason: String },
    NotRun { reason: String },
}

struct Row {
    what: &'static str,
    outcome: Outcome,
    took: Duration,
}

impl Row {
    fn of(what: &'static str, part: impl FnOnce() -> Outcome) -> Self {
        let begun = Instant::now();
        let outcome = part();
        Self { what, outcome, took: begun.elapsed() }
    }
}

pub(crate) fn run(which: &Which) -> Result<(), Failure> {
    need_a_c_compiler()?;
    let rows = match which {
        Which::All => every_part()?,
        Which::Only(name) => only_named(name)?,
    };
    println!("\n{}", table(&rows));
    verdict(&rows, is_set("CI"))
}

/// All targets in one go: the tests start the server's program too, and `cargo test` alone would not build it.
fn build() -> Result<(), Failure> {
    let build = ["build", "--workspace", "--all-targets", "--locked"];
    process::step("building everything", process::cargo().args(build))
}

fn every_part() -> Result<Vec<Row>, Failure> {
    let begun = Instant::now();
    // What is fetched is waited for, and what is built is worked for.
    let (built, foreign, npm) = std::thread::scope(|scope| {
        let built = scope.spawn(build);
        let (foreign, npm) = (foreign(|_| true), web::fetch());
        (built.join(), foreign, npm)
    });
    built.map_err(|_| Failure::new("the build has panicked"))??;
    println!("==> built and fetched in {} s", begun.elapsed().as_secs());
    let program = claude_of(&foreign);
    let mut rows = vec![
        Row::of("rust tests", || rust_tests(program, &foreign)),
        Row::of("small disk", || mount_tests(program)),
    ];
    for (what, tests, at_once) in LONG_TESTS {
        rows.push(Row::of(what, || long_tests(what, tests, at_once)));
    }
    for program in &foreign {
        rows.push(Row::of(program.what, || foreign_tests(program)));
    }
    for package in web::PACKAGES {
        rows.push(Row::of(package.what, || package_tests(&package, &npm)));
    }
    Ok(rows)
}

fn only_named(name: &str) -> Result<Vec<Row>, Failure> {
    build()?;
    let named = process::output("looking for tests", cargo_test(None).args(["--", name, "--list"]))?;
    // What no test of that name needs is not fetched.
    let foreign = foreign(|tests| named.lines().any(|test| test.contains(tests)));
    let tests = Row::of("rust tests", || named_tests(name, claude_of(&foreign), &foreign));
    let missing = foreign.iter().filter_map(|it| Some((it.what, it.ready.as_ref().err()?)));
    let missing = missing.map(|(what, reason)| Row::of(what, || not_run(reason)));
    Ok(std::iter::once(tests).chain(missing).collect())
}

/// The real agent, which ordinary tests use too.
fn claude_of(foreign: &[Foreign]) -> Option<&Path> {
    let mut settings = foreign.iter().filter_map(|it| it.ready.as_ref().ok()).flatten();
    settings.find(|(variable, _)| *variable == claude::VARIABLE).map(|(_, path)| path.as_path())
}

fn rust_tests(program: Option<&Path>, foreign: &[Foreign]) -> Outcome {
    let mut tests = cargo_test(program);
    tests.args(["--", "--skip", MOUNT_TESTS]);
    for (_, long, _) in LONG_TESTS {
        tests.args(["--skip", long]);
    }
    for program in foreign {
        tests.args(["--skip", program.tests]);
    }
    counted("rust tests", &mut tests)
}

fn long_tests(what: &str, path: &str, at_once: &str) -> Outcome {
    let mut tests = cargo_test(None);
    tests.args(["--test", "crashes", "--", path, "--skip", tools::STRACE_TESTS, "--skip", MOUNT_TESTS]);
    counted(what, tests.args(["--test-threads", at_once]))
}

/// Runs one of the long tests, as long as asked.
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

/// Runs some of the tests in a browser, with what they print, and with one more variable.
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
fn mount_tests(program: Option<&Path>) -> Outcome {
    let allowed = Command::new("unshare").args(["--mount", "true"]).output();
    if !allowed.is_ok_and(|answer| answer.status.success()) {
        return not_run(&Failure::new("only root can mount a small disk"));
    }
    let mut tests = cargo_test(program);
    tests.args(["--test", "e2e", "--", MOUNT_TESTS]);
    counted("tests with a small disk", &mut tests)
}

/// In a run of their own, when nothing else uses the machine: some take seconds of processor time to start.
fn foreign_tests(program: &Foreign) -> Outcome {
    match &program.ready {
        Ok(settings) => {
            let mut tests = cargo_test(None);
            tests.envs(settings.iter().cloned()).args(["--", program.tests, "--test-threads", "2"]);
            counted(&format!("tests with {}", program.what), &mut tests)
        }
        Err(reason) => not_run(reason),
    }
}

/// Tests in TypeScript, with the types, and that what is built is what is in the repository.
fn package_tests(package: &web::Package, npm: &Result<(), Failure>) -> Outcome {
    if let Err(reason) = npm {
        return not_run(reason);
    }
    if let Err(failure) = package.check() {
        return Outcome::Failed { reason: failure.to_string() };
    }
    let mut tally = Tally::default();
    let what = format!("tests of the {}", package.what);
    match process::watched(PART_LIMIT, &what, &mut package.tests(), |line| tally.see_vitest(line)) {
        Ok(status) => tally.outcome(status.success()),
        Err(failure) => Outcome::Failed { reason: failure.to_string() },
    }
}

fn named_tests(name: &str, program: Option<&Path>, foreign: &[Foreign]) -> Outcome {
    let mut tests = cargo_test(program);
    tests.args(["--", name]);
    for program in foreign {
        match &program.ready {
            Ok(settings) => tests.envs(settings.iter().cloned()),
            Err(_) => tests.args(["--skip", program.tests]),
        };
    }
    counted(&format!("tests named {name}"), &mut tests)
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

/// Each part of the tests is done in a few minutes. One that takes so long hangs.
const PART_LIMIT: Duration = Duration::from_mins(20);

fn counted(what: &str, tests: &mut Command) -> Outcome {
    let mut tally = Tally::default();
    match process::watched(PART_LIMIT, what, tests, |line| tally.see(line)) {
        Ok(status) => tally.outcome(status.success()),
        Err(failure) => Outcome::Failed { reason: failure.to_string() },
    }
}

/// What the test programs said in their last lines.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Counts a line like `test result: ok. 3 passed; 0 failed; 0 ignored; …`, and nothing else.
    fn see(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = rest.split_once(". ") else { return };
        for count in counts.split("; ") {
            match count.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// The same of vitest: a line like `Tests  1 failed | 57 passed | 1 skipped (59)`.
    fn see_vitest(&mut self, line: &str) {
        let Some(rest) = line.trim_start().strip_prefix("Tests ") else { return };
        let counts = rest.split_once('(').map_or(rest, |(counts, _)| counts);
        for count in counts.split('|') {
            match count.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "skipped" | "todo")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// No test at all is no success: a filter that fits nothing would look like one.
    fn outcome(&self, success: bool) -> Outcome {
        let Self { passed, failed, ignored } = *self;
        if !success {
            return Outcome::Failed { reason: format!("{failed} of {}", passed + failed) };
        }
        match (passed, ignored) {
            (0, _) => Outcome::NotRun { reason: "there is no such test".to_owned() },
            (_, 0) => Outcome::Passed { tests: passed },
            _ => Outcome::Failed { reason: format!("{ignored} ignored, and no test may be") },
        }
    }
}

fn not_run(reason: &Failure) -> Outcome {
    Outcome::NotRun { reason: reason.to_string() }
}

fn table(rows: &[Row]) -> String {
    let heading = format!("{:<14} | {:>7} | result", "what", "seconds");
    let lines = rows.iter().map(|Row { what, outcome, took }| {
        let result = match outcome {
            Outcome::Passed { tests } => format!("passed ({tests})"),
            Outcome::Failed { reason } => format!("FAILED ({reason})"),
            Outcome::NotRun { reason } => format!("NOT RUN ({reason})"),
        };
        format!("{what:<14} | {:>7} | {result}", took.as_secs())
    });
    std::iter::once(heading).chain(lines).collect::<Vec<_>>().join("\n")
}

/// A part that did not run may be all right at a desk, where somebody reads the table. Nobody reads it in CI.
fn verdict(rows: &[Row], everything_must_run: bool) -> Result<(), Failure> {
    let mut faults = Vec::new();
    for Row { what, outcome, took: _ } in rows {
        match outcome {
            Outcome::Failed { .. } => faults.push(format!("{what} failed")),
            Outcome::NotRun { .. } if everything_must_run => faults.push(format!("{what} did not run")),
            Outcome::Passed { .. } | Outcome::NotRun { .. } => {}
        }
    }
    if rows.iter().all(|row| matches!(row.outcome, Outcome::NotRun { .. })) {
        faults.push("no test has run".to_owned());
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
    Err(Failure::new("there is no C compiler (cc); on Debian and Ubuntu: apt-get install build-essential"))
}

#[cfg(test)]
mod tests;
