//! The `tokenrail-supervisor` program, which `tokenrail` starts for each run of an agent. It does nothing else, so
//! that each of its processes needs little memory.

use std::process::ExitCode;

fn main() -> ExitCode {
    tokenrail_runner::supervisor_main()
}
