//! The program that supervises runs: a small one beside the server's own program, or the server's own program.
//!
//! Each process has its own copy of all the memory that the loader changes in its program. Each running agent has a
//! supervisor, so a small program that can do nothing else saves memory. It reads and writes the same files as the
//! server, and their format may change with each version, so it must be built from the same sources.
//!
//! The server asks the small program for its sources once, when the server starts. An upgrade may replace the file
//! later, so each start of the small program also names the required sources, and a program of other sources refuses.

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::geteuid;
use tokio::process::Command;

use crate::run_folder::{BUILD, REFUSED, SUPERVISE, SUPERVISOR};

/// The bit of a file's mode that lets everybody write to it.
const WRITTEN_BY_OTHERS: u32 = 0o002;

/// Much longer than the output of `--version`.
const VERSION_BYTES: usize = 256;

/// The program that supervises runs.
#[derive(Debug, Clone)]
pub struct SupervisorProgram(Arc<Programs>);

#[derive(Debug)]
struct Programs {
    /// The server's own program.
    own: PathBuf,
    small: PathBuf,
    own_because: OnceLock<OwnBecause>,
}

/// Why the server's own program supervises.
#[derive(Debug, thiserror::Error)]
pub enum OwnBecause {
    #[error("the server was configured not to use it")]
    Told,
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    #[error("{} is from a different build: it reports {said:?}, but the build of the server is {BUILD}", program.display())]
    OtherBuild { program: PathBuf, said: String },
    /// An upgrade has replaced the file since the server started.
    #[error("{} was replaced by a different build", .0.display())]
    Replaced(PathBuf),
    /// A user who can write to the file could run programs as the server's user.
    #[error(
        "{} is not trusted: it must be owned by root, the server's user or the owner of the server's \
         program, and must not be writable by anyone else",
        .0.display()
    )]
    Untrusted(PathBuf),
    #[error("{} does not work: {error}", program.display())]
    Unusable { program: PathBuf, error: io::Error },
}

impl SupervisorProgram {
    /// Always uses this program.
    pub fn own(program: PathBuf) -> Self {
        Self(Arc::new(Programs { small: PathBuf::new(), own: program, own_because: OwnBecause::Told.into() }))
    }

    /// Uses the small program beside this one, if it exists and is of the same build. It has `patience` to print its
    /// build. Blocks.
    pub fn beside(own: PathBuf, patience: Duration) -> Self {
        let small = own.with_file_name(SUPERVISOR);
        let asked = check(&small, &own).and_then(|()| ask(&small, patience));
        let own_because = asked.map_or_else(OnceLock::from, |()| OnceLock::new());
        match own_because.get() {
            None => {}
            // This is normal if only the server's program was copied or built.
            Some(because @ OwnBecause::Missing(_)) => {
                tracing::info!(%because, "tokenrail-supervisor is not used; tokenrail supervises agents itself, \
                                          which needs more memory");
            }
            Some(because) => warn(because),
        }
        Self(Arc::new(Programs { own, small, own_because }))
    }

    /// Why the server's own program supervises runs. `None` if the small program does.
    pub fn own_because(&self) -> Option<&OwnBecause> {
        self.0.own_because.get()
    }

    /// The program that supervises now.
    pub fn path(&self) -> &Path {
        if self.own_because().is_none() { &self.0.small } else { self.own_path() }
    }

    pub(super) fn own_path(&self) -> &Path {
        &self.0.own
    }

    /// The command that supervises a run with the small program. `None` if that is not used.
    pub(super) fn small_command(&self, run_folder: &Path) -> Option<Command> {
        if self.own_because().is_some() {
            return None;
        }
        let mut command = Command::new(&self.0.small);
        command.arg(SUPERVISE).arg(run_folder).args(["--for", BUILD]);
        Some(command)
    }

    /// The command that supervises a run with the server's own program. It names no sources. If an upgrade has replaced
    /// the file, another release supervises, and `run_folder/records.rs` keeps the names that both can read.
    pub(super) fn own_command(&self, run_folder: &Path) -> Command {
        let mut command = Command::new(&self.0.own);
        command.arg(SUPERVISE).arg(run_folder);
        command
    }

    /// Stops using the small program if it has refused a run. Returns whether it has.
    pub(super) fn give_up_if_refused(&self, status: ExitStatus) -> bool {
        let refused = status.code() == Some(REFUSED.into());
        if refused {
            self.use_own(OwnBecause::Replaced(self.0.small.clone()));
        }
        refused
    }

    /// Stops using the small program if it cannot be started because of its file. Returns whether that is so.
    pub(super) fn give_up_if_unusable(&self, error: &io::Error) -> bool {
        use ErrorKind::{ExecutableFileBusy, NotFound, PermissionDenied};
        let no_program = rustix::io::Errno::NOEXEC.raw_os_error();
        let unusable = matches!(error.kind(), ExecutableFileBusy | NotFound | PermissionDenied)
            || error.raw_os_error() == Some(no_program);
        if unusable {
            let error = error.kind().into();
            self.use_own(OwnBecause::Unusable { program: self.0.small.clone(), error });
        }
        unusable
    }

    fn use_own(&self, because: OwnBecause) {
        if self.0.own_because.set(because).is_ok()
            && let Some(because) = self.own_because()
        {
            warn(because);
        }
    }
}

fn warn(because: &OwnBecause) {
    tracing::warn!(%because, "tokenrail-supervisor is not used; tokenrail supervises agents itself, which needs more memory");
}

/// Checks whether the program can be trusted. In a folder that everybody can write to, anybody could have put it there.
fn check(program: &Path, own: &Path) -> Result<(), OwnBecause> {
    let unusable = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => OwnBecause::Missing(program.to_owned()),
        _ => OwnBecause::Unusable { program: program.to_owned(), error },
    };
    let found = program.symlink_metadata().map_err(unusable)?;
    let owner_of_own = own.metadata().map(|own| own.uid()).ok();
    let owners = [Some(0), Some(geteuid().as_raw()), owner_of_own];
    let is_trusted =
        found.is_file() && owners.contains(&Some(found.uid())) && found.mode() & WRITTEN_BY_OTHERS == 0;
    if is_trusted { Ok(()) } else { Err(OwnBecause::Untrusted(program.to_owned())) }
}

/// Asks a program whether it supervises for this build.
fn ask(program: &Path, patience: Duration) -> Result<(), OwnBecause> {
    match version(program, patience) {
        Ok(said) if said.trim_end() == format!("{SUPERVISOR} {BUILD}") => Ok(()),
        Ok(said) => {
            let said = said.lines().next().unwrap_or_default().to_owned();
            Err(OwnBecause::OtherBuild { program: program.to_owned(), said })
        }
        Err(_) if !program.exists() => Err(OwnBecause::Missing(program.to_owned())),
        Err(error) => Err(OwnBecause::Unusable { program: program.to_owned(), error }),
    }
}

/// The output of `--version`: one line, read in one piece.
fn version(program: &Path, patience: Duration) -> io::Result<String> {
    let mut child = std::process::Command::new(program)
        .arg("--version")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let said =
        child.stdout.take().map_or_else(|| Err(ErrorKind::BrokenPipe.into()), |from| read(from, patience));
    // The kill fails if it has already ended.
    let _ = child.kill();
    child.wait()?;
    said
}

fn read(mut from: ChildStdout, patience: Duration) -> io::Result<String> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    if retry_on_intr(|| poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&patience)))? == 0 {
        return Err(ErrorKind::TimedOut.into());
    }
    let mut said = [0; VERSION_BYTES];
    let read = from.read(&mut said)?;
    Ok(String::from_utf8_lossy(&said[..read]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_program_that_others_could_have_put_there_is_not_run() {
        let place = tempfile::tempdir().unwrap();
        let (own, small) = (place.path().join("tokenrail"), place.path().join(SUPERVISOR));
        fs::write(&own, "").unwrap();
        assert!(matches!(check(&small, &own), Err(OwnBecause::Missing(_))));
        fs::write(&small, "").unwrap();
        fs::set_permissions(&small, Permissions::from_mode(0o775)).unwrap();
        check(&small, &own).unwrap();
        fs::set_permissions(&small, Permissions::from_mode(0o757)).unwrap();
        assert!(matches!(check(&small, &own), Err(OwnBecause::Untrusted(_))));
        fs::remove_file(&small).unwrap();
        symlink("/bin/true", &small).unwrap();
        assert!(
            matches!(check(&small, &own), Err(OwnBecause::Untrusted(_))),
            "it could be another file soon"
        );
    }
}
