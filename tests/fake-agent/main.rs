//! A scripted replacement for an agent program: it prints what Claude Code 2.1.330 prints with
//! `--output-format stream-json --include-partial-messages`, or misbehaves as requested.
//!
//! The first line of the prompt, which is read from standard input, is the script: one JSON object, see
//! [`script::Script`]. Any other prompt results in a short answer. The output depends only on the script and on
//! `--resume ID`.
//!
//! The text of a message with `n` deltas is `"0 1 2 … n-1 "`: delta `i` says `"<i> "` ([`lines::delta_text`]), with
//! leading zeros if deltas must be longer.

mod lines;
mod modes;
mod processes;
mod script;

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use std::{env, fs};

use lines::Printer;
use processes::{BOMB, ESCAPEE, HOPPER};
use script::{Mode, Script};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // If standard error is closed too, only the exit code remains.
            let _ = writeln!(io::stderr(), "fake-agent: {error}");
            ExitCode::from(70)
        }
    }
}

fn run(arguments: &[String]) -> io::Result<u8> {
    let more = arguments.get(1).map_or("", String::as_str);
    match arguments.first().map(String::as_str) {
        Some("--version") => {
            writeln!(io::stdout(), "2.1.330 (Fake Agent)")?;
            return Ok(0);
        }
        Some(ESCAPEE) => processes::escapee()?,
        Some(HOPPER) => return processes::hopper(more).map(|()| 0),
        Some(BOMB) => return processes::bomb(more).map(|()| 0),
        _ => {}
    }
    let script = read_script()?;
    if script.mode == Mode::IgnoreTerm && env::var_os(script::HANDED_ON).is_none() {
        return processes::start_again_deaf(&script, arguments).map(|()| 0);
    }
    let resumed = arguments.iter().position(|argument| argument == "--resume");
    let session = resumed.and_then(|at| arguments.get(at + 1)).cloned();
    modes::play(&script, &mut Printer::new(session, script.unbuffered()))
}

/// Reads the prompt: its first line is the script.
fn read_script() -> io::Result<Script> {
    let mut stdin = io::stdin().lock();
    let mut prompt = Vec::new();
    let script = if let Ok(handed_on) = env::var(script::HANDED_ON) {
        Script::parse(&handed_on)
    } else {
        stdin.read_until(b'\n', &mut prompt)?;
        let script = Script::parse(&String::from_utf8_lossy(&prompt));
        if let Some(path) = &script.log_start {
            let mut log = fs::OpenOptions::new().append(true).create(true).open(path)?;
            log.write_all(b"started\n")?;
        }
        script
    };
    if script.mode != Mode::CloseStdin {
        stdin.read_to_end(&mut prompt)?;
    }
    if let Some(path) = &script.copy_prompt {
        fs::write(path, prompt)?;
    }
    Ok(script)
}
