//! The files that an agent has changed.

#[cfg(test)]
use super::declarations::Declarations;
use serde::Serialize;
use tokenrail_application::{AgentChanges, ChangedFile, Changes, Extent, FileStatus, NoChanges};
use utoipa::ToSchema;

/// What has changed in the git repository of an agent's folder since a turn started, or why git cannot tell.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "source", rename_all = "camelCase")]
#[schema(as = Changes)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Changes", tag = "source", rename_all = "camelCase"))]
pub(crate) enum ChangesDto<'a> {
    Git(GitChangesDto<'a>),
    None(NoChangesDto),
}

/// Git has compared the files with a commit. What others have changed is included.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GitChanges)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "GitChanges"))]
pub(crate) struct GitChangesDto<'a> {
    /// The turn at whose start HEAD pointed to the commit.
    turn: u32,
    /// The commit, or the id of the empty tree if there was none.
    base: &'a str,
    files: Vec<ChangedFileDto<'a>>,
    /// Whether there are more files than `limits.changes_files`.
    truncated: bool,
}

/// Git cannot tell what has changed. The agent's own tool calls may show it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NoChanges)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "NoChanges"))]
pub(crate) struct NoChangesDto {
    /// `copy`, `no_commit`, `no_repository`, `commit_gone`, `other_node`, `no_git`, `timed_out` or `git_failed`.
    #[cfg_attr(test, ts(type = "NoChangesReason"))]
    reason: &'static str,
    /// The reason as a sentence.
    detail: String,
}

/// The names of the reasons.
#[cfg(test)]
const REASONS: [&str; 8] =
    ["copy", "no_commit", "no_repository", "commit_gone", "other_node", "no_git", "timed_out", "git_failed"];

/// A file that differs from the commit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChangedFile)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ChangedFile", optional_fields))]
pub(crate) struct ChangedFileDto<'a> {
    /// The path below the root of the repository.
    path: &'a str,
    /// The path from which the file was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    old_path: Option<&'a str>,
    /// `added`, `modified`, `deleted`, `renamed`, or `untracked`: new, and not known to git.
    #[cfg_attr(test, ts(type = "\"added\" | \"modified\" | \"deleted\" | \"renamed\" | \"untracked\""))]
    status: &'static str,
    /// The number of added lines. Absent if the file is binary or too large to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    added: Option<u64>,
    /// The number of removed lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    removed: Option<u64>,
    /// Whether the file is binary.
    binary: bool,
}

impl<'a> From<&'a AgentChanges> for ChangesDto<'a> {
    fn from(found: &'a AgentChanges) -> Self {
        let AgentChanges { turn, base, changes: Changes { files, truncated } } = found;
        let files = files.iter().map(ChangedFileDto::from).collect();
        Self::Git(GitChangesDto { turn: turn.0, base: base.as_str(), files, truncated: *truncated })
    }
}

impl From<NoChanges> for ChangesDto<'_> {
    fn from(why: NoChanges) -> Self {
        let reason = match why {
            NoChanges::Copy => "copy",
            NoChanges::NoCommit => "no_commit",
            NoChanges::NoRepository => "no_repository",
            NoChanges::CommitGone => "commit_gone",
            NoChanges::OtherNode => "other_node",
            NoChanges::NoGit => "no_git",
            NoChanges::TimedOut => "timed_out",
            NoChanges::GitFailed => "git_failed",
        };
        Self::None(NoChangesDto { reason, detail: why.to_string() })
    }
}

impl<'a> From<&'a ChangedFile> for ChangedFileDto<'a> {
    fn from(file: &'a ChangedFile) -> Self {
        let ChangedFile { path, status, extent } = file;
        let (status, old_path) = match status {
            FileStatus::Added => ("added", None),
            FileStatus::Modified => ("modified", None),
            FileStatus::Deleted => ("deleted", None),
            FileStatus::Renamed { from } => ("renamed", Some(from.as_str())),
            FileStatus::Untracked => ("untracked", None),
        };
        let (added, removed) = match *extent {
            Extent::Lines { added, removed } => (Some(added), Some(removed)),
            Extent::Binary | Extent::Uncounted => (None, None),
        };
        Self { path, old_path, status, added, removed, binary: *extent == Extent::Binary }
    }
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<ChangedFileDto<'_>>();
    out.words("NoChangesReason", "Why git cannot tell what has changed.", REASONS);
    out.of::<GitChangesDto<'_>>();
    out.of::<NoChangesDto>();
    out.of::<ChangesDto<'_>>();
}
