//! The changes of files that agents report with the results of their tools, each in a form of its own.
//!
//! | agent | where | form |
//! | --- | --- | --- |
//! | Claude Code | `tool_use_result` of a line; over ACP, `_meta.claudeCode.toolResponse` | `structuredPatch`: hunks as JSON |
//! | opencode | `metadata.diff` of a tool's state; over ACP, of its `rawOutput` | a unified diff |
//! | Codex `app-server` | `diff` of each change in the call itself | hunks; of a new or deleted file, its content |
//!
//! Codex `exec` and Gemini report no lines. Over ACP, other agents send the old text and the new one, without the place
//! in the file.

use std::fmt::Write as _;

use serde::Deserialize;
use tokenrail_domain::UnifiedPatch;

use crate::fields::{self, Raw, raw_structs};

raw_structs! {
    /// What Claude Code says about a tool call, beside the result for the model.
    struct ClaudeChange { path = "filePath", hunks = "structuredPatch" }

    /// What opencode says about a tool call.
    struct OpencodeOutput { metadata }

    struct OpencodeMetadata { diff }

    /// A changed file of Codex.
    struct CodexChange { path, kind, diff }

    struct CodexKind { kind = "type", move_path }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeHunk {
    old_start: u32,
    old_lines: u32,
    new_start: u32,
    new_lines: u32,
    lines: Vec<String>,
}

/// Reads the `tool_use_result` of Claude Code. A file that is created has no hunks: the call has its content.
pub(crate) fn of_claude(result: Raw<'_>) -> Option<UnifiedPatch> {
    let change: ClaudeChange<'_> = fields::read(result);
    let hunks: Vec<ClaudeHunk> = serde_json::from_str(change.hunks?.get()).ok()?;
    let path = fields::text(change.path)?;
    let mut text = format!("--- {path}\n+++ {path}\n");
    for ClaudeHunk { old_start, old_lines, new_start, new_lines, lines } in hunks {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "@@ -{old_start},{old_lines} +{new_start},{new_lines} @@");
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
    }
    UnifiedPatch::read(&text)
}

/// Reads the `metadata` of a tool of opencode.
pub(crate) fn of_opencode(metadata: Raw<'_>) -> Option<UnifiedPatch> {
    let metadata: OpencodeMetadata<'_> = fields::read(metadata);
    UnifiedPatch::read(&fields::text(metadata.diff)?)
}

/// Reads the `rawOutput` of a tool of opencode.
pub(crate) fn of_opencode_output(output: Raw<'_>) -> Option<UnifiedPatch> {
    let output: OpencodeOutput<'_> = fields::read(output);
    of_opencode(output.metadata)
}

/// Reads the `changes` of a call of Codex. `None` if one of the changes has no lines.
pub(crate) fn of_codex(changes: Raw<'_>) -> Option<UnifiedPatch> {
    let mut text = String::new();
    for change in fields::elements(changes) {
        let change: CodexChange<'_> = fields::read(Some(change));
        let (path, diff) = (fields::text(change.path)?, fields::text(change.diff)?);
        let kind: CodexKind<'_> = fields::read(change.kind);
        let moved = fields::text(kind.move_path);
        match &*fields::text(kind.kind)? {
            "add" => write_file(&mut text, ["/dev/null", &path], &marked('+', &diff)),
            "delete" => write_file(&mut text, [&path, "/dev/null"], &marked('-', &diff)),
            _ => write_file(&mut text, [&path, moved.as_deref().unwrap_or(&path)], &diff),
        }
    }
    UnifiedPatch::read(&text)
}

fn write_file(text: &mut String, [old, new]: [&str; 2], hunks: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "--- {old}\n+++ {new}\n{}", hunks.strip_suffix('\n').unwrap_or(hunks));
}

/// The only hunk of a file that is new or deleted.
fn marked(mark: char, content: &str) -> String {
    if content.is_empty() || content.starts_with("@@ ") {
        return content.to_owned();
    }
    let lines = content.strip_suffix('\n').unwrap_or(content).split('\n');
    let count = lines.clone().count();
    let mut hunk = match mark {
        '+' => format!("@@ -0,0 +1,{count} @@"),
        _ => format!("@@ -1,{count} +0,0 @@"),
    };
    for line in lines {
        hunk.push('\n');
        hunk.push(mark);
        hunk.push_str(line);
    }
    if !content.ends_with('\n') {
        hunk.push_str("\n\\ No newline at end of file");
    }
    hunk
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn check(read: fn(Raw<'_>) -> Option<UnifiedPatch>, json: &str, expected: Option<&str>) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        assert_eq!(read(Some(raw)).as_ref().map(UnifiedPatch::as_str), expected, "{json}");
    }

    #[test]
    fn claude_reports_hunks_as_json() {
        let change = |hunks: &str| format!(r#"{{"filePath":"/p/a","structuredPatch":{hunks}}}"#);
        let hunk = r#"{"oldStart":7,"oldLines":1,"newStart":7,"newLines":2,"lines":[" a","+b"]}"#;
        check(
            of_claude,
            &change(&format!("[{hunk}]")),
            Some("--- /p/a\n+++ /p/a\n@@ -7,1 +7,2 @@\n a\n+b\n"),
        );
        check(of_claude, &change("[]"), None);
        check(of_claude, &change(&hunk.replace("[\" a\"", "[7")), None);
        check(of_claude, &change(&format!("[{}]", hunk.replace("\"oldLines\":1", "\"oldLines\":2"))), None);
        check(of_claude, &format!(r#"{{"structuredPatch":[{hunk}]}}"#), None);
        check(of_claude, r#""Error: no such file""#, None);
    }

    #[test]
    fn opencode_reports_a_unified_diff() {
        let metadata = r#"{"diff":"Index: /p/a\n===\n--- /p/a\n+++ /p/a\n@@ -1,1 +1,1 @@\n-a\n+b\n"}"#;
        let expected = Some("--- /p/a\n+++ /p/a\n@@ -1,1 +1,1 @@\n-a\n+b\n");
        check(of_opencode, metadata, expected);
        check(of_opencode_output, &format!(r#"{{"metadata":{metadata}}}"#), expected);
        check(of_opencode_output, r#""done""#, None);
    }

    #[test]
    fn codex_reports_hunks_or_the_content_of_a_file() {
        let update =
            r#"{"path":"a","kind":{"type":"update","move_path":"b"},"diff":"@@ -3 +3 @@\n-a\n+b\n"}"#;
        let add = r#"{"path":"n","kind":{"type":"add"},"diff":"one\n\ntwo"}"#;
        let delete = r#"{"path":"d","kind":{"type":"delete"},"diff":"gone\n"}"#;
        let expected = "--- a\n+++ b\n@@ -3,1 +3,1 @@\n-a\n+b\n\
            --- /dev/null\n+++ n\n@@ -0,0 +1,3 @@\n+one\n+\n+two\n\\ No newline at end of file\n\
            --- d\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-gone\n";
        check(of_codex, &format!("[{update},{add},{delete}]"), Some(expected));
        // `exec` names only the files.
        check(of_codex, &format!(r#"[{update},{{"path":"a","kind":"update"}}]"#), None);
        check(of_codex, "[]", None);
    }
}
