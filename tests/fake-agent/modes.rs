//! The modes of the agent.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Resource, Signal, getpid, getpriority_process, getrlimit, kill_process};
use serde_json::json;

use crate::lines::{Printer, delta_text, time_text};
use crate::processes;
use crate::script::{Mode, Script};

const MIB: usize = 1 << 20;
/// How many deltas of `flood` form one message.
const MESSAGE_DELTAS: u64 = 10_000;
/// How much `relay` reads at once.
const RELAY_BYTES: usize = 64 << 10;
/// How many files `descriptors` opens, if the limit allows it.
const DESCRIPTORS: usize = 50_000;
/// With fewer files, the mode would test nothing.
const DESCRIPTORS_LEAST: usize = 200;

fn fill_disk(mib: usize) -> io::Result<()> {
    let mut file = fs::File::create("hog")?;
    let piece = vec![b'x'; MIB];
    (0..mib).try_for_each(|_| file.write_all(&piece))?;
    file.sync_all()?;
    fs::remove_file("hog")
}

/// Plays the script. Returns the exit code.
pub(crate) fn play(script: &Script, out: &mut Printer) -> io::Result<u8> {
    let code = print(script, out)?;
    out.flush()?;
    if let Some(path) = &script.touch {
        fs::write(path, "")?;
    }
    match script.mode {
        Mode::Hang | Mode::IgnoreTerm | Mode::ResultThenHang => hang(),
        Mode::ManyProcesses => {
            processes::begin_many()?;
            hang();
        }
        Mode::Hoppers => {
            processes::begin_chains()?;
            hang();
        }
        Mode::ForkBomb => {
            processes::begin_bomb()?;
            hang();
        }
        Mode::StopItself => kill_process(getpid(), Signal::STOP)?,
        Mode::CloseStdout => return Err(become_mute()),
        Mode::Memory => {
            // Each page is written, because otherwise the kernel would not allocate it.
            std::hint::black_box(vec![1_u8; script.mib * MIB]);
            hang();
        }
        Mode::Crash => crash(script.signal)?,
        _ => {}
    }
    Ok(code)
}

fn print(script: &Script, out: &mut Printer) -> io::Result<u8> {
    io::stderr().write_all(script.complain.as_bytes())?;
    match script.mode {
        Mode::NoNewline => return fill(out, script.mib).map(|()| 0),
        Mode::Print => return lines(script, out).map(|()| script.code),
        Mode::StderrFlood => flood_stderr(script.mib)?,
        Mode::IgnoreTerm | Mode::Daemon => processes::escape()?,
        _ => {}
    }
    out.init()?;
    match script.mode {
        Mode::Tool => tool(script, out)?,
        Mode::LongLine => long_line(script.mib, out)?,
        Mode::TinyLines => tiny_lines(script.mib, out)?,
        Mode::EnvDump => return env_dump(script, out).map(|()| 0),
        Mode::Relay => return relay(script, out).map(|()| 0),
        _ => {}
    }
    let text = deltas(script, out)?;
    match script.mode {
        Mode::Hang
        | Mode::IgnoreTerm
        | Mode::ManyProcesses
        | Mode::Hoppers
        | Mode::ForkBomb
        | Mode::StopItself
        | Mode::CloseStdout
        | Mode::Memory => return Ok(0),
        Mode::Crash => return Ok(script.code),
        _ => {}
    }
    match script.mode {
        Mode::Descriptors => hoard_descriptors()?,
        Mode::Disk => fill_disk(script.mib)?,
        _ => {}
    }
    let tokens = script.deltas();
    out.text_end(&text, tokens)?;
    match script.mode {
        Mode::NoResult => {}
        Mode::PartialLastLine => out.half_result(&text, tokens)?,
        _ => out.result(&text, tokens)?,
    }
    Ok(0)
}

/// Prints the message, delta by delta. Returns its text.
fn deltas(script: &Script, out: &mut Printer) -> io::Result<String> {
    out.message_start()?;
    out.text_start()?;
    let mut text = String::new();
    if script.mode == Mode::HalfUtf8 {
        // The beginning of U+1F600, without its last bytes.
        let mut line = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\
            \"delta\":{\"type\":\"text_delta\",\"text\":\""
            .to_vec();
        line.extend_from_slice(&b"\xf0\x9f\x98"[..script.cut.min(3)]);
        line.extend_from_slice(b"\"}}}\n");
        out.raw(&line)?;
    }
    let mut started = Instant::now();
    let (mut index, mut paced_from) = (0, 0);
    while index < script.deltas() || (script.mode == Mode::Flood && out.bytes < script.mib * MIB) {
        if index == script.gate_after && script.mode != Mode::Tool {
            wait_for(script.gate.as_deref());
            (started, paced_from) = (Instant::now(), index);
        }
        // Each delta is paced by the clock and not by the delta before it, so that a slow machine does not change the
        // pace.
        let due = Duration::from_micros(script.pace_us.saturating_mul(index - paced_from));
        if !script.hurry.as_deref().is_some_and(Path::exists) {
            thread::sleep(due.saturating_sub(started.elapsed()));
        }
        let of_mebibytes = script.mode == Mode::Flood && 0 < script.mib;
        if of_mebibytes && 0 < index && index % MESSAGE_DELTAS == 0 {
            // A real agent would not print all of it in one message.
            out.text_end(&text, MESSAGE_DELTAS)?;
            out.message_start()?;
            out.text_start()?;
            text.clear();
        }
        let said = usize::try_from(index).ok().and_then(|index| script.say.get(index)).cloned();
        let delta = said.or_else(|| script.word.clone()).unwrap_or_else(|| {
            if script.stamp { time_text() } else { delta_text(index, script.delta_bytes) }
        });
        out.text_delta(&delta)?;
        text.push_str(&delta);
        index += 1;
    }
    Ok(text)
}

/// Prints the message whose deltas come from the relay.
fn relay(script: &Script, out: &mut Printer) -> io::Result<()> {
    let address = script.relay.ok_or_else(|| io::Error::other("no relay is named"))?;
    let mut lines = TcpStream::connect(address)?;
    out.message_start()?;
    out.text_start()?;
    writeln!(lines, "{}", script.name)?;
    let mut buffer = vec![0; RELAY_BYTES];
    loop {
        match lines.read(&mut buffer)? {
            0 => break,
            count => out.raw(&buffer[..count])?,
        }
    }
    out.message_end("end_turn", 1)?;
    out.result("", 1)
}

/// Prints lines of no known format.
fn lines(script: &Script, out: &mut Printer) -> io::Result<()> {
    for (index, line) in (0..).zip(&script.say) {
        if index == script.gate_after {
            wait_for(script.gate.as_deref());
        }
        out.raw(format!("{line}\n").as_bytes())?;
    }
    Ok(())
}

fn tool(script: &Script, out: &mut Printer) -> io::Result<()> {
    out.tool_call("toolu_fake0001", "make \"it\"")?;
    thread::sleep(Duration::from_millis(script.pause_ms));
    wait_for(script.gate.as_deref());
    out.tool_result("toolu_fake0001", "made")
}

fn long_line(mib: usize, out: &mut Printer) -> io::Result<()> {
    out.tool_call("toolu_fake0001", "cat big")?;
    out.tool_result("toolu_fake0001", &"x".repeat(mib * MIB))
}

fn fill(out: &mut Printer, mib: usize) -> io::Result<()> {
    let block = vec![b'x'; MIB];
    (0..mib).try_for_each(|_| out.raw(&block))
}

/// JSON lines that are not events of any kind, and lines that are not JSON.
fn tiny_lines(mib: usize, out: &mut Printer) -> io::Result<()> {
    let block = "{}\n\n7\nx\n".repeat(MIB / 9);
    (0..mib).try_for_each(|_| out.raw(block.as_bytes()))
}

/// Becomes a program that has closed its output.
fn become_mute() -> io::Error {
    Command::new("/bin/sh").args(["-c", "exec >&- 2>&-; exec sleep 600"]).exec()
}

fn flood_stderr(mib: usize) -> io::Result<()> {
    let block = format!("{}\n", "e".repeat(1023)).repeat(1024);
    (0..mib).try_for_each(|_| io::stderr().write_all(block.as_bytes()))
}

fn env_dump(script: &Script, out: &mut Printer) -> io::Result<()> {
    let env: BTreeMap<_, _> = env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect();
    let status = fs::read_to_string("/proc/self/status")?;
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).map(str::trim);
    let cmdline: Vec<_> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let cwd = env::current_dir()?;
    let fds = descriptors()?;
    let peeked: BTreeMap<_, _> =
        script.peek.iter().map(|path| (path.to_string_lossy(), peek(path))).collect();
    let text = json!({
        "env": env, "cwd": cwd.to_string_lossy(), "umask": umask, "fds": fds, "cmdline": cmdline,
        "core_limit": getrlimit(Resource::Core).current, "peeked": peeked,
        "nice": getpriority_process(None)?, "oom_score": fs::read_to_string("/proc/self/oom_score_adj")?.trim(),
    });
    let text = text.to_string();
    out.message_start()?;
    out.text_start()?;
    out.text_delta(&text)?;
    out.text_end(&text, 1)?;
    out.result(&text, 1)
}

/// The result of reading the beginning of a file.
fn peek(path: &Path) -> String {
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut [0; 16]));
    match read {
        Ok(count) => format!("{count} bytes"),
        Err(error) => error.kind().to_string(),
    }
}

/// The open descriptors and what they refer to, without the one that reads the list.
fn descriptors() -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        if let Ok(target) = fs::read_link(entry.path())
            && !target.starts_with("/proc")
        {
            let number = entry.file_name().to_string_lossy().into_owned();
            found.insert(number, target.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

fn crash(signal: Option<i32>) -> io::Result<()> {
    let Some(signal) = signal.and_then(Signal::from_named_raw) else { return Ok(()) };
    // Twice, because the runtime catches the first SIGSEGV to check whether it is a stack overflow.
    kill_process(getpid(), signal)?;
    Ok(kill_process(getpid(), signal)?)
}

/// Opens files until the limit is reached, and keeps them open.
fn hoard_descriptors() -> io::Result<()> {
    let open = std::iter::from_fn(|| fs::File::open("/dev/null").ok());
    let open: Vec<_> = open.take(DESCRIPTORS).collect();
    if open.len() < DESCRIPTORS_LEAST {
        return Err(io::Error::other("that is no hoard"));
    }
    std::mem::forget(open);
    Ok(())
}

pub(crate) fn hang() -> ! {
    loop {
        thread::park();
    }
}

fn wait_for(path: Option<&Path>) {
    while path.is_some_and(|path| !path.exists()) {
        thread::sleep(Duration::from_millis(2));
    }
}
