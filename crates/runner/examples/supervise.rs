//! A program that can be nothing but a supervisor: what the tests start in place of the server's own.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["supervise", "--exec", folder] => tokenrail_runner::exec_stage(Path::new(folder)),
        ["supervise", folder] => tokenrail_runner::supervise(Path::new(folder)),
        _ => ExitCode::from(2),
    }
}
