//! Runs git, with a bounded output and a bounded time.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, prlimit};
use tokenrail_domain::CommitId;
use tokenrail_ports::{ChangesError, FileChoice};
use tokio::io::{AsyncRead, AsyncReadExt as _, copy, sink};
use tokio::process::{Child, Command};

use super::place::Place;
use super::request::Request;
use crate::out_of_memory;

/// The most that is read of a list of files.
const LIST_BYTES: usize = 8 << 20;
/// The most that is kept of the settings, and of an error.
const TEXT_BYTES: usize = 4 << 10;
/// The settings of the server.
const FIXED: [&str; 6] = [
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    // Git would warn of each file whose ends of lines it would change.
    "core.safecrlf=false",
    // With more threads, git can begin anywhere in the index, and the paths there were not checked.
    "index.threads=1",
    // Larger files are compared as binary, because git reads others into memory.
    "core.bigFileThreshold=16m",
];
/// How many files git compares with each other to find those that were renamed.
const RENAMES: &str = "-l400";

/// The settings of a repository that say how its files are stored. Their values are names of choices, not programs.
const SETTINGS: [&str; 5] =
    ["core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks"];

/// The program, if it is installed. Folders that are not absolute do not count: git runs in a folder that an agent may
/// write to. Blocks.
pub(super) fn find_git() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("git")).find(is_program)
}

/// Runs git for one request.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    shadow: PathBuf,
    root: PathBuf,
    objects: PathBuf,
    settings: Vec<String>,
    memory_bytes: u64,
    request: Request,
}

/// What git has printed.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Whether this is all of it.
    pub(super) complete: bool,
    /// `None` if a signal has ended git.
    code: Option<i32>,
    error: String,
}

impl Git {
    pub(super) fn new(
        program: PathBuf,
        shadow: &Path,
        place: &Place,
        memory_bytes: u64,
        request: Request,
    ) -> Self {
        Self {
            program,
            shadow: shadow.to_owned(),
            root: place.root.clone(),
            objects: place.common.join("objects"),
            settings: Vec::new(),
            memory_bytes,
            request,
        }
    }

    /// Uses the repository's own [`SETTINGS`].
    pub(super) async fn take_settings(&mut self, common: &Path) -> Result<(), ChangesError> {
        let names = format!("^({})$", SETTINGS.join("|").replace('.', "\\."));
        let file = common.join("config");
        let args = ["config", "--no-includes", "-z", "--file"].map(OsStr::new);
        let args = args.into_iter().chain([file.as_os_str(), "--get-regexp".as_ref(), names.as_ref()]);
        // Without any of them, git fails.
        let found = self.run(self.command(args), TEXT_BYTES).await?;
        let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        for setting in String::from_utf8_lossy(&found.bytes).split('\0') {
            if let Some((name, value)) = setting.split_once('\n').filter(|(_, value)| is_word(value)) {
                self.settings.push(format!("{name}={value}"));
            }
        }
        Ok(())
    }

    pub(super) async fn has(&self, base: &CommitId) -> Result<bool, ChangesError> {
        let command = self.command(["cat-file", "-e", base.as_str()].map(OsStr::new));
        let found = self.run(command, TEXT_BYTES).await?;
        // With this code, git says that the object is missing. After any other failure, it may be there.
        if found.code == Some(1) {
            return Ok(false);
        }
        found.succeeded().map(|_| true)
    }

    /// The tracked files that differ, and how many lines of them.
    pub(super) async fn compare(&self, base: &CommitId) -> Result<Output, ChangesError> {
        self.diff(base, &["--raw", "--numstat", "-z", "--no-abbrev"], None, LIST_BYTES).await
    }

    /// The differences of all tracked files. With `file`, those of this one, and maybe of others.
    pub(super) async fn patch(
        &self,
        base: &CommitId,
        file: Option<&FileChoice>,
        bytes: usize,
    ) -> Result<Output, ChangesError> {
        self.diff(base, &["--patch", "--src-prefix=a/", "--dst-prefix=b/"], file, bytes).await
    }

    async fn diff(
        &self,
        base: &CommitId,
        form: &[&str],
        file: Option<&FileChoice>,
        bytes: usize,
    ) -> Result<Output, ChangesError> {
        // A submodule is compared by its commit only. To look into it, git would read the submodule's settings.
        let fixed = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--ignore-submodules=dirty",
            "-M",
            RENAMES,
        ];
        let args = fixed.iter().chain(form).copied().chain([base.as_str(), "--"]);
        let paths = file.into_iter().flat_map(pathspecs);
        let command = self.command(args.chain(paths).map(OsStr::new));
        self.run(command, bytes).await?.succeeded()
    }

    /// The paths of the files that are neither tracked nor ignored, each with a zero byte after it. With `file`, others
    /// may be among them.
    pub(super) async fn untracked(&self, file: Option<&FileChoice>) -> Result<Output, ChangesError> {
        let args = ["ls-files", "--others", "--exclude-standard", "-z", "--"];
        let paths = file.into_iter().flat_map(pathspecs);
        let command = self.command(args.into_iter().chain(paths).map(OsStr::new));
        self.run(command, LIST_BYTES).await?.succeeded()
    }

    fn command<'a>(&self, args: impl IntoIterator<Item = &'a OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--no-pager", "--literal-pathspecs", "--no-replace-objects"]);
        for setting in FIXED.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        let with_value = |name: &str, value: &Path| (OsString::from(name), value.as_os_str().to_owned());
        command
            .args(args)
            .env_clear()
            .envs([
                with_value("GIT_DIR", &self.shadow),
                with_value("GIT_WORK_TREE", &self.root),
                with_value("GIT_OBJECT_DIRECTORY", &self.objects),
            ])
            .envs([
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_ATTR_NOSYSTEM", "1"),
                ("GIT_OPTIONAL_LOCKS", "0"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_NO_LAZY_FETCH", "1"),
                ("LC_ALL", "C"),
            ])
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    async fn run(&self, command: Command, bytes: usize) -> Result<Output, ChangesError> {
        let memory_bytes = self.memory_bytes;
        // The call blocks until the program has been loaded. On a thread that serves connections, all of them would
        // wait with it.
        let mut running = self.request.blocking(move || Running::start(command, memory_bytes)).await?;
        self.request.in_time(running.output(bytes)).await
    }
}

impl Output {
    fn succeeded(self) -> Result<Self, ChangesError> {
        if self.code == Some(0) || !self.complete {
            return Ok(self);
        }
        Err(ChangesError::Failed(io::Error::other(self.error)))
    }
}

/// A process of git. If it is dropped, the process and those that it has started are killed.
struct Running {
    child: Child,
    group: Option<Pid>,
}

impl Running {
    /// Blocks.
    fn start(mut command: Command, memory_bytes: u64) -> io::Result<Self> {
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        // From here on, an error kills it.
        let running = Self { child, group };
        if let Some(process) = group {
            bound_memory(process, memory_bytes)?;
            out_of_memory::end_first(&process.as_raw_pid().to_string());
        }
        Ok(running)
    }

    async fn output(&mut self, limit: usize) -> io::Result<Output> {
        let (Some(stdout), Some(stderr)) = (self.child.stdout.take(), self.child.stderr.take()) else {
            return Err(io::Error::other("git has no output"));
        };
        let printed = async {
            let printed = beginning(stdout, limit + 1).await;
            if printed.as_ref().is_ok_and(|bytes| limit < bytes.len()) {
                self.kill();
            }
            printed
        };
        let (bytes, error) = tokio::join!(printed, beginning_of_all(stderr, TEXT_BYTES));
        let (mut bytes, error) = (bytes?, error?);
        let complete = bytes.len() <= limit;
        bytes.truncate(limit);
        let code = self.child.wait().await?.code();
        self.group = None;
        let error = String::from_utf8_lossy(&error).trim().to_owned();
        Ok(Output { bytes, complete, code, error })
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads up to `limit` bytes.
async fn beginning(pipe: impl AsyncRead + Unpin, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(limit as u64).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads a pipe to its end, and returns the first `limit` bytes. If the pipe were closed, the next warning would end
/// git.
async fn beginning_of_all(mut pipe: impl AsyncRead + Unpin, limit: usize) -> io::Result<Vec<u8>> {
    let bytes = beginning(&mut pipe, limit).await?;
    copy(&mut pipe, &mut sink()).await?;
    Ok(bytes)
}

/// Bounds the memory in which git keeps what it reads. Files that it maps do not count: the kernel can drop them.
fn bound_memory(process: Pid, bytes: u64) -> io::Result<()> {
    let most = getrlimit(Resource::Data).maximum.map_or(bytes, |inherited| inherited.min(bytes));
    match prlimit(Some(process), Resource::Data, Rlimit { current: Some(most), maximum: Some(most) }) {
        // It may have ended already.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What to ask git for. Git takes the path of a folder for all files in it, so `patch::only` must choose from the
/// answer. The path of a file whose name is not text is not known, so git is asked for all files.
fn pathspecs(file: &FileChoice) -> impl Iterator<Item = &str> {
    let paths = file.old_path.iter().chain([&file.path]).map(String::as_str);
    let are_known = paths.clone().all(|path| !path.contains(char::REPLACEMENT_CHARACTER));
    paths.filter(move |_| are_known)
}
