//! The folders that this machine's user has allowed agents to work in, besides the `cwd_roots` of the configuration.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The largest size of the file.
const FILE_BYTES: u64 = 256 << 10;

/// A file with the absolute path of one folder in each line. A command of the server's user adds to it, and the server
/// reads it at each launch. Only those who may write to the data folder can allow a folder, so no request can.
#[derive(Debug, Clone)]
pub struct AllowedFolders {
    file: PathBuf,
}

impl AllowedFolders {
    /// The file of a data folder. It need not exist.
    pub fn of(data_dir: &Path) -> Self {
        Self { file: data_dir.join("allowed-folders") }
    }

    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Allows agents to work in the folder and in all folders below it. Returns the folder without symbolic links, or
    /// `None` if it was allowed already.
    ///
    /// # Errors
    /// If the folder does not exist or is not a folder, if its path has a line break or is not text, if the file is
    /// full (256 KiB), or if it cannot be read or written.
    pub fn allow(&self, folder: &Path) -> io::Result<Option<PathBuf>> {
        let folder = folder.canonicalize()?;
        if !folder.is_dir() {
            return Err(io::Error::new(ErrorKind::NotADirectory, "it is not a folder"));
        }
        let Some(line) = folder.to_str().filter(|path| !path.contains(char::is_control)) else {
            return Err(io::Error::new(
                ErrorKind::InvalidFilename,
                "its path contains a control character or is not UTF-8; rename it",
            ));
        };
        let known = self.list()?;
        if known.iter().any(|known| folder.starts_with(known)) {
            return Ok(None);
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.file)?;
        if FILE_BYTES < file.metadata()?.len() + line.len() as u64 + 1 {
            let full = format!(
                "{} is full; in this file, delete the lines of folders that are not needed",
                self.file.display()
            );
            return Err(io::Error::new(ErrorKind::FileTooLarge, full));
        }
        // One write, so that two commands at the same time do not mix their lines.
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(Some(folder))
    }

    /// All folders that were allowed. Lines that are not absolute paths are ignored.
    ///
    /// # Errors
    /// If the file exists and cannot be read.
    pub fn list(&self) -> io::Result<Vec<PathBuf>> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES).read_to_end(&mut bytes)?;
        // The last line may be half of one that is being written.
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes[..complete].split(|byte| *byte == b'\n').map(std::ffi::OsStr::from_bytes);
        Ok(lines.map(PathBuf::from).filter(|path| path.is_absolute()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_folder_is_allowed_once_with_all_below_it() {
        let data = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let below = project.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let allowed = AllowedFolders::of(data.path());
        assert_eq!(allowed.list().unwrap(), Vec::<PathBuf>::new());
        let real = project.path().canonicalize().unwrap();
        let link = data.path().join("link");
        symlink(project.path(), &link).unwrap();
        assert_eq!(allowed.allow(&link).unwrap(), Some(real.clone()));
        assert_eq!(allowed.allow(&below).unwrap(), None);
        assert_eq!(allowed.list().unwrap(), [real]);
        let mode = std::fs::metadata(allowed.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_folder_is_not_allowed() {
        let data = tempfile::tempdir().unwrap();
        let allowed = AllowedFolders::of(data.path());
        let file = data.path().join("file");
        std::fs::write(&file, "").unwrap();
        let broken = data.path().join("a\nb");
        std::fs::create_dir(&broken).unwrap();
        for (bad, kind) in [
            (&file, ErrorKind::NotADirectory),
            (&data.path().join("none"), ErrorKind::NotFound),
            (&broken, ErrorKind::InvalidFilename),
        ] {
            assert_eq!(allowed.allow(bad).unwrap_err().kind(), kind);
        }
        assert!(!allowed.path().exists());
    }

    #[test]
    fn lines_that_are_no_absolute_paths_are_ignored() {
        let data = tempfile::tempdir().unwrap();
        let allowed = AllowedFolders::of(data.path());
        std::fs::write(allowed.path(), "/a b\n\nrelative\n/half").unwrap();
        assert_eq!(allowed.list().unwrap(), [PathBuf::from("/a b")]);
    }

    #[test]
    fn the_file_has_a_bound() {
        let data = tempfile::tempdir().unwrap();
        let allowed = AllowedFolders::of(data.path());
        std::fs::write(allowed.path(), vec![b'\n'; FILE_BYTES as usize]).unwrap();
        assert_eq!(allowed.allow(data.path()).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
