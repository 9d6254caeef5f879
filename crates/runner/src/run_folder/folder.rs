//! The run folder: how runner, supervisor, exec stage and `converse` process communicate.
//!
//! | file | written by | what it is |
//! | --- | --- | --- |
//! | `order.json` | runner | what to run; the exec stage removes it, because the environment may hold secrets |
//! | `stdin` | runner | the prompt; if the program speaks a protocol, the [`Opening`](super::Opening) |
//! | `control` | runner | a FIFO: [`CancelLine`](super::CancelLine), and [`LOOK`](super::LOOK) |
//! | `answers` | runner | a FIFO, if the program speaks a protocol: [`ConverseMessage`](super::ConverseMessage), one line of JSON each ([`RunFolder::converse_fifo`]) |
//! | `image-TURN-POSITION` | runner | an image of a prompt ([`ImageRef`](super::ImageRef)); the `converse` process removes it when it has read it, unless the program reads the file |
//! | `further.json` | runner | the newest further run in the same process, and its prompt |
//! | `supervisor.json` | supervisor | which process it is |
//! | `stdout` | supervisor | the spool: everything that the agent prints |
//! | `stderr` | supervisor | the beginning and the end of the agent's standard error |
//! | `exec.json` | exec stage | why the agent could not be started |
//! | `exit.new` | runner | reserved space for `exit.json`, which is written here and then renamed |
//! | `exit.json` | supervisor | how the run ended; written last. The runner rewrites it if it empties the spool |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokenrail_domain::{AgentId, ImageFile, TurnNumber};
use tokenrail_ports::{TurnOrder, is_disk_full};

use super::control::LOOK;
use super::records::{ExecOrder, ExitRecord};

/// The environment variable that every process of a run has. Its value is the name of the run folder.
pub(crate) const MARKER: &str = "TOKENRAIL_RUN";

/// The folder of one process of an agent: of its first run, and of the further runs in the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFolder {
    path: PathBuf,
}

/// How much space is reserved for `exit.json`: much more than it needs, and one block of most disks.
const EXIT_BYTES: usize = 4 << 10;

impl RunFolder {
    const ORDER: &str = "order.json";
    pub(crate) const SUPERVISOR: &str = "supervisor.json";
    /// Why the agent could not be started.
    pub(crate) const EXEC_FAILURE: &str = "exec.json";
    pub(crate) const EXIT: &str = "exit.json";
    pub(crate) const SPOOL: &str = "stdout";
    /// The newest of the further runs in the process.
    pub(crate) const FURTHER: &str = "further.json";
    /// The suffix of a folder that holds only the spool of a run.
    pub(crate) const KEPT: &str = ".kept";

    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn of(runs: &Path, order: &TurnOrder) -> Self {
        Self::of_run(runs, order.agent, order.run)
    }

    /// The folder of a run that is the first one in its process.
    pub(crate) fn of_run(runs: &Path, agent: AgentId, run: TurnNumber) -> Self {
        Self { path: runs.join(format!("{agent}-{run}")) }
    }

    /// `NAME=value`, which every process of the run has in its environment.
    pub(crate) fn marker(&self) -> String {
        format!("{MARKER}={}", self.name())
    }

    /// The agent's id and the number of the first run in the folder.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Creates the folder with everything that the supervisor needs, and with the images of the prompt of a turn. After
    /// an error nothing is left of it, but a folder that existed before stays as it is.
    pub(crate) fn create(
        &self,
        order: &ExecOrder,
        stdin: &[u8],
        prompt: (u64, &[ImageFile]),
    ) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.path)?;
        self.fill(order, stdin, prompt).inspect_err(|_| {
            // The caller gets the first error, not this one.
            let _ = self.remove();
        })
    }

    fn fill(&self, order: &ExecOrder, stdin: &[u8], (turn, images): (u64, &[ImageFile])) -> io::Result<()> {
        self.write_images(turn, images)?;
        private_file(&self.path.join("stdin"))?.write_all(stdin)?;
        private_file(&self.path.join(Self::SPOOL))?;
        mkfifoat(CWD, self.control(), Mode::RUSR | Mode::WUSR)?;
        if order.converse.is_some() {
            mkfifoat(CWD, self.converse_fifo(), Mode::RUSR | Mode::WUSR)?;
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

    /// Asks the supervisor to check now whether the run is over its limits.
    pub(crate) fn ask_to_look(&self) {
        let mut control = OpenOptions::new();
        control.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        // If nobody reads, the supervisor has ended. If the FIFO is full, it has been asked often enough.
        let _ = control
            .open(self.control())
            .and_then(|mut control| control.write_all(format!("{LOOK}\n").as_bytes()));
    }

    /// The FIFO to the `converse` process. Its file keeps the name from the time when it carried only answers, because
    /// the `converse` processes of earlier releases open it by that name.
    pub(crate) fn converse_fifo(&self) -> PathBuf {
        self.path.join("answers")
    }

    pub(crate) fn stdin(&self) -> io::Result<File> {
        File::open(self.path.join("stdin"))
    }

    /// The spool, for its only writer.
    pub(crate) fn spool_to_write(&self) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path.join(Self::SPOOL))
    }

    /// The spool, for a reader. If the run has none, an empty one is created.
    pub(crate) fn spool_to_read(&self) -> io::Result<File> {
        let path = self.path.join(Self::SPOOL);
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
    }

    pub(crate) fn stderr_to_write(&self) -> io::Result<File> {
        private_file(&self.path.join("stderr"))
    }

    /// How many bytes of standard error have been kept so far.
    pub(crate) fn stderr_bytes(&self) -> io::Result<u64> {
        match fs::metadata(self.path.join("stderr")) {
            Ok(kept) => Ok(kept.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The kept part of the agent's standard error, after its first `behind` bytes.
    pub(crate) fn stderr(&self, behind: u64) -> io::Result<String> {
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        match fs::read(self.path.join("stderr")) {
            Ok(bytes) => Ok(String::from_utf8_lossy(bytes.get(behind..).unwrap_or_default()).into_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Reads one of the JSON files. `None` if it does not exist, or is not valid: a power loss can leave an empty one.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one of the JSON files. A reader sees the complete file or none, because it is renamed into place.
    pub(crate) fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let file = self.path.join(name);
        let unfinished = file.with_extension("new");
        private_file(&unfinished)?.write_all(&serde_json::to_vec(value)?)?;
        fs::rename(unfinished, file)
    }

    /// Writes how the run ended, into the space that was reserved for it: the disk may be full.
    pub(crate) fn write_exit(&self, exit: &ExitRecord) -> io::Result<()> {
        let mut text = serde_json::to_vec(exit)?;
        // Padded with blanks, which mean nothing in JSON. A truncation would give up the reserved space.
        text.resize(text.len().max(EXIT_BYTES), b' ');
        let reserve = self.reserve();
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&reserve)?;
        file.write_all(&text)?;
        fs::rename(reserve, self.path.join(Self::EXIT))
    }

    /// Tries to write to this folder. Returns the error if the disk is full.
    pub(crate) fn disk_full(&self) -> Option<String> {
        let tried = self.path.join("room");
        let written = private_file(&tried).and_then(|mut file| file.write_all(&[b' '; EXIT_BYTES]));
        // If this fails, the file is removed with the folder.
        let _ = fs::remove_file(tried);
        written.err().filter(is_disk_full).map(|error| error.to_string())
    }

    /// What to run. It is there until the exec stage has taken it.
    pub(crate) fn order(&self) -> io::Result<ExecOrder> {
        let missing = || {
            io::Error::new(
                ErrorKind::NotFound,
                "the file that says what to run is missing from the run folder",
            )
        };
        self.read(Self::ORDER)?.ok_or_else(missing)
    }

    /// Removes the order, which may hold secrets. Without it, no agent is started any more.
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

    /// Removes the folder except the spool, which becomes the only file in `<folder>.kept`.
    pub(crate) fn keep_spool(&self) -> io::Result<()> {
        let mut kept = self.path.clone().into_os_string();
        kept.push(Self::KEPT);
        DirBuilder::new().recursive(true).mode(0o700).create(&kept)?;
        fs::rename(self.path.join(Self::SPOOL), Path::new(&kept).join(Self::SPOOL))?;
        self.remove()
    }
}

pub(super) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
