//! A pseudo-terminal, for what a program shows only to people.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A program whose standard output is a terminal.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    screen: File,
}

/// Starts the command with its output on a terminal of the kind `xterm`. Nothing in the environment decides about
/// colours.
pub(crate) fn start(command: Command) -> OnTerminal {
    start_with(command, None)
}

/// The same, and a user who types. The user has typed this text already.
pub(crate) fn start_for_typing(command: Command, typed: &str) -> OnTerminal {
    start_with(command, Some(typed))
}

fn start_with(mut command: Command, typed: Option<&str>) -> OnTerminal {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let path = std::ffi::OsStr::from_bytes(name.as_bytes()).to_owned();
    let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut screen = File::from(screen);
    if let Some(typed) = typed {
        screen.write_all(typed.as_bytes()).unwrap();
        command.stdin(terminal.try_clone().unwrap());
    }
    let child = command.stdout(terminal).spawn().unwrap();
    // The command holds the terminal too. Reading ends when the last holder has closed it.
    drop(command);
    OnTerminal { child, screen }
}

impl OnTerminal {
    /// Reads until the output contains the text.
    pub(crate) fn read_until(&mut self, expected: &str) -> String {
        let mut shown = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&shown).into_owned();
            if text.contains(expected) {
                return text;
            }
            assert!(self.read(&mut shown), "the terminal never showed {expected:?}: {text}");
        }
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, line: &str) {
        self.screen.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Reads the rest, and returns it with the exit code.
    pub(crate) fn finish(mut self) -> (i32, String) {
        let mut shown = Vec::new();
        while self.read(&mut shown) {}
        let code = self.child.wait().unwrap().code().unwrap();
        (code, String::from_utf8_lossy(&shown).into_owned())
    }

    /// Reads a piece. Returns false at the end: the kernel then reports an I/O error.
    fn read(&mut self, shown: &mut Vec<u8>) -> bool {
        let mut piece = [0; 4096];
        match self.screen.read(&mut piece) {
            Ok(read) if 0 < read => shown.extend_from_slice(&piece[..read]),
            _ => return false,
        }
        true
    }
}
