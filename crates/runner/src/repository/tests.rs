//! The promises of the port, with real repositories.

mod bounds;
mod edges;
mod indexes;
mod safety;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tokenrail_domain::CommitId;
use tokenrail_ports::{ChangedFile, Changes, Extent, FileChoice, FileStatus, IGitRepository as _, Patch};

use super::{Repositories, RepositoryLimits};

/// A repository with one commit, and a reader of it.
struct Lab {
    folder: TempDir,
    reader: Repositories,
}

impl Lab {
    /// `None` if git is missing: the test says so and ends.
    fn new() -> Option<Self> {
        Self::with(RepositoryLimits::default(), &["init", "-q", "-b", "main"])
    }

    fn with(limits: RepositoryLimits, init: &[&str]) -> Option<Self> {
        if super::find_git().is_none() {
            println!("NOT RUN: git is missing");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let reader = Repositories::new(&folder.path().join("data"), limits);
        let lab = Self { folder, reader };
        fs::create_dir(lab.root()).unwrap();
        lab.git(init);
        Some(lab)
    }

    fn with_commit() -> Option<Self> {
        let lab = Self::new()?;
        lab.write("a.txt", "one\ntwo\nthree\n");
        lab.write("old.txt", &"a line that stays\n".repeat(20));
        lab.write("gone.txt", "x\n");
        lab.commit();
        Some(lab)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.root(), args)
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "a commit", "--allow-empty"]);
    }

    async fn head(&self) -> CommitId {
        self.reader.head(&self.root()).await.expect("the folder is in a repository")
    }

    async fn changes(&self, base: &CommitId) -> Changes {
        self.reader.changes(&self.root(), base).await.unwrap()
    }

    async fn patch(&self, base: &CommitId) -> Patch {
        self.reader.patch(&self.root(), base, None).await.unwrap()
    }
}

fn git_in(folder: &Path, args: &[&str]) -> String {
    let fixed =
        ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"];
    let mut git = Command::new("git");
    let git = git.args(fixed).args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let said = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(said.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

/// All files below a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                found.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn lines(path: &str, status: FileStatus, added: u64, removed: u64) -> ChangedFile {
    ChangedFile { path: path.into(), status, extent: Extent::Lines { added, removed } }
}

fn text(patch: &Patch) -> &str {
    str::from_utf8(&patch.text).unwrap()
}

#[tokio::test]
async fn every_kind_of_change_is_listed() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    assert_eq!(base.as_str(), lab.git(&["rev-parse", "HEAD"]));
    assert_eq!(lab.changes(&base).await, Changes::default());
    lab.write("a.txt", "one\nTWO\nthree\nfour\n");
    lab.git(&["mv", "old.txt", "new.txt"]);
    fs::remove_file(lab.root().join("gone.txt")).unwrap();
    lab.write("committed.txt", "1\n2");
    lab.commit();
    lab.write("deep/er/untracked.txt", "1\n2\n3\n");
    lab.write("binary", "a\0b");
    lab.git(&["add", "binary"]);
    let Changes { files, truncated } = lab.changes(&base).await;
    let binary = ChangedFile { path: "binary".into(), status: FileStatus::Added, extent: Extent::Binary };
    let expected = [
        lines("a.txt", FileStatus::Modified, 2, 1),
        binary,
        lines("committed.txt", FileStatus::Added, 2, 0),
        lines("deep/er/untracked.txt", FileStatus::Untracked, 3, 0),
        lines("gone.txt", FileStatus::Deleted, 0, 1),
        lines("new.txt", FileStatus::Renamed { from: "old.txt".into() }, 0, 0),
    ];
    assert_eq!((files.as_slice(), truncated), (expected.as_slice(), false));
}

#[tokio::test]
async fn the_patch_turns_the_old_files_into_the_new_ones() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    lab.git(&["worktree", "add", "-q", "--detach", "../before"]);
    lab.write("a.txt", "one\nTWO\nthree\nfour");
    lab.git(&["mv", "old.txt", "new.txt"]);
    fs::remove_file(lab.root().join("gone.txt")).unwrap();
    for (path, text) in [
        ("with space.txt", "1\n2\n"),
        ("q\"uote\nand\ttab\\.txt", "x"),
        ("ümlaut.txt", "ü\n"),
        ("empty", ""),
        ("run.sh", "#!/bin/sh\n"),
    ] {
        lab.write(path, text);
    }
    std::os::unix::fs::symlink("a.txt", lab.root().join("link")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(lab.root().join("run.sh"), mode).unwrap();
    let patch = lab.patch(&base).await;
    assert!(!patch.truncated);
    let before = lab.folder.path().join("before");
    fs::write(lab.folder.path().join("patch"), &patch.text).unwrap();
    git_in(&before, &["apply", "../patch"]);
    fs::remove_file(before.join(".git")).unwrap();
    let here =
        contents(&lab.root()).into_iter().filter(|(path, _)| !path.starts_with(lab.root().join(".git")));
    let named = |(path, text): (PathBuf, Vec<u8>)| {
        (path.components().skip(lab.root().components().count()).collect::<PathBuf>(), text)
    };
    let there = contents(&before)
        .into_iter()
        .map(|(path, text)| (path.strip_prefix(&before).unwrap().to_owned(), text));
    assert_eq!(here.map(named).collect::<BTreeMap<_, _>>(), there.collect::<BTreeMap<_, _>>());
    assert_eq!(fs::read_link(before.join("link")).unwrap(), Path::new("a.txt"));
    let run = fs::metadata(before.join("run.sh")).unwrap();
    assert_ne!(std::os::unix::fs::PermissionsExt::mode(&run.permissions()) & 0o100, 0);
}

#[tokio::test]
async fn a_patch_of_one_file_has_nothing_else() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    lab.write("a.txt", "one\n");
    lab.write("new *.txt", "new\n");
    lab.write("new b.txt", "b\n");
    lab.git(&["mv", "old.txt", "moved.txt"]);
    let of = async |path: &str, old_path: Option<&str>| {
        let file = FileChoice { path: path.into(), old_path: old_path.map(str::to_owned) };
        let patch = lab.reader.patch(&lab.root(), &base, Some(file)).await.unwrap();
        text(&patch).lines().filter(|line| line.starts_with("diff")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("a.txt", None).await, ["diff --git a/a.txt b/a.txt"]);
    assert_eq!(of("new *.txt", None).await, ["diff --git a/new *.txt b/new *.txt"]);
    assert_eq!(of("moved.txt", Some("old.txt")).await, ["diff --git a/old.txt b/moved.txt"]);
    assert_eq!(of("unknown", None).await, [""; 0]);
}

#[tokio::test]
async fn limits_cut_between_files() {
    let limits = RepositoryLimits { changes_files: 3, patch_bytes: 600, ..RepositoryLimits::default() };
    let Some(lab) = Lab::with(limits, &["init", "-q"]) else { return };
    lab.write("a", "");
    lab.write("b", "");
    lab.commit();
    let base = lab.head().await;
    lab.write("a", &"a line\n".repeat(20));
    lab.write("b", &"a line\n".repeat(200));
    lab.write("c", "c\n");
    lab.write("d", "d\n");
    let Changes { files, truncated } = lab.changes(&base).await;
    assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(truncated);
    let patch = lab.patch(&base).await;
    let heads: Vec<_> = text(&patch).lines().filter(|line| line.starts_with("diff")).collect();
    assert_eq!(heads, ["diff --git a/a b/a", "diff --git a/c b/c", "diff --git a/d b/d"]);
    assert!(patch.truncated);
}
