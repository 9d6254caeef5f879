//! Unusual repositories and paths.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use tokenrail_domain::CommitId;
use tokenrail_ports::{ChangesError, Extent, FileChoice, FileStatus, IGitRepository as _};

use super::{Lab, git_in, lines, text};

#[tokio::test]
async fn a_folder_below_the_root_belongs_to_the_whole_repository() {
    let Some(lab) = Lab::with_commit() else { return };
    lab.write("below/file", "1\n");
    let below = lab.root().join("below");
    let base = lab.reader.head(&below).await.unwrap();
    lab.write("a.txt", "");
    let files = lab.reader.changes(&below, &base).await.unwrap().files;
    let expected =
        [lines("a.txt", FileStatus::Modified, 0, 3), lines("below/file", FileStatus::Untracked, 1, 0)];
    assert_eq!(files, expected);
}

#[tokio::test]
async fn a_folder_without_a_repository_has_no_head() {
    let Some(lab) = Lab::new() else { return };
    let base = lab.head().await;
    let outside = lab.folder.path();
    assert_eq!(lab.reader.head(outside).await, None);
    assert!(matches!(lab.reader.changes(outside, &base).await, Err(ChangesError::NoRepository)));
    assert_eq!(lab.reader.head(&outside.join("none")).await, None);
}

#[tokio::test]
async fn folders_of_agents_are_not_in_the_repository_of_the_data_folder() {
    let Some(lab) = Lab::with_commit() else { return };
    let data = lab.root().join("data");
    let own = data.join("work/agent");
    fs::create_dir_all(&own).unwrap();
    let reader = super::Repositories::new(&data, super::RepositoryLimits::default());
    assert_eq!(reader.head(&own).await, None);
    assert_eq!(reader.head(&lab.root()).await, Some(lab.head().await));
    git_in(&own, &["init", "-q"]);
    assert!(reader.head(&own).await.is_some(), "a repository of its own");
}

#[tokio::test]
async fn a_repository_without_a_commit_is_compared_with_nothing() {
    for format in ["sha1", "sha256"] {
        let init = ["init", "-q", "--object-format", format];
        let Some(lab) = Lab::with(super::RepositoryLimits::default(), &init) else { return };
        let base = lab.head().await;
        lab.write("tracked", "1\n");
        lab.write("untracked", "2\n");
        lab.git(&["add", "tracked"]);
        let expected =
            [lines("tracked", FileStatus::Added, 1, 0), lines("untracked", FileStatus::Untracked, 1, 0)];
        assert_eq!(lab.changes(&base).await.files, expected, "{format}");
        lab.commit();
        assert_eq!(lab.head().await.as_str(), lab.git(&["rev-parse", "HEAD"]));
        assert_eq!(lab.changes(&base).await.files.len(), 2, "{format}");
    }
}

#[tokio::test]
async fn the_head_is_found_in_every_place_of_a_branch() {
    let Some(lab) = Lab::with_commit() else { return };
    let commit = lab.git(&["rev-parse", "HEAD"]);
    lab.git(&["pack-refs", "--all"]);
    assert_eq!(lab.head().await.as_str(), commit, "packed");
    lab.git(&["checkout", "-q", "--detach"]);
    assert_eq!(lab.head().await.as_str(), commit, "detached");
    lab.git(&["worktree", "add", "-q", "-b", "some/branch", "../linked"]);
    let linked = lab.folder.path().join("linked");
    fs::write(linked.join("b.txt"), "1\n").unwrap();
    git_in(&linked, &["add", "."]);
    git_in(&linked, &["commit", "-q", "-m", "b"]);
    let base = lab.reader.head(&linked).await.unwrap();
    assert_eq!(base.as_str(), git_in(&linked, &["rev-parse", "HEAD"]));
    fs::write(linked.join("b.txt"), "1\n2\n").unwrap();
    let files = lab.reader.changes(&linked, &base).await.unwrap().files;
    assert_eq!(files, [lines("b.txt", FileStatus::Modified, 1, 0)]);
}

#[tokio::test]
async fn a_commit_that_is_gone_is_reported() {
    let Some(lab) = Lab::with_commit() else { return };
    let gone = CommitId::new(&"1".repeat(40)).unwrap();
    let answer = lab.reader.changes(&lab.root(), &gone).await;
    assert!(matches!(answer, Err(ChangesError::CommitGone(commit)) if commit == gone));
    let answer = lab.reader.patch(&lab.root(), &gone, None).await;
    assert!(matches!(answer, Err(ChangesError::CommitGone(_))));
}

#[tokio::test]
async fn any_name_of_a_file_is_listed() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    for name in ["tab\t", "new\nline", "-rf", "\"quoted\"", ":(top)x", "back\\slash"] {
        lab.write(name, "1\n");
    }
    fs::write(lab.root().join(OsStr::from_bytes(b"not\xffutf8")), "1\n").unwrap();
    let untracked = lab.changes(&base).await.files;
    lab.git(&["add", "-A"]);
    let tracked = lab.changes(&base).await.files;
    let names = |files: &[tokenrail_ports::ChangedFile]| -> Vec<String> {
        files.iter().map(|file| file.path.clone()).collect()
    };
    assert_eq!(names(&untracked), names(&tracked));
    assert_eq!(names(&tracked).len(), 7);
    assert!(names(&tracked).contains(&"not\u{fffd}utf8".to_owned()));
    assert!(tracked.iter().all(|file| file.extent == Extent::Lines { added: 1, removed: 0 }), "{tracked:?}");
}

#[tokio::test]
async fn a_changed_mode_and_a_changed_link_are_modifications() {
    let Some(lab) = Lab::new() else { return };
    lab.write("run.sh", "echo\n");
    std::os::unix::fs::symlink("run.sh", lab.root().join("link")).unwrap();
    lab.commit();
    let base = lab.head().await;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(lab.root().join("run.sh"), mode).unwrap();
    fs::remove_file(lab.root().join("link")).unwrap();
    std::os::unix::fs::symlink("elsewhere", lab.root().join("link")).unwrap();
    let expected = [lines("link", FileStatus::Modified, 1, 1), lines("run.sh", FileStatus::Modified, 0, 0)];
    assert_eq!(lab.changes(&base).await.files, expected);
    lab.git(&["config", "core.fileMode", "false"]);
    assert_eq!(lab.changes(&base).await.files, expected[..1], "the repository does not compare modes");
}

#[tokio::test]
async fn a_file_that_was_only_touched_has_not_changed() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    lab.write("a.txt", "one\ntwo\nthree\n");
    lab.write("ignored.log", "1\n");
    lab.write(".git/info/exclude", "*.log\n");
    assert_eq!(lab.changes(&base).await.files, []);
    assert_eq!(lab.patch(&base).await.text, b"");
}

#[tokio::test]
async fn a_submodule_is_compared_by_its_commit() {
    let Some(lab) = Lab::with_commit() else { return };
    let other = lab.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    git_in(&other, &["init", "-q"]);
    fs::write(other.join("f"), "1\n").unwrap();
    git_in(&other, &["add", "."]);
    git_in(&other, &["commit", "-q", "-m", "1"]);
    lab.git(&["submodule", "--quiet", "add", "../other", "sub"]);
    lab.commit();
    let base = lab.head().await;
    lab.write("sub/f", "2\n");
    assert_eq!(lab.changes(&base).await.files, [], "a change that the submodule has not committed");
    git_in(&lab.root().join("sub"), &["commit", "-q", "-a", "-m", "2"]);
    assert_eq!(lab.changes(&base).await.files, [lines("sub", FileStatus::Modified, 1, 1)]);
    assert!(lab.reader.head(&lab.root().join("sub")).await.is_some());
    let below = lab.root().join("inner");
    fs::create_dir(&below).unwrap();
    git_in(&below, &["init", "-q"]);
    git_in(&below, &["commit", "-q", "--allow-empty", "-m", "1"]);
    let files = lab.changes(&base).await.files;
    let inner = files.iter().find(|file| file.path == "inner/").unwrap();
    assert_eq!((&inner.status, inner.extent), (&FileStatus::Untracked, Extent::Uncounted));
}

#[tokio::test]
async fn a_file_that_was_only_removed_from_the_index_is_modified() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    lab.git(&["rm", "-q", "--cached", "gone.txt", "a.txt"]);
    lab.write("a.txt", "1\n2\n3\n4\n");
    let expected =
        [lines("a.txt", FileStatus::Modified, 4, 3), lines("gone.txt", FileStatus::Modified, 1, 1)];
    assert_eq!(lab.changes(&base).await.files, expected);
    let limits = super::RepositoryLimits { changes_files: 2, ..super::RepositoryLimits::default() };
    let reader = super::Repositories::new(&lab.folder.path().join("other data"), limits);
    let full = reader.changes(&lab.root(), &base).await.unwrap();
    assert_eq!(
        (full.files.as_slice(), full.truncated),
        (expected.as_slice(), false),
        "a full list knows it too"
    );
}

/// The headers of the files in the patch of one path.
async fn patch_of(lab: &Lab, base: &CommitId, path: &str, old_path: Option<&str>) -> Vec<String> {
    let file = FileChoice { path: path.into(), old_path: old_path.map(str::to_owned) };
    let found = lab.reader.patch(&lab.root(), base, Some(file)).await.unwrap();
    assert!(!found.truncated);
    let shown = String::from_utf8_lossy(&found.text);
    shown.lines().filter(|line| line.starts_with("diff --git ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_folder_is_not_a_file_of_a_patch() {
    let Some(lab) = Lab::with_commit() else { return };
    lab.write("deep/tracked", "1\n");
    lab.commit();
    let base = lab.head().await;
    lab.write("deep/tracked", "2\n");
    lab.write("deep/new", "1\n");
    assert_eq!(patch_of(&lab, &base, "deep", None).await, [""; 0]);
    assert_eq!(
        patch_of(&lab, &base, "deep/tracked", None).await,
        ["diff --git a/deep/tracked b/deep/tracked"]
    );
    assert_eq!(patch_of(&lab, &base, "deep/new", None).await, ["diff --git a/deep/new b/deep/new"]);
    lab.git(&["mv", "old.txt", "new.txt"]);
    lab.write("new.txt", "nothing of the old file\n");
    let both = ["diff --git a/new.txt b/new.txt", "diff --git a/old.txt b/old.txt"];
    assert_eq!(patch_of(&lab, &base, "new.txt", Some("old.txt")).await, both, "no longer renamed");
}

#[tokio::test]
async fn every_listed_path_has_a_patch() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    for name in ["tab\t", "new\nline", "\r\u{7}\u{8}\u{b}\u{c}\u{7f}", "\"quoted\"", "back\\slash", "ü"] {
        lab.write(name, "1\n");
    }
    for name in [b"not\xffutf8", b"not\xfeutf8"] {
        fs::write(lab.root().join(OsStr::from_bytes(name)), "1\n").unwrap();
    }
    for kind in ["untracked", "tracked"] {
        let files = lab.changes(&base).await.files;
        assert_eq!(files.len(), 8, "two have the same path: {files:?}");
        for file in files {
            let expected = if file.path.contains('\u{fffd}') { 2 } else { 1 };
            assert_eq!(patch_of(&lab, &base, &file.path, None).await.len(), expected, "{kind} {}", file.path);
        }
        lab.git(&["add", "-A"]);
    }
}

#[tokio::test]
async fn the_format_of_ids_is_read_from_its_own_setting() {
    let Some(lab) = Lab::new() else { return };
    lab.git(&["config", "remote.origin.url", "https://localhost/sha256-tools.git"]);
    lab.git(&["config", "branch.sha256.objectFormat", "sha256"]);
    let base = lab.head().await;
    assert_eq!(base.as_str(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    lab.write("a", "1\n");
    lab.git(&["add", "a"]);
    assert_eq!(lab.changes(&base).await.files, [lines("a", FileStatus::Added, 1, 0)]);
}

#[tokio::test]
async fn a_branch_beyond_the_part_of_a_file_that_is_read_is_unknown() {
    let Some(lab) = Lab::new() else { return };
    let packed = fs::File::create(lab.root().join(".git/packed-refs")).unwrap();
    packed.set_len(33 << 20).unwrap();
    assert_eq!(lab.reader.head(&lab.root()).await, None);
    packed.set_len(0).unwrap();
    assert!(lab.reader.head(&lab.root()).await.is_some(), "the empty tree");
}

#[tokio::test]
async fn warnings_of_git_do_not_end_it() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    lab.git(&["config", "core.autocrlf", "input"]);
    for number in 0..100 {
        lab.write(&format!("a file with a long name, so that its warning is long too: {number}"), "a\r\n");
    }
    // Git warns of each of these lines.
    lab.write(".gitattributes", &"!negative text\n".repeat(200));
    lab.git(&["add", "-N", "."]);
    assert_eq!(lab.changes(&base).await.files.len(), 101);
    assert_eq!(text(&lab.patch(&base).await).matches("diff --git").count(), 101);
}
