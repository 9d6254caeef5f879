//! Reads the commands to the supervisor: lines in the FIFO `control` of the run folder (`run_folder/control.rs`).

use std::io;
use std::path::Path;

use tokio::net::unix::pipe;

use crate::run_folder::{CancelLine, LOOK};

/// Longer than any valid command.
const COMMAND_BYTES: usize = 256;

/// The commands that were read from the FIFO.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commands {
    pub(super) cancel: Option<CancelLine>,
    /// Many processes begin on the machine: check whether the run is over its limits.
    pub(super) check_limits: bool,
}

/// The reading end of the FIFO.
pub(super) struct Control {
    /// Open for writing too, so that it never reports an end of file.
    fifo: pipe::Receiver,
    command: Vec<u8>,
}

impl Control {
    pub(super) fn open(fifo: &Path) -> io::Result<Self> {
        let fifo = pipe::OpenOptions::new().read_write(true).open_receiver(fifo)?;
        Ok(Self { fifo, command: Vec::new() })
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.fifo.readable().await
    }

    /// Reads the commands that have arrived. `Supervisor::wait` and `finish_output` call it.
    pub(super) fn read(&mut self) -> Commands {
        let mut bytes = [0; COMMAND_BYTES];
        while let Ok(read) = self.fifo.try_read(&mut bytes) {
            self.command.extend_from_slice(&bytes[..read]);
            if read < bytes.len() {
                break;
            }
        }
        let lines = self.command.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let commands: Vec<u8> = self.command.drain(..lines).collect();
        // No valid command is this long.
        self.command.truncate(COMMAND_BYTES);
        Commands::parse(&String::from_utf8_lossy(&commands))
    }
}

impl Commands {
    fn parse(commands: &str) -> Self {
        Self {
            cancel: commands.lines().find_map(CancelLine::parse),
            check_limits: commands.lines().any(|command| command == LOOK),
        }
    }
}
