//! The run folder: how runner, supervisor and exec stage speak with each other.
//!
//! | file | written by | what it is |
//! | --- | --- | --- |
//! | `order.json` | runner | what to run; removed by the exec stage, for the environment may hold secrets |
//! | `stdin` | runner | the prompt; where the program is spoken with, the opening of the conversation |
//! | `control` | runner | a FIFO: `cancel <grace_ms> <kill_ms>`; `look`: see whether the run is over its limits |
//! | `answers` | runner | a FIFO, where the program is spoken with: a line of JSON for each answer to a question of it, and for a further turn |
//! | `further.json` | runner | the turn that follows in the same process, and its prompt |
//! | `supervisor.json` | supervisor | who it is |
//! | `stdout` | supervisor | the spool: all that the agent prints |
//! | `stderr` | supervisor | beginning and end of what the agent prints on standard error |
//! | `exec.json` | exec stage | why the agent could not be started |
//! | `exit.new` | runner | room for `exit.json`, which is written here and then renamed |
//! | `exit.json` | supervisor | how the run ended; the last thing that is written |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokenrail_ports::{TurnOrder, is_disk_full};

use super::records::{ExecOrder, ExitRecord};

/// In the environment of every process of a run: the name of its folder.
pub(crate) const MARKER: &str = "TOKENRAIL_RUN";

/// The command by which a supervisor looks whether its run is over a limit.
pub(crate) const LOOK: &str = "look";

/// The folder of one run: of a turn, and of those that follow in the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFolder {
    path: PathBuf,
}

/// How much room is kept for `exit.json`: far more than it takes, and one block of most disks.
const EXIT_BYTES: usize = 4 << 10;

impl RunFolder {
    pub(crate) const ORDER: &str = "order.json";
    pub(crate) const SUPERVISOR: &str = "supervisor.json";
    pub(crate) const EXEC: &str = "exec.json";
    pub(crate) const EXIT: &str = "exit.json";
    pub(crate) const SPOOL: &str = "stdout";
    /// The newest of the turns that followed the one that began the run.
    pub(crate) const FURTHER: &str = "further.json";
    /// Ends the name of a folder in which only the spool of a run is left.
    pub(crate) const KEPT: &str = ".kept";

    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn of(runs: &Path, order: &TurnOrder) -> Self {
        Self { path: runs.join(format!("{}-{}", order.agent, order.turn)) }
    }

    /// `NAME=value`, which every process of the run has in its environment.
    pub(crate) fn marker(&self) -> String {
        format!("{MARKER}={}", self.name())
    }

    /// The agent's id and the number of the turn that began the run.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Makes the folder with all that the supervisor needs. On an error nothing is left of it, but a folder that
    /// was there before stays as it is.
    pub(crate) fn create(&self, order: &ExecOrder, stdin: &[u8]) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.path)?;
        self.fill(order, stdin).inspect_err(|_| {
            // The error that is told is the one that has led here.
            let _ = self.remove();
        })
    }

    fn fill(&self, order: &ExecOrder, stdin: &[u8]) -> io::Result<()> {
        private_file(&self.path.join("stdin"))?.write_all(stdin)?;
        private_file(&self.path.join(Self::SPOOL))?;
        mkfifoat(CWD, self.control(), Mode::RUSR | Mode::WUSR)?;
        if order.converse.is_some() {
            mkfifoat(CWD, self.answers(), Mode::RUSR | Mode::WUSR)?;
        }
        private_file(&self.reserve())?.write_all(&[b' '; EXIT_BYTES])?;
        self.write(Self::ORDER, order)
    }

    fn reserve(&self) -> PathBuf {
        self.path.join(Self::EXIT).with_extension("new")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.path.join("control")
    }

    /// Has the supervisor look now whether the run is over its limits.
    pub(crate) fn ask_to_look(&self) {
        let mut control = OpenOptions::new();
        control.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        // If nobody reads, the supervisor has ended. If there is no room, it has been asked often enough.
        let _ = control
            .open(self.control())
            .and_then(|mut control| control.write_all(format!("{LOOK}\n").as_bytes()));
    }

    pub(crate) fn answers(&self) -> PathBuf {
        self.path.join("answers")
    }

    pub(crate) fn stdin(&self) -> io::Result<File> {
        File::open(self.path.join("stdin"))
    }

    /// The spool, for its only writer.
    pub(crate) fn spool_to_write(&self) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path.join(Self::SPOOL))
    }

    /// The spool, for whoever reads it; an empty one where the run never came so far.
    pub(crate) fn spool_to_read(&self) -> io::Result<File> {
        let path = self.path.join(Self::SPOOL);
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
    }

    pub(crate) fn stderr_to_write(&self) -> io::Result<File> {
        private_file(&self.path.join("stderr"))
    }

    /// How many bytes of standard error are kept by now.
    pub(crate) fn stderr_bytes(&self) -> io::Result<u64> {
        match fs::metadata(self.path.join("stderr")) {
            Ok(kept) => Ok(kept.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// What is kept of the agent's standard error, behind so many bytes.
    pub(crate) fn stderr(&self, behind: u64) -> io::Result<String> {
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        match fs::read(self.path.join("stderr")) {
            Ok(bytes) => Ok(String::from_utf8_lossy(bytes.get(behind..).unwrap_or_default()).into_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Reads one of the JSON files; none where it is not there, or where a power loss has left an empty one.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one of the JSON files: whoever sees it sees all of it.
    pub(crate) fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let file = self.path.join(name);
        let unfinished = file.with_extension("new");
        private_file(&unfinished)?.write_all(&serde_json::to_vec(value)?)?;
        fs::rename(unfinished, file)
    }

    /// Writes how the run ended, into the room that was kept for it: a full disk is one of the ends to tell of.
    pub(crate) fn write_exit(&self, exit: &ExitRecord) -> io::Result<()> {
        let mut text = serde_json::to_vec(exit)?;
        // Blanks mean nothing in JSON, and the file is not cut: that would give its room away.
        text.resize(text.len().max(EXIT_BYTES), b' ');
        let reserve = self.reserve();
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&reserve)?;
        file.write_all(&text)?;
        fs::rename(reserve, self.path.join(Self::EXIT))
    }

    /// Why nothing more can be written here, where that is for want of room.
    pub(crate) fn disk_full(&self) -> Option<String> {
        let tried = self.path.join("room");
        let written = private_file(&tried).and_then(|mut file| file.write_all(&[b' '; EXIT_BYTES]));
        // It goes with the folder otherwise.
        let _ = fs::remove_file(tried);
        written.err().filter(is_disk_full).map(|error| error.to_string())
    }

    /// Removes what to run from the disk: it may hold secrets, and without it no agent is started any more.
    pub(crate) fn forget_order(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(Self::ORDER)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the folder.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the folder but for the spool, which then is all that is left in `<folder>.kept`.
    pub(crate) fn keep_spool(&self) -> io::Result<()> {
        let mut kept = self.path.clone().into_os_string();
        kept.push(Self::KEPT);
        DirBuilder::new().recursive(true).mode(0o700).create(&kept)?;
        fs::rename(self.path.join(Self::SPOOL), Path::new(&kept).join(Self::SPOOL))?;
        self.remove()
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
