//! A folder that becomes a package: its files are copied or written into it, with the modes that users get.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::Failure;

const FILE: u32 = 0o644;
const PROGRAM: u32 = 0o755;
const FOLDER: u32 = 0o755;

pub(super) struct Folder(PathBuf);

impl Folder {
    /// An empty folder. What was there is deleted.
    pub(super) fn create(path: PathBuf) -> Result<Self, Failure> {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| failed("delete", &path, &error))?;
        }
        fs::create_dir_all(&path).map_err(|error| failed("create", &path, &error))?;
        mode(&path, FOLDER)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn text(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.place(name)?;
        fs::write(&path, text).map_err(|error| failed("write", &path, &error))?;
        mode(&path, FILE)?;
        Ok(path)
    }

    pub(super) fn copy(&self, name: &str, from: &Path) -> Result<(), Failure> {
        self.copy_as(name, from, FILE)
    }

    pub(super) fn program(&self, name: &str, from: &Path) -> Result<(), Failure> {
        self.copy_as(name, from, PROGRAM)
    }

    /// All files below a folder of this one, sorted by their path from this one.
    pub(super) fn files(&self, below: &str) -> Result<Vec<String>, Failure> {
        let (mut folders, mut files) = (vec![self.0.join(below)], Vec::new());
        while let Some(folder) = folders.pop() {
            let unreadable = |error| failed("read", &folder, &error);
            for entry in fs::read_dir(&folder).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(&self.0) {
                    files.push(name.to_string_lossy().into_owned());
                }
            }
        }
        files.sort();
        Ok(files)
    }

    fn copy_as(&self, name: &str, from: &Path, permissions: u32) -> Result<(), Failure> {
        let path = self.place(name)?;
        fs::copy(from, &path).map_err(|error| failed("copy", from, &error))?;
        mode(&path, permissions)
    }

    /// Creates the folders above a file. Their mode does not depend on the umask.
    fn place(&self, name: &str) -> Result<PathBuf, Failure> {
        let mut above = self.0.clone();
        let mut parts = Path::new(name).components().peekable();
        while let Some(part) = parts.next() {
            above.push(part);
            if parts.peek().is_some() && !above.exists() {
                fs::create_dir(&above).map_err(|error| failed("create", &above, &error))?;
                mode(&above, FOLDER)?;
            }
        }
        Ok(above)
    }
}

/// The size of a file in bytes.
pub(super) fn size(path: &Path) -> Result<u64, Failure> {
    fs::metadata(path).map(|data| data.len()).map_err(|error| failed("read", path, &error))
}

pub(super) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| failed("read", path, &error))
}

fn mode(path: &Path, mode: u32) -> Result<(), Failure> {
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions).map_err(|error| failed("set the mode of", path, &error))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}
