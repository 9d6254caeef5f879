//! Runs git, with a bounded output and a bounded time.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokenrail_domain::CommitId;
use tokenrail_ports::{ChangesError, FileChoice};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};

use super::place::Place;

/// The most that is read of a list of files.
const LIST_BYTES: usize = 8 << 20;
/// The most that is read of the settings, and of an error.
const TEXT_BYTES: usize = 4 << 10;
/// Larger files are compared as binary, because git reads others into memory.
const BIG_FILE: &str = "core.bigFileThreshold=16m";
/// How many files git compares with each other to find those that were renamed.
const RENAMES: &str = "-l400";

/// The settings of a repository that say how its files are stored. Their values are names of choices, not programs.
const SETTINGS: [&str; 5] =
    ["core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks"];

/// The program, if it is installed. Folders that are not absolute do not count: git runs in a folder that an agent may
/// write to.
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
    deadline: Instant,
}

/// What git has printed.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Whether this is all of it.
    pub(super) complete: bool,
    success: bool,
    error: String,
}

impl Git {
    pub(super) fn new(program: PathBuf, shadow: &Path, place: &Place, deadline: Instant) -> Self {
        Self {
            program,
            shadow: shadow.to_owned(),
            root: place.root.clone(),
            objects: place.common.join("objects"),
            settings: Vec::new(),
            deadline,
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
        Ok(found.success)
    }

    /// The tracked files that differ, and how many lines of them.
    pub(super) async fn compare(&self, base: &CommitId) -> Result<Output, ChangesError> {
        self.diff(base, &["--raw", "--numstat", "-z", "--no-abbrev"], None, LIST_BYTES).await
    }

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
        let paths = file.into_iter().flat_map(|file| file.old_path.iter().chain([&file.path]));
        let command = self.command(args.chain(paths.map(String::as_str)).map(OsStr::new));
        self.run(command, bytes).await?.succeeded()
    }

    /// The paths of the files that are neither tracked nor ignored, each with a zero byte after it.
    pub(super) async fn untracked(&self, file: Option<&FileChoice>) -> Result<Output, ChangesError> {
        let args = ["ls-files", "--others", "--exclude-standard", "-z", "--"];
        let path = file.map(|file| file.path.as_str());
        let command = self.command(args.into_iter().chain(path).map(OsStr::new));
        self.run(command, LIST_BYTES).await?.succeeded()
    }

    fn command<'a>(&self, args: impl IntoIterator<Item = &'a OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        let fixed = ["core.quotePath=false", "core.fsmonitor=false", "core.hooksPath=/dev/null", BIG_FILE];
        command.args(["--no-pager", "--literal-pathspecs", "--no-replace-objects"]);
        for setting in fixed.into_iter().chain(self.settings.iter().map(String::as_str)) {
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

    async fn run(&self, mut command: Command, bytes: usize) -> Result<Output, ChangesError> {
        let child = command.spawn().map_err(ChangesError::Failed)?;
        let mut running = Running::new(child);
        let output = timeout_at(self.deadline, running.output(bytes)).await;
        output.map_err(|_| ChangesError::TimedOut)?.map_err(ChangesError::Failed)
    }
}

impl Output {
    fn succeeded(self) -> Result<Self, ChangesError> {
        if self.success || !self.complete {
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
    fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { child, group }
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
        let (bytes, error) = tokio::join!(printed, beginning(stderr, TEXT_BYTES));
        let (mut bytes, error) = (bytes?, error?);
        let complete = bytes.len() <= limit;
        bytes.truncate(limit);
        let success = self.child.wait().await?.success();
        self.group = None;
        let error = String::from_utf8_lossy(&error).trim().to_owned();
        Ok(Output { bytes, complete, success, error })
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

/// Reads up to `limit` bytes, and closes the pipe.
async fn beginning(pipe: impl AsyncRead + Unpin, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(limit as u64).read_to_end(&mut bytes).await?;
    Ok(bytes)
}
