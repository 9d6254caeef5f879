//! What the files of a repository cannot make the server do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use tokenrail_ports::{ChangesError, Extent, FileStatus, IGitRepository as _};

use super::{Lab, RepositoryLimits, contents, lines, text};

#[tokio::test]
async fn reading_changes_no_byte_of_the_repository() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    // Git would refresh the index after this.
    lab.write("a.txt", "one\ntwo\nthree\n");
    lab.write("old.txt", "changed\n");
    lab.write("untracked", "1\n");
    let before = contents(&lab.root());
    assert_eq!(lab.changes(&base).await.files.len(), 2);
    assert!(!lab.patch(&base).await.text.is_empty());
    assert_eq!(contents(&lab.root()), before);
    let left = fs::read_dir(lab.folder.path().join("data/changes")).unwrap().count();
    assert_eq!(left, 0, "nor is a copy left");
}

#[tokio::test]
async fn no_program_of_the_repository_runs() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    let proof = lab.folder.path().join("proof");
    let program = lab.folder.path().join("program");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $@\" >> {}\ncat\n", proof.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let hook = lab.root().join(".git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::copy(program, hook).unwrap();
    for (name, value) in [
        ("filter.evil.clean", program),
        ("filter.evil.smudge", program),
        ("filter.evil.process", program),
        ("filter.evil.required", "true"),
        ("diff.evil.command", program),
        ("diff.evil.textconv", program),
        ("diff.external", program),
        ("core.fsmonitor", program),
        ("core.pager", program),
        ("core.alternateRefsCommand", program),
        ("core.sshCommand", program),
        ("alias.diff", &format!("!{program}")),
    ] {
        lab.git(&["config", name, value]);
    }
    lab.write(".git/config.worktree", &format!("[core]\n\tfsmonitor = {program}\n"));
    lab.git(&["config", "extensions.worktreeConfig", "true"]);
    lab.write(".gitattributes", "* filter=evil diff=evil\n");
    lab.write("a.txt", "one\n");
    lab.write("new.txt", "new\n");
    let files = lab.changes(&base).await.files;
    assert_eq!(files[1], lines("a.txt", FileStatus::Modified, 0, 2));
    assert!(text(&lab.patch(&base).await).contains("+new\n"));
    assert!(!proof.exists(), "{:?}", fs::read_to_string(proof));
    // It is a trap: with the settings of the repository, git runs them.
    let _failed = Command::new("git").args(["diff", "HEAD"]).current_dir(lab.root()).output().unwrap();
    assert!(proof.exists());
}

#[tokio::test]
async fn no_link_leads_out_of_the_repository() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    let outside = lab.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "a secret\n").unwrap();
    symlink(outside.join("secret"), lab.root().join("link")).unwrap();
    symlink(&outside, lab.root().join("folder")).unwrap();
    let patch = lab.patch(&base).await;
    assert!(!text(&patch).contains("a secret"), "{}", text(&patch));
    assert_eq!(lab.changes(&base).await.files.len(), 2);
}

#[tokio::test]
async fn a_pipe_among_the_files_blocks_nothing() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    mkfifoat(CWD, lab.root().join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    assert_eq!(lab.changes(&base).await.files, [], "git does not list it either");
    fs::remove_file(lab.root().join(".git/HEAD")).unwrap();
    mkfifoat(CWD, lab.root().join(".git/HEAD"), Mode::RUSR | Mode::WUSR).unwrap();
    assert_eq!(lab.reader.head(&lab.root()).await, None);
}

#[tokio::test]
async fn large_untracked_files_are_neither_counted_nor_shown() {
    let limits =
        RepositoryLimits { untracked_file_bytes: 10, untracked_bytes: 12, ..RepositoryLimits::default() };
    let Some(lab) = Lab::with(limits, &["init", "-q"]) else { return };
    let base = lab.head().await;
    lab.write("a", "12345678\n");
    lab.write("b", "larger than ten\n");
    lab.write("c", "1\n");
    lab.write("d", "1\n");
    let extents: Vec<_> = lab.changes(&base).await.files.into_iter().map(|file| file.extent).collect();
    let one = Extent::Lines { added: 1, removed: 0 };
    assert_eq!(extents, [one, Extent::Uncounted, one, Extent::Uncounted]);
    let patch = lab.patch(&base).await;
    assert!(patch.truncated);
    assert_eq!(text(&patch).matches("diff --git").count(), 2);
}

#[tokio::test]
async fn git_is_killed_if_it_takes_too_long() {
    let limits = RepositoryLimits { changes_timeout_ms: 300, ..RepositoryLimits::default() };
    let Some(lab) = Lab::with(limits, &["init", "-q"]) else { return };
    lab.commit();
    let base = lab.head().await;
    // Git waits for somebody who writes into it.
    let pipe = lab.root().join(".git/config");
    fs::remove_file(&pipe).unwrap();
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let answer = lab.reader.changes(&lab.root(), &base).await;
    assert!(matches!(answer, Err(ChangesError::TimedOut)), "{answer:?}");
    let nonblocking = OFlags::WRONLY | OFlags::NONBLOCK;
    // Opening it fails as soon as nobody reads it any more.
    while rustix::fs::open(&pipe, nonblocking, Mode::empty()).is_ok() {
        tokio::task::yield_now().await;
    }
}
