//! A program that can be nothing but a supervisor, and what that starts: what the tests start in place of the server's
//! own.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use tokenrail_domain::Timestamp;
use tokenrail_ports::testing::StoppedClock;
use tokenrail_runner::Protocol;

fn main() -> ExitCode {
    if let Some(exit) = tokenrail_runner::supervisor_command() {
        return exit;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words = |program: &[&str]| program.iter().map(OsString::from).collect::<Vec<_>>();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["converse", "--exec-for", parent, "-", folder, "--", ref program @ ..] => match parent.parse() {
            Ok(parent) => tokenrail_runner::exec_for(parent, Path::new(folder), &words(program)),
            Err(_) => ExitCode::from(2),
        },
        ["converse", protocol, folder, "--", ref program @ ..] => match Protocol::from_name(protocol) {
            Some(protocol) => {
                let clock = StoppedClock::at(Timestamp(0));
                tokenrail_runner::converse(protocol, Path::new(folder), &words(program), &clock)
            }
            None => ExitCode::from(2),
        },
        _ => ExitCode::from(2),
    }
}
