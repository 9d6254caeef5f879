//! Folders that go away with the test program, even if it is killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::account;

/// Waits until its standard input ends, which is when the test program does. The server ends at the same moment; its
/// folder goes after it, or after 10 seconds.
const SCRIPT: &str = r#"
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
tries=200
while [ -n "$pid" ] && [ "$tries" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
    sleep 0.05
    tries=$((tries - 1))
done
rm -rf -- "$1"
"#;

/// A new folder that belongs to the account of the server.
#[derive(Debug)]
pub(crate) struct SweptFolder {
    path: PathBuf,
    sweeper: Child,
}

impl SweptFolder {
    pub(crate) fn new() -> Self {
        use std::os::unix::process::CommandExt as _;

        let folder = tempfile::Builder::new().prefix("tokenrail-pg-").tempdir().expect("a folder");
        account::give(folder.path());
        let path = folder.keep();
        // A group of its own, because Ctrl-C in a terminal goes to the whole group of the tests.
        let sweeper = Command::new("sh")
            .args(["-c", SCRIPT, "sweeper"])
            .arg(&path)
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        Self { path, sweeper }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SweptFolder {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}
