//! Runs other programs: with their output visible, or within a time limit.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::{Failure, workspace};

/// How often a program with a time limit is checked, in milliseconds.
const LOOK_EVERY_MS: u64 = 50;

/// The cargo that runs this program, at the root of the workspace and without input.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root()).stdin(Stdio::null());
    // `cargo run` sets variables about this package. They would look like a changed environment to the build scripts of
    // other crates, which would then be rebuilt at every change of command.
    for (name, _) in std::env::vars_os() {
        if about_this_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn about_this_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_BIN_")
}

/// Prints what is done, runs the command with its output visible, and fails if the command fails.
pub(crate) fn step(what: &str, command: &mut Command) -> Result<(), Failure> {
    println!("==> {what}");
    let status = command.status().map_err(|error| not_started(command, &error))?;
    passed(what, status)
}

/// Like [`step`], but returns the standard output instead of showing it.
pub(crate) fn output(what: &str, command: &mut Command) -> Result<String, Failure> {
    println!("==> {what}");
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    passed(what, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Like [`step`], but each line of standard output goes to `see`. If the command takes longer than `limit`, it is
/// killed with everything that it has started. A program that ran and failed is a result here, not an error.
pub(crate) fn watched(
    limit: Duration,
    what: &str,
    command: &mut Command,
    mut see: impl FnMut(&str),
) -> Result<ExitStatus, Failure> {
    println!("==> {what}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    let (pid, (ended, end)) = (child.id(), mpsc::channel::<()>());
    let guard = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            end_family(pid);
        }
        late
    });
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(|error| Failure::new(format!("cannot read from {what}: {error}")))?;
            let line = String::from_utf8_lossy(&line);
            see(&line);
        }
    }
    let status = child.wait().map_err(|error| Failure::new(format!("cannot wait for {what}: {error}")))?;
    drop(ended);
    match guard.join() {
        Ok(false) => Ok(status),
        _ => Err(Failure::new(format!("{what}: timed out after {} s", limit.as_secs()))),
    }
}

/// What [`yielding`] runs in a session of its own. A kernel without groups of sessions has no such file.
const YIELD: &str = "{ echo 19 > /proc/self/autogroup; } 2> /dev/null || true
    exec setpriv --pdeathsig TERM nice -n 19 \"$@\" 2>&1";

/// The same command at the lowest priority: it gets the processor time that others leave. It prints everything on
/// standard output.
///
/// Linux shares the processors among sessions, and a process yields only to others of its own session. The agents of
/// the tests have sessions of their own, so this command has one too, which yields as a whole. An interrupt of this
/// program no longer reaches it, so it is ended together with this program.
pub(crate) fn yielding(command: &Command) -> Command {
    let mut shell = Command::new("setsid");
    run_by(shell.args(["sh", "-c", YIELD, "sh"]), command);
    shell
}

/// Appends a command to the arguments of a program that runs it.
pub(crate) fn run_by(runner: &mut Command, command: &Command) {
    runner.stdin(Stdio::null()).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        runner.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => runner.env(name, value),
            None => runner.env_remove(name),
        };
    }
}

/// Kills a process and its descendants: tests that hang are children of the program that was started.
fn end_family(pid: u32) {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next) {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children =
            threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let pids = |listed: String| listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        family.extend(children.flat_map::<Vec<u32>, _>(pids));
        next += 1;
    }
    let pids = family.iter().map(u32::to_string);
    if let Err(error) = Command::new("kill").arg("-KILL").args(pids).status() {
        eprintln!("cannot kill a hanging process: {error}");
    }
}

/// Like [`step`], but the program is killed if it takes longer than `limit`.
pub(crate) fn step_within(limit: Duration, what: &str, command: &mut Command) -> Result<(), Failure> {
    println!("==> {what}");
    let started = Instant::now();
    let mut child = command.stdin(Stdio::null()).spawn().map_err(|error| not_started(command, &error))?;
    loop {
        let looked = child.try_wait();
        match looked.map_err(|error| Failure::new(format!("cannot wait for {what}: {error}")))? {
            Some(status) => return passed(what, status),
            None if limit < started.elapsed() => {
                let ended = child.kill().and_then(|()| child.wait());
                ended.map_err(|error| Failure::new(format!("cannot kill {what}: {error}")))?;
                return Err(Failure::new(format!("{what}: timed out after {} s", limit.as_secs())));
            }
            None => std::thread::sleep(Duration::from_millis(LOOK_EVERY_MS)),
        }
    }
}

fn passed(what: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{what}: {status}"))) }
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start {}: {error}", command.get_program().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_fails_is_an_error_of_its_step() {
        assert!(step("nothing", &mut shell("true")).is_ok());
        assert_eq!(step("something", &mut shell("exit 3")).unwrap_err().0, "something: exit status: 3");
    }

    #[test]
    fn each_line_is_seen_and_a_failure_is_an_answer() {
        let mut seen = Vec::new();
        let status = watched(LONG, "lines", &mut shell("echo one; printf two; exit 1"), |line| {
            seen.push(line.to_owned());
        });
        assert_eq!(seen, ["one", "two"]);
        assert!(!status.unwrap().success());
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let failure = step_within(Duration::ZERO, "waiting", Command::new("sleep").arg("600")).unwrap_err();
        assert_eq!(failure.0, "waiting: timed out after 0 s");
    }

    #[test]
    fn what_hangs_is_ended_with_its_children() {
        let mut hanging = shell("sleep 600 & wait");
        let failure = watched(Duration::from_secs(1), "hanging", &mut hanging, |_| {}).unwrap_err();
        // The output would stay open as long as the child lives.
        assert_eq!(failure.0, "hanging: timed out after 1 s");
    }

    #[test]
    fn what_yields_is_the_same_command_at_the_lowest_priority() {
        let mut command = shell("nice; pwd; echo $SAID $HOME >&2");
        command.current_dir("/").env("SAID", "it").env_remove("HOME");
        let printed = output("yielding", &mut yielding(&command)).unwrap();
        assert_eq!(printed, "19\n/\nit\n");
    }

    #[test]
    fn what_yields_does_so_to_other_sessions_too() {
        // The second line is empty if the kernel has no groups of sessions.
        let command = shell("ps -o sid= -p $$; cat /proc/self/autogroup 2> /dev/null");
        let session = |printed: &str| printed.lines().next().unwrap_or_default().trim().to_owned();
        let ours = output("the session", &mut shell("ps -o sid= -p $$")).unwrap();
        let printed = output("yielding", &mut yielding(&command)).unwrap();
        assert_ne!(session(&printed), session(&ours));
        assert!(printed.lines().nth(1).is_none_or(|group| group.ends_with(" nice 19")), "{printed}");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let failure = step("it", &mut Command::new("no-such-program-anywhere")).unwrap_err();
        assert!(failure.0.starts_with("cannot start no-such-program-anywhere: "), "{failure}");
    }
}
