//! The `tokenrail` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tokenrail_server::main()
}
