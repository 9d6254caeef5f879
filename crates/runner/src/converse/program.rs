//! The program, and its standard streams.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use bytes::{Buf, Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, Command};

use crate::run_folder::{RunFolder, THIS_PROGRAM};

/// Added to the number of the signal that has ended a program, as shells do.
const SIGNALLED: i32 = 128;
/// The exit code if it is not known how the program has ended.
const UNKNOWN: u8 = 1;

/// The program, and the input that it has not taken yet.
pub(super) struct Program {
    child: Child,
    group: Pid,
    /// `None` after it was closed.
    input: Option<ChildStdin>,
    unsent: BytesMut,
    /// `None` after the program has closed it.
    output: Option<pipe::Receiver>,
}

/// What the program has done.
pub(super) enum Deed {
    Printed,
    /// It has taken this many bytes of its input.
    Taken(usize),
    /// It will never take input again.
    InputClosed,
    Exited(ExitStatus),
}

/// The result of reading the program's output.
pub(super) enum Output {
    Bytes(Bytes),
    /// The program has closed its output: nothing more can come.
    Closed,
    Nothing,
}

/// The exit code of this process for a program that ended like this.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(UNKNOWN)
}

impl Program {
    /// Starts the program through a stage that ties it to this process ([`exec_for`](super::exec_for)): when this
    /// process ends, the kernel kills the program.
    pub(super) fn start(folder: &RunFolder, program: &[OsString]) -> io::Result<Self> {
        let mut child = Command::new(THIS_PROGRAM)
            .arg0("tokenrail")
            // The command line names the protocol next, which this stage does not use.
            .args(["converse", "--exec-for", &std::process::id().to_string(), "-"])
            .arg(folder.path())
            .arg("--")
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The program has its own process group. A signal to the group of this process must not reach it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let gone = || io::Error::other("the program has no standard streams");
        let output = child.stdout.take().ok_or_else(gone)?.into_owned_fd()?;
        Ok(Self {
            input: Some(child.stdin.take().ok_or_else(gone)?),
            group: child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(gone)?,
            child,
            unsent: BytesMut::new(),
            output: Some(pipe::Receiver::from_owned_fd(output)?),
        })
    }

    /// Writes the queued input, and waits until the program does something. The future may be dropped at any await.
    pub(super) async fn deed(&mut self) -> io::Result<Deed> {
        let Self { child, input, unsent, output, .. } = self;
        tokio::select! {
            ready = readable(output.as_ref()) => ready.map(|()| Deed::Printed),
            taken = write(input.as_mut(), unsent) => Ok(taken.map_or(Deed::InputClosed, Deed::Taken)),
            status = child.wait() => status.map(Deed::Exited),
        }
    }

    /// Reads the available output of the program, at most `read_bytes`.
    pub(super) fn read(&mut self, read_bytes: usize) -> io::Result<Output> {
        let Some(output) = &self.output else { return Ok(Output::Nothing) };
        let mut bytes = BytesMut::zeroed(read_bytes);
        match output.try_read(&mut bytes) {
            Ok(0) => {
                self.output = None;
                Ok(Output::Closed)
            }
            Ok(read) => {
                bytes.truncate(read);
                Ok(Output::Bytes(bytes.freeze()))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Output::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Queues input for the program. [`Program::deed`] writes it. Returns how many bytes the program has not taken yet.
    pub(super) fn queue_input(&mut self, bytes: &[u8]) -> usize {
        self.unsent.extend_from_slice(bytes);
        self.unsent.len()
    }

    pub(super) fn has_taken(&mut self, bytes: usize) {
        self.unsent.advance(bytes);
    }

    pub(super) fn has_taken_all(&self) -> bool {
        self.unsent.is_empty()
    }

    pub(super) fn can_be_told(&self) -> bool {
        self.input.is_some()
    }

    /// Closes the input, and discards what the program has not taken.
    pub(super) fn close_input(&mut self) {
        self.input = None;
        self.unsent.clear();
    }

    pub(super) fn signal(&self, signal: Signal) {
        // The program may just have ended.
        let _ = kill_process_group(self.group, signal);
    }
}

/// Writes input to the program. Returns how many bytes it has taken; `None` if it will never take input again.
async fn write(input: Option<&mut ChildStdin>, unsent: &[u8]) -> Option<usize> {
    match input {
        Some(input) if !unsent.is_empty() => input.write(unsent).await.ok(),
        _ => std::future::pending().await,
    }
}

async fn readable(output: Option<&pipe::Receiver>) -> io::Result<()> {
    match output {
        Some(output) => output.readable().await,
        None => std::future::pending().await,
    }
}
