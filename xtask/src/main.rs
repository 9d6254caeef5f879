//! Build, test and check commands of the project: `cargo xtask help`.
//!
//! It uses only the standard library, so that a newcomer's first command compiles in a second.
//!
//! * [`layers`]: which crate may use which
//! * [`tidy`]: names, lengths, numbers and links
//! * [`supply`]: where crates come from, and their licences
//! * [`test`]: every test, with all the set-up it needs
//! * [`fuzz`]: fuzzing with coverage
//! * [`planted`]: the proof that the simulation finds bugs
//! * [`tools`]: the browser and other third-party programs that tests use
//! * [`claude`], [`clients`]: the real programs that the tests talk to, fetched by [`npm`] and [`python`]
//! * [`system`]: programs that are found on `PATH`, or installed from the system's packages
//! * [`bench`]: the benchmarks, and [`peers`], third-party servers that are measured for comparison
//! * [`package`]: the packages for users
//! * [`web`], [`page`]: the page, built into the repository; its screenshots and its speed in a browser
//! * [`workspace`], [`process`]: the files of the project, and the programs that are run on them
#![expect(clippy::print_stdout, reason = "a command line program speaks on standard output")]
#![expect(clippy::print_stderr, reason = "and complains on standard error")]

mod bench;
mod claude;
mod clients;
mod fuzz;
mod layers;
mod npm;
mod package;
mod page;
mod peers;
mod planted;
mod process;
mod python;
mod supply;
mod system;
mod test;
mod tidy;
mod tools;
mod web;
mod workspace;

use std::fmt;
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask COMMAND

  test [--quick | --only NAME]
                      fetch what the tests need, build, run all tests and print a summary table;
                      --quick: only the tests that need no other program and no network, for each change;
                      --only: only the tests whose path contains NAME
  lint                run formatting, clippy, layers, tidy and supply
  layers              check which crate may use which (see docs/explanation/architecture.md)
  tidy                check names, lengths, lists of modules, migrations, links and problem codes
  supply              check the sources and the licences of all dependencies
  ci                  run lint and test in parallel, as continuous integration does
  crash [--kills N]   kill a server under load N times (default 150) and check what its readers received
  soak [--minutes N]  run a mixed load with light faults for N minutes (default 10); fail if memory or
                      descriptors grow
  web [check | test | screenshots | measure]
                      build the page into crates/web/page/dist (requires Node);
                      check: fail if the result differs from the committed files;
                      test: also run the tests of the page and of the client library;
                      screenshots: retake the pictures in docs/screenshots;
                      measure: measure the speed of the page
  package             make the packages for users in target/package (profile dist, takes minutes): a tarball,
                      a Debian package, npm packages and a container image
  planted-bugs        build with known bugs and check that the simulation finds each of them
  fuzz [TARGET] [--seconds N]
                      run cargo-fuzz on one target, or on every target, for N seconds (default 60)
  bench [ARGS]        build the release binaries (profile dist, takes minutes) and run the benchmark with
                      ARGS; for help: bench --help
  help                print this text

Environment of `test`:
  CI=true             treat a test that could not run as failed";

/// The default length of a soak.
const SOAK_MINUTES: u64 = 10;

/// Why a command failed: text for the terminal.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// `Ok` if there are no faults. Otherwise all of them, one per line.
    pub(crate) fn unless_empty(faults: &[String]) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self(faults.join("\n"))) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let command = args.first().map_or("help", String::as_str);
    match run(command, args.get(1..).unwrap_or_default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {command}: failed\n{failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, args: &[String]) -> Result<(), Failure> {
    match command {
        "bench" => return bench::run(args),
        "fuzz" => return fuzz::run(args),
        "test" => return test::run(&which(args)?, None),
        "crash" => return test::longer(&test::KILLS, amount(command, "--kills", args)?),
        "soak" => {
            let minutes = amount(command, "--minutes", args)?.unwrap_or(SOAK_MINUTES);
            return test::longer(&test::SOAK, Some(minutes.saturating_mul(60)));
        }
        "web" => return web(args),
        _ => no_arguments(command, args)?,
    }
    match command {
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        "layers" => layers::run(),
        "tidy" => tidy::run(),
        "supply" => supply::run(),
        "lint" => lint(),
        "package" => package::run(),
        "planted-bugs" => planted::run(),
        "ci" => {
            lint_sources()?;
            // These commands only check the code. The tests must not wait for them, so they have a target folder of
            // their own.
            let mut commands = [clippy(), planted::check()];
            for command in &mut commands {
                command.env("CARGO_TARGET_DIR", workspace::target().join("lint"));
                command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
            }
            test::run(&test::Which::All, Some(test::Part::yielding("clippy", commands.into())))
        }
        unknown => Err(Failure::new(format!("unknown command {unknown}\n\n{HELP}"))),
    }
}

fn which(args: &[String]) -> Result<test::Which, Failure> {
    match args {
        [] => Ok(test::Which::All),
        [flag] if flag == "--quick" => Ok(test::Which::Quick),
        [flag, name] if flag == "--only" => Ok(test::Which::Only(name.clone())),
        _ => Err(Failure::new("usage: cargo xtask test [--quick | --only NAME]")),
    }
}

fn web(args: &[String]) -> Result<(), Failure> {
    match args.first().map(String::as_str) {
        None => web::build(),
        Some("check") => web::check(),
        Some("test") => web::test(),
        Some("screenshots") => page::screenshots(),
        Some("measure") => page::measure(),
        Some(_) => Err(Failure::new("usage: cargo xtask web [check | test | screenshots | measure]")),
    }
}

fn amount(command: &str, option: &str, args: &[String]) -> Result<Option<u64>, Failure> {
    let usage = || Failure::new(format!("usage: cargo xtask {command} [{option} NUMBER]"));
    match args {
        [] => Ok(None),
        [flag, number] if flag == option => number.parse().map(Some).map_err(|_| usage()),
        _ => Err(usage()),
    }
}

fn no_arguments(command: &str, args: &[String]) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::new(format!("{command} takes no arguments, but got {extra}"))),
    }
}

fn lint() -> Result<(), Failure> {
    lint_sources()?;
    process::step("clippy", &mut clippy())?;
    process::step("the planted bugs", &mut planted::check())
}

/// The checks that need no compiler.
fn lint_sources() -> Result<(), Failure> {
    process::step("formatting", process::cargo().args(["fmt", "--all", "--", "--check"]))?;
    layers::run()?;
    tidy::run()?;
    supply::run()
}

fn clippy() -> Command {
    let mut clippy = process::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
    clippy
}
