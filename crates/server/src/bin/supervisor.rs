//! The `tokenrail-supervisor` program, which `tokenrail` starts for each run of an agent. It can do nothing else, so that
//! little of it is held for each of them.

use std::process::ExitCode;

fn main() -> ExitCode {
    tokenrail_runner::supervisor_main()
}
